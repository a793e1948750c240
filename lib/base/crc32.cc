// SPDX-License-Identifier: Apache-2.0
// crc32.cc - three engines for one sum.
// Table: slicing by 16. Pclmul and vpclmul: the message is a polynomial over GF(2); a 128-bit block that lies
// D bits before another may be replaced by block * (x^D mod P) added to the later one, so the message is
// folded into one block which is then reduced to 32 bits. Bits are reflected (lowest bit = highest power),
// which makes every carry-less product come out one place low; the constants are shifted by one to make up
// for it.
#include "lib/base/crc32.h"

#include <array>
#include <atomic>
#include <cstring>

#include "lib/base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ub {
namespace {

constexpr uint32_t kPolyReflected = 0xEDB88320;

// ---------------------------------------------------------------- table

constexpr size_t kSlices = 16;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) != 0 ? kPolyReflected : 0);
    t[0][i] = c;
  }
  for (size_t s = 1; s < kSlices; ++s)
    for (uint32_t i = 0; i < 256; ++i) t[s][i] = (t[s - 1][i] >> 8) ^ t[0][t[s - 1][i] & 0xFF];
  return t;
}

alignas(64) constexpr Tables kTables = make_tables();

inline uint32_t slice_word(uint32_t w, size_t lowest) {
  return kTables[lowest + 3][w & 0xFF] ^ kTables[lowest + 2][w >> 8 & 0xFF] ^ kTables[lowest + 1][w >> 16 & 0xFF] ^
         kTables[lowest][w >> 24];
}

template <bool kCopy>
uint32_t table_run(uint32_t state, std::byte* dst, const std::byte* src, size_t n) {
  for (; n >= 16; n -= 16, src += 16) {
    const uint64_t a = load_le64(src), b = load_le64(src + 8);
    if constexpr (kCopy) {
      store_le64(dst, a);
      store_le64(dst + 8, b);
      dst += 16;
    }
    state = slice_word(static_cast<uint32_t>(a) ^ state, 12) ^ slice_word(static_cast<uint32_t>(a >> 32), 8) ^
            slice_word(static_cast<uint32_t>(b), 4) ^ slice_word(static_cast<uint32_t>(b >> 32), 0);
  }
  for (; n >= 4; n -= 4, src += 4) {
    const uint32_t w = load_le32(src);
    if constexpr (kCopy) {
      store_le32(dst, w);
      dst += 4;
    }
    state = slice_word(w ^ state, 0);
  }
  for (; n > 0; --n, ++src) {
    const uint8_t b = load_u8(src);
    if constexpr (kCopy) store_u8(dst++, b);
    state = (state >> 8) ^ kTables[0][(state ^ b) & 0xFF];
  }
  return state;
}

// ---------------------------------------------------------------- backwards

/// a * b mod P, reflected: the highest bit is x^0.
constexpr uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolyReflected : 0);
  }
  return product;
}

/// x^(-8 * 2^k) mod P.
constexpr std::array<uint32_t, 16> make_rewinds() {
  uint32_t r = 0x80000000;
  for (int i = 0; i < 8; ++i) r = (r & 0x80000000) != 0 ? (r ^ kPolyReflected) << 1 | 1 : r << 1;
  std::array<uint32_t, 16> powers{};
  for (uint32_t& power : powers) {
    power = r;
    r = times(r, r);
  }
  return powers;
}

constexpr auto kRewinds = make_rewinds();

// ---------------------------------------------------------------- carry-less multiplication

#if defined(__x86_64__)

/// x^n mod P, reflected in 33 bits (the product's shift included).
constexpr uint64_t fold_constant(unsigned n) {
  uint32_t r = 0x80000000;  // x^0 in reflected form
  for (unsigned i = 0; i < n; ++i) r = (r >> 1) ^ ((r & 1) != 0 ? kPolyReflected : 0);
  return uint64_t{r} << 1;
}

