// SPDX-License-Identifier: Apache-2.0
//
// Compiled many times, each time with PROGRAM as the name of what it defines.
#include "program.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ub::aperture::test {
namespace {

// Something that the compiler cannot see through, so that it computes nothing in advance.
uint64_t g_state = 1;
uint64_t next_random() {
  g_state = g_state * 6364136223846793005 + 1442695040888963407;
  return g_state >> 16;
}

struct Mixed {
  int8_t a;
  uint8_t b;
  int16_t c;
  uint16_t d;
  int32_t e;
  uint32_t f;
  int64_t g;
  uint64_t h;
  float i;
  double j;
  long double k;
  bool l;
  Mixed* next;
};

uint64_t walk_structures(std::byte* memory) {
  auto* all = reinterpret_cast<Mixed*>(memory);
  constexpr int kCount = 40;
  for (int i = 0; i < kCount; ++i) {
    Mixed& m = all[i];
    m.a = static_cast<int8_t>(i * 7 - 100);
    m.b = static_cast<uint8_t>(i * 13);
    m.c = static_cast<int16_t>(-i * 300);
    m.d = static_cast<uint16_t>(i * 1001);
    m.e = -i * 70000;
    m.f = static_cast<uint32_t>(i) * 4000000007U;
    m.g = -(int64_t{1} << i);
    m.h = ~uint64_t{0} >> i;
    m.i = static_cast<float>(i) / 3;
    m.j = static_cast<double>(i) / 7;
    m.k = static_cast<long double>(i) / 11;
    m.l = i % 3 == 0;
    m.next = &all[(i * 17 + 5) % kCount];
  }
  uint64_t sum = 0;
  Mixed* m = all;
  for (int i = 0; i < 3 * kCount; ++i, m = m->next) {
    m->a = static_cast<int8_t>(m->a + 1);
    m->b |= 3;
    m->c = static_cast<int16_t>(m->c >> 1);
    m->d = static_cast<uint16_t>(m->d * 3);
    m->e -= m->c;
    m->f ^= m->f >> 7;
    m->g /= 3;
    m->h %= 1000003;
    m->i *= 1.5f;
    m->j += m->i;
    m->k -= m->j;
    m->l = !m->l;
    sum = sum * 31 + static_cast<uint64_t>(m->a) + m->b + static_cast<uint64_t>(m->c) + m->d +
          static_cast<uint64_t>(m->e) + m->f + static_cast<uint64_t>(m->g) + m->h + (m->l ? 1 : 0);
    sum += static_cast<uint64_t>(static_cast<int64_t>(m->j * 1000)) + static_cast<uint64_t>(m->k > 0);
    if (m->i > 100 || m->j == 0.0 || m->h < static_cast<uint64_t>(m->d)) sum ^= 0x5555;
  }
  return sum;
}

struct Bits {
  uint32_t a : 3;
  int32_t b : 7;
  uint32_t c : 1;
  uint32_t d : 21;
  uint64_t e : 40;
  int64_t f : 24;
  uint8_t g : 4, h : 4;
};

uint64_t bitfields(std::byte* memory) {
  auto* all = reinterpret_cast<Bits*>(memory);
  uint64_t sum = 0;
  for (int i = 0; i < 60; ++i) {
    Bits& b = all[i % 9];
    b.a += 3;
    b.b -= 5;
    b.c ^= 1;
    b.d = b.d * 5 + 1;
    b.e ^= next_random() & 0xffffffffff;
    b.f -= static_cast<int64_t>(b.e) % 1000;
    b.g |= static_cast<uint8_t>(i) & 15;
    b.h = static_cast<uint8_t>(b.h + b.g) & 15;
    sum = sum * 33 + b.a + static_cast<uint64_t>(b.b) + b.c + b.d + b.e + static_cast<uint64_t>(b.f) + b.g + b.h;
  }
  return sum;
}

uint64_t shifts_and_bits(std::byte* memory) {
  auto* words = reinterpret_cast<uint64_t*>(memory);
  auto* halves = reinterpret_cast<uint32_t*>(memory + 1024);
  uint64_t sum = 0;
  for (unsigned i = 0; i < 100; ++i) {
    const unsigned n = i % 64, at = i % 16;
    words[at] ^= next_random();
    words[at] |= uint64_t{1} << n;
    words[(at + 3) % 16] &= ~(uint64_t{1} << n);
    words[at] = std::rotl(words[at], static_cast<int>(n));
    halves[at] += static_cast<uint32_t>(words[at] >> 5);
    halves[at] = halves[at] << 3 | halves[at] >> 29;
    halves[at] = __builtin_bswap32(halves[at]);
    sum += static_cast<uint64_t>(std::popcount(words[at])) + static_cast<uint64_t>(std::countl_zero(halves[at] | 1));
    sum += (words[at] >> n & 1) != 0 ? 3 : 0;
    sum = sum * 17 +
          (words[at] < words[(at + 1) % 16] ? words[at] : static_cast<uint64_t>(-static_cast<int64_t>(words[at])));
  }
  return sum;
}

uint64_t strings(std::byte* memory) {
  char* const text = reinterpret_cast<char*>(memory);
  uint64_t sum = 0;
  for (size_t length : {0, 1, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 200, 300, 700, 2000}) {
    for (size_t shift : {0, 1, 13}) {
      char* const a = text + 64 + shift;
      char* const b = text + 8192 + 2 * shift;
      std::memset(a, 'x', length);
      a[length] = '\0';
      for (size_t i = 0; i < length; i += 5) a[i] = static_cast<char>('a' + i % 26);
      std::strcpy(b, a);
      sum = sum * 31 + std::strlen(a) + static_cast<uint64_t>(std::strcmp(a, b) == 0);
      sum += static_cast<uint64_t>(std::memcmp(a, b, length + 1) == 0);
      if (length > 4) {
        b[length / 2] = '!';
        sum +=
            static_cast<uint64_t>(std::memcmp(a, b, length) < 0) * 2 + static_cast<uint64_t>(std::strcmp(a, b) > 0) * 4;
        sum += static_cast<uint64_t>(std::strchr(b, '!') - b) * 8;
        sum += static_cast<uint64_t>(static_cast<char*>(std::memchr(b, '!', length)) - b) * 16;
        sum += static_cast<uint64_t>(std::strrchr(a, a[0]) - a);
        std::memmove(b + 3, b, length);  // overlapping, both ways
        std::memmove(b, b + 1, length);
        sum += strnlen(b, length / 3) + std::strspn(a, "ax");
      }
      std::memcpy(a + 1, b, length);
      for (size_t i = 0; i <= length; ++i) sum = sum * 7 + static_cast<uint8_t>(a[i]);
    }
  }
  const std::string copy(text + 64);
  return sum + copy.size();
}

uint64_t sort_numbers(std::byte* memory) {
  auto* numbers = reinterpret_cast<int32_t*>(memory);
  constexpr int kCount = 300;
  for (int i = 0; i < kCount; ++i) numbers[i] = static_cast<int32_t>(next_random());
  std::sort(numbers, numbers + kCount);
  auto* wide = reinterpret_cast<double*>(memory + 4096);
  for (int i = 0; i < kCount; ++i) wide[i] = std::sin(static_cast<double>(numbers[i]));
  std::stable_sort(wide, wide + kCount, std::greater<>());
  std::reverse(numbers, numbers + kCount);
  uint64_t sum = 0;
  for (int i = 0; i < kCount; ++i)
    sum = sum * 31 + static_cast<uint32_t>(numbers[i]) + std::bit_cast<uint64_t>(wide[i]);
  return sum + static_cast<uint64_t>(*std::max_element(numbers, numbers + kCount));
}

// Loops that become vector instructions.
uint64_t arrays(std::byte* memory) {
  auto* a = reinterpret_cast<float*>(memory);
  auto* b = reinterpret_cast<float*>(memory + 2048 + 4);
  auto* c = reinterpret_cast<int32_t*>(memory + 4096);
  auto* d = reinterpret_cast<int32_t*>(memory + 6144 + 8);
  auto* e = reinterpret_cast<uint8_t*>(memory + 8192);
  auto* f = reinterpret_cast<double*>(memory + 10240);
  auto* g = reinterpret_cast<int16_t*>(memory + 12288 + 2);
  constexpr int kCount = 203;
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i) * 0.5f;
    b[i] = static_cast<float>(kCount - i);
    c[i] = i * i - 1000;
    e[i] = static_cast<uint8_t>(i * 37);
    g[i] = static_cast<int16_t>(i * 111);
  }
  for (int i = 0; i < kCount; ++i) b[i] += a[i] * 2.0f;
  for (int i = 0; i < kCount; ++i) d[i] = c[i] > 0 ? c[i] + 3 : -c[i];
  for (int i = 0; i < kCount; ++i) e[i] = static_cast<uint8_t>(e[i] ^ (e[i] >> 1));
  for (int i = 0; i < kCount; ++i) f[i] = static_cast<double>(c[i]) / (static_cast<double>(b[i]) + 1);
  for (int i = 0; i < kCount; ++i) g[i] = static_cast<int16_t>(std::min<int>(g[i], e[i]) * 3);
  for (int i = 0; i < kCount; ++i)
    if (e[i] < 100) c[i] = d[i];  // stores under a mask
  float product = 1, total = 0;
  int32_t sum = 0, most = 0;
  double root = 0;
  for (int i = 0; i < kCount; ++i) total += b[i];
  for (int i = 0; i < kCount; ++i) sum += d[i] + e[i] + g[i];
  for (int i = 0; i < kCount; ++i) most = std::max(most, d[i]);
  for (int i = 0; i < kCount; ++i) root += std::sqrt(std::fabs(f[i]));
  for (int i = 0; i < 20; ++i) product *= 1 + a[i] / 64;
  uint64_t result =
      std::bit_cast<uint32_t>(total) + std::bit_cast<uint64_t>(root) * 3 + std::bit_cast<uint32_t>(product);
  for (int i = 0; i < kCount; ++i) result = result * 31 + static_cast<uint32_t>(c[i]) + static_cast<uint16_t>(g[i]);
  return result * 7 + static_cast<uint64_t>(sum) + static_cast<uint64_t>(most);
}

