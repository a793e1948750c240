// SPDX-License-Identifier: Apache-2.0
//
// The helpers of ub_util.h and ub_get_clock.h that are not inline.
//
// Idea: nothing here touches the rest of the library, so programs can use it before urma_init. The only state
// is the rate of the cycle counter and the sizes of the huge-page mappings.
#include "ub_util.h"

#include <sys/mman.h>

#include <cctype>
#include <cerrno>
#include <climits>
#include <cmath>
#include <map>
#include <mutex>
#include <new>

#include "lib/base/tick_scale.h"
#include "ub_get_clock.h"

namespace {

// Reads an unsigned number in the notations of strtoul with base 0. strtoul itself would accept leading
// blanks and signs; only a digit may come first here.
int parse_unsigned(const char* buf, int base, uint64_t limit, uint64_t* result) {
  if (buf == nullptr || !isxdigit(static_cast<unsigned char>(buf[0]))) return -EINVAL;
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = strtoull(buf, &end, base);
  if (end == buf || *end != '\0') return -EINVAL;
  if (errno == ERANGE || value > limit) return -ERANGE;
  *result = value;
  return 0;
}

template <typename T>
int parse_to(const char* buf, T* result) {
  uint64_t value;
  if (result == nullptr) return -EINVAL;
  const int ret = parse_unsigned(buf, 0, static_cast<T>(-1), &value);
  if (ret == 0) *result = static_cast<T>(value);
  return ret;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// First bit at or after offset in the array, each word XORed with `flip` (all ones: look for clear bits).
unsigned long find_bit(const unsigned long* array, unsigned long size, unsigned long offset, unsigned long flip) {
  if (array == nullptr || offset >= size) return size;
  unsigned long word = offset / BITS_PER_LONG;
  unsigned long bits = (array[word] ^ flip) & (~0UL << (offset % BITS_PER_LONG));
  while (bits == 0) {
    ++word;
    if (word * BITS_PER_LONG >= size) return size;
    bits = array[word] ^ flip;
  }
  const unsigned long bit = word * BITS_PER_LONG + static_cast<unsigned long>(__builtin_ctzl(bits));
  return bit < size ? bit : size;
}

}  // namespace

// ---- Bit search ----

extern "C" unsigned long ub_find_first_bit(const unsigned long* array, unsigned long size) {
  return find_bit(array, size, 0, 0);
}

extern "C" unsigned long ub_find_next_bit(const unsigned long* array, unsigned long size, unsigned long offset) {
  return find_bit(array, size, offset, 0);
}

extern "C" unsigned long ub_find_first_zero_bit(const unsigned long* array, unsigned long size) {
  return find_bit(array, size, 0, ~0UL);
}

extern "C" unsigned long ub_find_next_zero_bit(const unsigned long* array, unsigned long size, unsigned long offset) {
  return find_bit(array, size, offset, ~0UL);
}

// ---- Text to number ----

extern "C" int ub_str_to_bool(const char* buf, bool* bool_res) {
  if (buf == nullptr || bool_res == nullptr) return -EINVAL;
  if (strcmp(buf, "true") == 0) {
    *bool_res = true;
  } else if (strcmp(buf, "false") == 0) {
    *bool_res = false;
  } else {
    return -EINVAL;
  }
  return 0;
}

extern "C" int ub_str_to_u8(const char* buf, uint8_t* u8) { return parse_to(buf, u8); }
extern "C" int ub_str_to_u16(const char* buf, uint16_t* u16) { return parse_to(buf, u16); }
extern "C" int ub_str_to_u32(const char* buf, uint32_t* u32) { return parse_to(buf, u32); }
extern "C" int ub_str_to_u64(const char* buf, uint64_t* u64) { return parse_to(buf, u64); }

extern "C" int ub_str_to_int(const char* buf, int* value) {
  if (buf == nullptr || value == nullptr) return -EINVAL;
  const bool negative = buf[0] == '-';
  const uint64_t limit = negative ? static_cast<uint64_t>(INT_MAX) + 1 : static_cast<uint64_t>(INT_MAX);
  uint64_t magnitude;
  const int ret = parse_unsigned(negative ? buf + 1 : buf, 0, limit, &magnitude);
  if (ret != 0) return ret;
  const int64_t wide = static_cast<int64_t>(magnitude);
  *value = static_cast<int>(negative ? -wide : wide);
  return 0;
}

extern "C" int ub_hex_str_to_u64(const char* buf, uint64_t* u64) {
  if (u64 == nullptr) return -EINVAL;
  return parse_unsigned(buf, 16, UINT64_MAX, u64);
}

extern "C" uint64_t hexits_value(const char* s, size_t n, bool* ok) {
  uint64_t value = 0;
  bool good = s != nullptr && n > 0;
  for (size_t i = 0; good && i < n; ++i) {
    const int digit = hex_digit(s[i]);
    good = digit >= 0 && value >> 60 == 0;
    if (good) value = (value << 4) | static_cast<uint64_t>(digit);
  }
  if (ok != nullptr) *ok = good;
  return good ? value : UINT64_MAX;
}

extern "C" bool is_valid_digit(const char* buf) {
  uint64_t value;
  const int ret = parse_unsigned(buf, 0, UINT64_MAX, &value);
  return ret == 0 || ret == -ERANGE;
}

// ---- Files ----

extern "C" int safe_write_value_to_file(const char* path, const char* value) {
  if (path == nullptr || value == nullptr) return -EINVAL;
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const size_t length = strlen(value);
  ssize_t written;
  do {
    written = write(fd, value, length);
  } while (written < 0 && errno == EINTR);
  const int ret = written < 0 ? -errno : (static_cast<size_t>(written) == length ? 0 : -EIO);
  (void)close(fd);
  return ret;
}

extern "C" int ub_parse_sysfs_val(const char* path, uint64_t* value) {
  if (path == nullptr || value == nullptr) return -EINVAL;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  char text[64];
  ssize_t got;
  do {
    got = read(fd, text, sizeof(text) - 1);
  } while (got < 0 && errno == EINTR);
  const int err = errno;
  (void)close(fd);
  if (got < 0) return -err;
  text[got] = '\0';
  text[strcspn(text, " \t\r\n")] = '\0';
  return ub_str_to_u64(text, value);
}

// ---- Memory ----

extern "C" int memset_s_large_buf(void* dest, size_t dest_max, int c, size_t count) {
  if (dest == nullptr) return EINVAL;
  if (count > dest_max) return ERANGE;
  memset(dest, c, count);
  return 0;
}

extern "C" int memcpy_s_large_buf(void* dest, size_t dest_max, const void* src, size_t count) {
  if (dest == nullptr || src == nullptr) return EINVAL;
  if (count > dest_max) return ERANGE;
  const uintptr_t d = reinterpret_cast<uintptr_t>(dest);
  const uintptr_t s = reinterpret_cast<uintptr_t>(src);
  if ((d < s ? s - d : d - s) < count) return EINVAL;
  memcpy(dest, src, count);
  return 0;
}

namespace {

constexpr size_t k2MiB = size_t{1} << 21;
constexpr size_t k1GiB = size_t{1} << 30;
constexpr int kHugeShift = 26;  // position of log2(page size) in the flags of mmap

// The kernel releases huge pages only as a whole, but ub_hugefree is not told their size: remember the mapped
// length.
struct HugeMappings {
  std::mutex lock;
  std::map<void*, size_t> length;
};

// Never destroyed: programs may free memory in their own exit handlers.
HugeMappings& huge_mappings() {
  static HugeMappings* const mappings = new HugeMappings;
  return *mappings;
}

// Default huge-page size of the system in bytes.
size_t default_huge_page() {
  size_t bytes = k2MiB;
  FILE* file = fopen("/proc/meminfo", "re");
  if (file == nullptr) return bytes;
  char line[128];
  while (fgets(line, sizeof(line), file) != nullptr) {
    unsigned long kib;
    if (sscanf(line, "Hugepagesize: %lu kB", &kib) == 1 && kib != 0) {
      bytes = size_t{kib} * 1024;
      break;
    }
  }
  (void)fclose(file);
  return bytes;
}

}  // namespace

extern "C" void* ub_hugemalloc(size_t size, urma_huge_page_size_t page_size, void* hint) {
  size_t page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
  switch (static_cast<int>(page_size)) {
    case UB_HUGE_PAGE_SIZE_2MB:
      page = k2MiB;
      flags |= 21 << kHugeShift;
      break;
    case UB_HUGE_PAGE_SIZE_1GB:
      page = k1GiB;
      flags |= 30 << kHugeShift;
      break;
    case UB_HUGE_PAGE_SIZE_ANY:
      page = default_huge_page();
      break;
    default:
      errno = EINVAL;
      return nullptr;
  }
  if (size == 0 || size > SIZE_MAX - page) {
    errno = size == 0 ? EINVAL : ENOMEM;
    return nullptr;
  }
  const size_t length = ROUND_UP(size, page);
  void* const start = mmap(hint, length, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED) {
    errno = ENOMEM;  // also when the kernel has no pages of this size at all
    return nullptr;
  }
  try {
    HugeMappings& mappings = huge_mappings();
    const std::lock_guard<std::mutex> guard(mappings.lock);
    mappings.length[start] = length;
  } catch (const std::bad_alloc&) {
    (void)munmap(start, length);
    errno = ENOMEM;
    return nullptr;
  }
  return start;
}

extern "C" int ub_hugefree(void* buf, size_t size) {
  HugeMappings& mappings = huge_mappings();
  const std::lock_guard<std::mutex> guard(mappings.lock);
  const auto found = mappings.length.find(buf);
  if (found == mappings.length.end() || size > found->second) {
    errno = EINVAL;
    return -1;
  }
  // Under the lock: as soon as the range is free, another thread may map it again and enter it.
  if (munmap(buf, found->second) != 0) return -1;
  mappings.length.erase(found);
  return 0;
}

// ---- Cycle counter ----

#if defined(__aarch64__)

extern "C" double get_cpu_mhz(bool) {
  uint64_t hertz;
  __asm__ __volatile__("mrs %0, cntfrq_el0" : "=r"(hertz));
  return static_cast<double>(hertz) / 1e6;
}

#else

namespace {

constexpr int64_t kIntervalNs = 30'000'000;
constexpr int kReadings = 100;             // per end of the interval
constexpr double kMaxDisagreement = 1e-4;  // between two measurements

int64_t monotonic_ns() {
  timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

ub::ClockPair read_clocks() {
  return ub::read_both<kReadings>(get_cycles, [] { return static_cast<uint64_t>(monotonic_ns()); });
}

// Error: about 50 ns at each end, 3e-6 of the interval.
double measure_mhz() {
  const ub::ClockPair first = read_clocks();
  for (int64_t left = kIntervalNs; left > 0; left = static_cast<int64_t>(first.ns) + kIntervalNs - monotonic_ns()) {
    timespec pause{0, static_cast<long>(left)};
    (void)nanosleep(&pause, nullptr);  // a signal only ends it early
  }
  const ub::ClockPair last = read_clocks();
  return static_cast<double>(last.ticks - first.ticks) * 1e3 / static_cast<double>(last.ns - first.ns);
}

struct Rate {
  double mhz;
  double disagreement;
};

Rate measure_rate() {
  const double a = measure_mhz();
  const double b = measure_mhz();
  return {(a + b) / 2, std::fabs(a - b) / a};
}

}  // namespace

extern "C" double get_cpu_mhz(bool warn) {
  static const Rate rate = measure_rate();
  if (warn && rate.disagreement > kMaxDisagreement) {
    (void)fprintf(stderr, "cycle counter: two measurements of its rate differ by %.4f %%\n", rate.disagreement * 100);
  }
  return rate.mhz;
}

#endif