/// Moves a block forward by `bits`: .lo multiplies its earlier (low) 64 bits, .hi its later ones.
struct FoldBy {
  uint64_t lo, hi;
  constexpr explicit FoldBy(unsigned bits) : lo(fold_constant(bits + 32)), hi(fold_constant(bits - 32)) {}
};
constexpr FoldBy kFold2048{2048}, kFold512{512}, kFold384{384}, kFold256{256}, kFold128{128};
static_assert(kFold512.lo == 0x154442bd4 && kFold512.hi == 0x1c6e41596);
static_assert(kFold128.lo == 0x1751997d0 && kFold128.hi == 0x0ccaa009e);
constexpr uint64_t kFold64 = fold_constant(64);
constexpr uint64_t kPoly33 = 0x1db710641;   // P, reflected
constexpr uint64_t kBarrett = 0x1f7011641;  // floor(x^64 / P), reflected
static_assert(kFold64 == 0x163cd6124);

#define UB_PCLMUL_TARGET __attribute__((target("pclmul,sse4.1,ssse3")))
#define UB_PCLMUL_INLINE UB_PCLMUL_TARGET __attribute__((always_inline)) inline

UB_PCLMUL_INLINE __m128i load16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
UB_PCLMUL_INLINE void store16(std::byte* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

UB_PCLMUL_INLINE __m128i constants(FoldBy by) {
  return _mm_set_epi64x(static_cast<int64_t>(by.hi), static_cast<int64_t>(by.lo));
}

UB_PCLMUL_INLINE __m128i fold(__m128i block, __m128i k, __m128i onto) {
  return _mm_xor_si128(onto, _mm_xor_si128(_mm_clmulepi64_si128(block, k, 0x00), _mm_clmulepi64_si128(block, k, 0x11)));
}

/// 128 bits to the 32-bit state.
UB_PCLMUL_INLINE uint32_t reduce(__m128i x) {
  const __m128i low32 = _mm_setr_epi32(-1, 0, 0, 0);
  // 128 -> 96: the low half moves up by 64 bits; 96 -> 64: its low 32 bits by 64 again.
  x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, constants(kFold128), 0x10));
  x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low32),
                                                               _mm_cvtsi64_si128(static_cast<int64_t>(kFold64)), 0x00));
  // Barrett: quotient from the low 32 bits, then subtract quotient * P.
  const __m128i poly = _mm_set_epi64x(static_cast<int64_t>(kBarrett), static_cast<int64_t>(kPoly33));
  __m128i q = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(x, low32), poly, 0x10), low32);
  x = _mm_xor_si128(x, _mm_clmulepi64_si128(q, poly, 0x00));
  return static_cast<uint32_t>(_mm_extract_epi32(x, 1));
}

// pshufb index bytes; loading at 16 - t .. gives a shift by t bytes.
alignas(16) constexpr uint8_t kShift[48] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,  //
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,    //
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
};
/// Byte i of the result is byte i - n of x (n in -16..16), zero outside.
UB_PCLMUL_INLINE __m128i shift_up(__m128i x, ptrdiff_t n) {
  return _mm_shuffle_epi8(x, load16(reinterpret_cast<const std::byte*>(kShift) + 16 - n));
}

/// Folds the last 1-15 bytes into x: the stream (16 - t zeros, x, tail) is two whole blocks.
/// `block` holds the tail in its low t bytes, zeros above.
UB_PCLMUL_INLINE __m128i fold_tail(__m128i x, __m128i block, size_t t) {
  const ptrdiff_t n = static_cast<ptrdiff_t>(t);
  const __m128i first = shift_up(x, 16 - n);
  const __m128i second = _mm_or_si128(shift_up(x, -n), shift_up(block, 16 - n));
  return fold(first, constants(kFold128), second);
}

/// The 1-15 bytes at src, zero-extended; never touches a byte outside.
UB_PCLMUL_INLINE __m128i load_partial(const std::byte* src, size_t t) {
  uint64_t lo = 0, hi = 0;
  if (t >= 8) {
    lo = load_le64(src);
    if (t > 8) hi = load_le64(src + t - 8) >> (8 * (16 - t));
  } else if (t >= 4) {
    lo = load_le32(src) | uint64_t{load_le32(src + t - 4)} << (8 * (t - 4));
  } else {
    lo = load_u8(src);
    if (t >= 2) lo |= uint64_t{load_le16(src + t - 2)} << (8 * (t - 2));
  }
  return _mm_set_epi64x(static_cast<int64_t>(hi), static_cast<int64_t>(lo));
}