uint64_t floating_point(std::byte* memory) {
  auto* f = reinterpret_cast<float*>(memory);
  auto* d = reinterpret_cast<double*>(memory + 512);
  auto* l = reinterpret_cast<long double*>(memory + 2048);
  auto* n = reinterpret_cast<int64_t*>(memory + 4096);
  auto* u = reinterpret_cast<uint32_t*>(memory + 6144);
  uint64_t sum = 0;
  for (int i = 0; i < 64; ++i) {
    d[i] = static_cast<double>(static_cast<int64_t>(next_random())) / 1e9 - 5000;
    f[i] = static_cast<float>(d[i]);
    l[i] = static_cast<long double>(d[i]) * f[i];
    n[i] = static_cast<int64_t>(l[i]);
    u[i] = static_cast<uint32_t>(std::fabs(f[i]));
    d[i] = std::floor(d[i]) + std::fma(d[i], 0.5, static_cast<double>(n[i] % 100)) + static_cast<double>(u[i]);
    f[i] = std::fabs(f[i]) < 100 ? -f[i] : std::sqrt(std::fabs(f[i]));
    l[i] += n[i] / 7 - 1;
    if (f[i] < d[i]) sum += 1;
    if (d[i] == static_cast<double>(n[i])) sum += 2;
    if (!(l[i] >= static_cast<long double>(d[i]))) sum += 4;
    sum = sum * 31 + std::bit_cast<uint64_t>(d[i]) + std::bit_cast<uint32_t>(f[i]) + static_cast<uint64_t>(n[i]) + u[i];
    uint64_t mantissa;
    std::memcpy(&mantissa, &l[i], sizeof mantissa);
    sum += mantissa;
  }
  return sum;
}