/// Folds n bytes (any number) into x, 16 at a time, then reduces.
template <bool kCopy>
UB_PCLMUL_INLINE uint32_t finish_blocks(__m128i x, std::byte* dst, const std::byte* src, size_t n) {
  const __m128i k = constants(kFold128);
  for (; n >= 16; n -= 16, src += 16) {
    const __m128i b = load16(src);
    if constexpr (kCopy) {
      store16(dst, b);
      dst += 16;
    }
    x = fold(x, k, b);
  }
  if (n > 0) {
    if constexpr (kCopy) {
      std::memcpy(dst, src, n);
      src = dst;
    }
    x = fold_tail(x, load_partial(src, n), n);
  }
  return reduce(x);
}

template <bool kCopy>
UB_PCLMUL_TARGET uint32_t pclmul_run(uint32_t state, std::byte* dst, const std::byte* src, size_t n) {
  if (n < 16) return table_run<kCopy>(state, dst, src, n);
  const __m128i init = _mm_cvtsi32_si128(static_cast<int>(state));
  if (n < 64) {
    const __m128i x = load16(src);
    if constexpr (kCopy) store16(dst, x);
    return finish_blocks<kCopy>(_mm_xor_si128(x, init), kCopy ? dst + 16 : dst, src + 16, n - 16);
  }
  __m128i x[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = load16(src + 16 * i);
    if constexpr (kCopy) store16(dst + 16 * i, x[i]);
  }
  x[0] = _mm_xor_si128(x[0], init);
  src += 64;
  if constexpr (kCopy) dst += 64;
  const __m128i k = constants(kFold512);
  for (n -= 64; n >= 64; n -= 64, src += 64) {
    for (int i = 0; i < 4; ++i) {
      const __m128i b = load16(src + 16 * i);
      if constexpr (kCopy) store16(dst + 16 * i, b);
      x[i] = fold(x[i], k, b);
    }
    if constexpr (kCopy) dst += 64;
  }
  x[3] = fold(x[0], constants(kFold384), x[3]);
  x[3] = fold(x[1], constants(kFold256), x[3]);
  x[3] = fold(x[2], constants(kFold128), x[3]);
  return finish_blocks<kCopy>(x[3], dst, src, n);
}

#define UB_VPCLMUL_TARGET __attribute__((target("vpclmulqdq,avx512f,avx512dq,avx512vl,pclmul,sse4.1,ssse3")))

UB_VPCLMUL_TARGET __attribute__((always_inline)) inline __m512i wide_constants(FoldBy by) {
  return _mm512_set4_epi64(static_cast<int64_t>(by.hi), static_cast<int64_t>(by.lo), static_cast<int64_t>(by.hi),
                           static_cast<int64_t>(by.lo));
}
UB_VPCLMUL_TARGET __attribute__((always_inline)) inline __m512i wide_fold(__m512i block, __m512i k, __m512i onto) {
  constexpr int kXor3 = 0x96;
  return _mm512_ternarylogic_epi64(onto, _mm512_clmulepi64_epi128(block, k, 0x00),
                                   _mm512_clmulepi64_epi128(block, k, 0x11), kXor3);
}

template <bool kCopy>
UB_VPCLMUL_TARGET uint32_t vpclmul_run(uint32_t state, std::byte* dst, const std::byte* src, size_t n) {
  if (n < 512) return pclmul_run<kCopy>(state, dst, src, n);
  __m512i x[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_loadu_si512(src + 64 * i);
    if constexpr (kCopy) _mm512_storeu_si512(dst + 64 * i, x[i]);
  }
  x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  src += 256;
  if constexpr (kCopy) dst += 256;
  const __m512i k = wide_constants(kFold2048);
  for (n -= 256; n >= 256; n -= 256, src += 256) {
    for (int i = 0; i < 4; ++i) {
      const __m512i b = _mm512_loadu_si512(src + 64 * i);
      if constexpr (kCopy) _mm512_storeu_si512(dst + 64 * i, b);
      x[i] = wide_fold(x[i], k, b);
    }
    if constexpr (kCopy) dst += 256;
  }
  const __m512i k512 = wide_constants(kFold512);
  for (int i = 1; i < 4; ++i) x[i] = wide_fold(x[i - 1], k512, x[i]);
  __m512i y = x[3];
  for (; n >= 64; n -= 64, src += 64) {
    const __m512i b = _mm512_loadu_si512(src);
    if constexpr (kCopy) {
      _mm512_storeu_si512(dst, b);
      dst += 64;
    }
    y = wide_fold(y, k512, b);
  }
  // The four lanes are consecutive blocks: bring the first three forward onto the last.
  __m128i z = _mm512_extracti64x2_epi64(y, 3);
  z = fold(_mm512_extracti64x2_epi64(y, 0), constants(kFold384), z);
  z = fold(_mm512_extracti64x2_epi64(y, 1), constants(kFold256), z);
  z = fold(_mm512_extracti64x2_epi64(y, 2), constants(kFold128), z);
  return finish_blocks<kCopy>(z, dst, src, n);
}

#endif  // __x86_64__

// ---------------------------------------------------------------- choice

using Run = uint32_t (*)(uint32_t, std::byte*, const std::byte*, size_t);

Run engine_run(Crc32Engine engine, bool copy) {
#if defined(__x86_64__)
  if (engine == Crc32Engine::kVpclmul) return copy ? vpclmul_run<true> : vpclmul_run<false>;
  if (engine == Crc32Engine::kPclmul) return copy ? pclmul_run<true> : pclmul_run<false>;
#endif
  (void)engine;
  return copy ? table_run<true> : table_run<false>;
}

uint32_t first_update(uint32_t state, std::byte* dst, const std::byte* src, size_t n);
uint32_t first_copy(uint32_t state, std::byte* dst, const std::byte* src, size_t n);

// Start as the functions that choose, so that a call from another static initialiser works too. Threads that
// race store the same pointers.
constinit std::atomic<Run> g_update{first_update};
constinit std::atomic<Run> g_copy{first_copy};

void choose() {
  g_update.store(engine_run(crc32_engine_chosen(), false), std::memory_order_relaxed);
  g_copy.store(engine_run(crc32_engine_chosen(), true), std::memory_order_relaxed);
}

uint32_t first_update(uint32_t state, std::byte* dst, const std::byte* src, size_t n) {
  choose();
  return g_update.load(std::memory_order_relaxed)(state, dst, src, n);
}

uint32_t first_copy(uint32_t state, std::byte* dst, const std::byte* src, size_t n) {
  choose();
  return g_copy.load(std::memory_order_relaxed)(state, dst, src, n);
}

}  // namespace

uint32_t crc32_update(uint32_t state, const std::byte* data, size_t size_bytes) {
  return g_update.load(std::memory_order_relaxed)(state, nullptr, data, size_bytes);
}

uint32_t crc32_rewind(uint32_t state, size_t zero_bytes) {
  for (size_t i = 0; i < kRewinds.size(); ++i) {
    if ((zero_bytes >> i & 1) != 0) state = times(state, kRewinds[i]);
  }
  return state;
}

uint32_t crc32_copy_update(uint32_t state, std::byte* dst, const std::byte* src, size_t size_bytes) {
  return g_copy.load(std::memory_order_relaxed)(state, dst, src, size_bytes);
}

bool crc32_engine_supported(Crc32Engine engine) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool pclmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (engine == Crc32Engine::kPclmul) return pclmul;
  if (engine == Crc32Engine::kVpclmul)
    return pclmul && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return engine == Crc32Engine::kTable;
}

const char* crc32_engine_name(Crc32Engine engine) {
  switch (engine) {
    case Crc32Engine::kTable:
      return "table";
    case Crc32Engine::kPclmul:
      return "pclmul";
    case Crc32Engine::kVpclmul:
      return "vpclmul";
  }
  return "?";
}

Crc32Engine crc32_engine_chosen() {
  if (crc32_engine_supported(Crc32Engine::kVpclmul)) return Crc32Engine::kVpclmul;
  return crc32_engine_supported(Crc32Engine::kPclmul) ? Crc32Engine::kPclmul : Crc32Engine::kTable;
}

uint32_t crc32_update_with(Crc32Engine engine, uint32_t state, const std::byte* data, size_t size_bytes) {
  return engine_run(engine, false)(state, nullptr, data, size_bytes);
}

uint32_t crc32_copy_update_with(Crc32Engine engine, uint32_t state, std::byte* dst, const std::byte* src,
                                size_t size_bytes) {
  return engine_run(engine, true)(state, dst, src, size_bytes);
}

}  // namespace ub