template <class T>
uint64_t use_atomic(std::byte* at) {
  auto& value = *std::construct_at(reinterpret_cast<std::atomic<T>*>(at), T{5});
  uint64_t sum = value.fetch_add(3) + value.fetch_sub(1);
  sum = sum * 31 + value.fetch_or(T{0x41}) + value.fetch_and(T{0x6f}) + value.fetch_xor(T{0x13});
  sum = sum * 31 + value.exchange(T{77}) + ++value + value--;
  T expected = 77;
  sum += value.compare_exchange_strong(expected, T{1}) ? 1 : 2;
  expected = 9;
  sum += value.compare_exchange_weak(expected, T{2}) ? 4 : 8;
  sum = sum * 31 + expected + value.load();
  value.store(T{100});
  value += 2;
  value |= T{8};
  value &= T{0x7c};
  if ((value.fetch_or(T{1} << 3) & (T{1} << 3)) != 0) sum += 16;
  if (value.fetch_sub(1) == 1) sum += 32;
  return sum * 31 + value;
}

uint64_t atomics(std::byte* memory) {
  uint64_t sum = 0;
  for (size_t place : {0, 8, 56, 64, 72}) {
    sum = sum * 31 + use_atomic<uint8_t>(memory + place + 3);
    sum = sum * 31 + use_atomic<uint16_t>(memory + place + 6);
    sum = sum * 31 + use_atomic<uint32_t>(memory + 128 + place);
    sum = sum * 31 + use_atomic<uint64_t>(memory + 256 + place);
    sum = sum * 31 + use_atomic<int64_t>(memory + 512 + place);
  }
  auto& flag = *std::construct_at(reinterpret_cast<std::atomic_flag*>(memory + 1000));
  sum += flag.test_and_set() ? 1 : 2;
  sum += flag.test_and_set() ? 4 : 8;
  auto& pointer = *std::construct_at(reinterpret_cast<std::atomic<int*>*>(memory + 1008), nullptr);
  pointer.fetch_add(4);
  return sum + reinterpret_cast<uint64_t>(pointer.load());
}

// Takes from the memory what it is asked for, and takes nothing back.
template <class T>
struct Bump {
  using value_type = T;
  std::byte** next;
  explicit Bump(std::byte** n) : next(n) {}
  template <class U>
  Bump(const Bump<U>& other) : next(other.next) {}  // NOLINT: as allocators have it
  T* allocate(size_t count) {
    auto* at = reinterpret_cast<T*>(*next);
    *next += (count * sizeof(T) + 15) / 16 * 16;
    return at;
  }
  void deallocate(T*, size_t) {}
  template <class U>
  bool operator==(const Bump<U>& other) const {
    return next == other.next;
  }
};

uint64_t containers(std::byte* memory) {
  std::byte* next = memory;
  using Pair = std::pair<const int, uint64_t>;
  std::map<int, uint64_t, std::less<>, Bump<Pair>> map{Bump<Pair>(&next)};
  for (int i = 0; i < 100; ++i) map[static_cast<int>(next_random() % 60)] += static_cast<uint64_t>(i);
  for (int i = 0; i < 20; ++i) map.erase(i * 3);
  uint64_t sum = 0;
  for (const auto& [key, value] : map) sum = sum * 31 + static_cast<uint64_t>(key) * 7 + value;
  std::vector<uint16_t, Bump<uint16_t>> numbers{Bump<uint16_t>(&next)};
  for (int i = 0; i < 200; ++i) numbers.push_back(static_cast<uint16_t>(next_random()));
  std::sort(numbers.begin(), numbers.end());
  for (uint16_t n : numbers) sum = sum * 31 + n;
  using Text = std::basic_string<char, std::char_traits<char>, Bump<char>>;
  Text text{Bump<char>(&next)};
  for (int i = 0; i < 60; ++i) text += static_cast<char>('a' + i % 26);
  text.replace(10, 5, "0123456789");
  text.insert(3, 40, '-');
  for (char c : text) sum = sum * 31 + static_cast<uint8_t>(c);
  return sum + map.size() + text.find("yz") + static_cast<uint64_t>(map.lower_bound(30)->first);
}

// Functions that the memory points to, and a virtual one whose object lies there.
struct Shape {
  virtual ~Shape() = default;
  virtual uint64_t area() const = 0;
};
struct Square final : Shape {
  explicit Square(uint64_t s) : side(s) {}
  uint64_t area() const override { return side * side; }
  uint64_t side;
};
struct Box final : Shape {
  Box(uint64_t w, uint64_t h) : width(w), height(h) {}
  uint64_t area() const override { return width * height; }
  uint64_t width, height;
};
uint64_t twice(uint64_t n) { return 2 * n; }
uint64_t square(uint64_t n) { return n * n; }

uint64_t calls(std::byte* memory) {
  auto** functions = reinterpret_cast<uint64_t (**)(uint64_t)>(memory);
  functions[0] = twice;
  functions[1] = square;
  auto* shapes = reinterpret_cast<Shape**>(memory + 64);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    shapes[i] = i % 3 == 0 ? static_cast<Shape*>(new (memory + 1024 + 32 * i) Square(i + 1))
                           : static_cast<Shape*>(new (memory + 1024 + 32 * i) Box(i, 3));
    sum = sum * 3 + functions[i % 2](i);
  }
  for (uint64_t i = 0; i < 20; ++i) sum = sum * 3 + shapes[(i * 7) % 20]->area();
  switch (reinterpret_cast<volatile uint32_t*>(memory)[1] % 8) {
    case 1:
      return sum + 5;
    case 7:
      return sum + 6;
    default:
      return sum + 7;
  }
}

uint64_t wide_arithmetic(std::byte* memory) {
  __extension__ using Wide = unsigned __int128;
  auto* wide = reinterpret_cast<Wide*>(memory);
  auto* words = reinterpret_cast<uint64_t*>(memory + 1024);
  auto* small = reinterpret_cast<int32_t*>(memory + 2048);
  uint64_t sum = 0;
  for (int i = 0; i < 60; ++i) {
    const int at = i % 8;
    words[at] += next_random() | 1;
    small[at] += static_cast<int32_t>(next_random()) | 1;
    wide[at] += static_cast<Wide>(words[at]) * words[(at + 1) % 8];
    wide[at] -= words[(at + 3) % 8];
    if (wide[at] > wide[(at + 1) % 8]) sum += 3;
    sum += static_cast<uint64_t>(wide[at] >> 64) / (words[at] | 1) +
           static_cast<uint64_t>(small[at] % (small[(at + 1) % 8] | 1));
    int32_t product;
    sum = sum * 31 + (__builtin_mul_overflow(small[at], small[(at + 2) % 8], &product) ? 1 : 0) +
          static_cast<uint32_t>(product);
    uint64_t carried;
    sum += __builtin_add_overflow(words[at], words[(at + 1) % 8], &carried) ? carried : carried * 2;
  }
  return sum;
}

}  // namespace

extern const Program PROGRAM;
const Program PROGRAM = {PROGRAM_TEXT,
                         [] { g_state = 1; },
                         {{"walk_structures", walk_structures},
                          {"bitfields", bitfields},
                          {"shifts_and_bits", shifts_and_bits},
                          {"strings", strings},
                          {"sort_numbers", sort_numbers},
                          {"arrays", arrays},
                          {"floating_point", floating_point},
                          {"atomics", atomics},
                          {"containers", containers},
                          {"calls", calls},
                          {"wide_arithmetic", wide_arithmetic}}};

}  // namespace ub::aperture::test
