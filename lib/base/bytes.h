// SPDX-License-Identifier: Apache-2.0
// bytes.h - reads integers from unaligned memory and writes them there, in both byte orders. Fields on the wire are
// big-endian (UB Base Specification Rev 2.0, 5.2); the ICRC, SACK bitmaps and atomic operands are little-endian. Every
// function compiles to one or two moves. None of them checks a length; that is up to the callers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/uint128.h"

namespace ub {

static_assert(std::endian::native == std::endian::little, "big-endian hosts are not supported");

namespace detail {
template <class T>
inline T load_raw(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store_raw(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}
}  // namespace detail

inline uint8_t load_u8(const std::byte* p) { return static_cast<uint8_t>(*p); }
inline void store_u8(std::byte* p, uint8_t v) { *p = static_cast<std::byte>(v); }

inline uint16_t load_be16(const std::byte* p) { return __builtin_bswap16(detail::load_raw<uint16_t>(p)); }
inline uint32_t load_be24(const std::byte* p) {
  return uint32_t{load_u8(p)} << 16 | uint32_t{load_u8(p + 1)} << 8 | load_u8(p + 2);
}
inline uint32_t load_be32(const std::byte* p) { return __builtin_bswap32(detail::load_raw<uint32_t>(p)); }
inline uint64_t load_be64(const std::byte* p) { return __builtin_bswap64(detail::load_raw<uint64_t>(p)); }
inline uint128 load_be128(const std::byte* p) { return make_uint128(load_be64(p + 8), load_be64(p)); }

inline void store_be16(std::byte* p, uint16_t v) { detail::store_raw(p, __builtin_bswap16(v)); }
inline void store_be24(std::byte* p, uint32_t v) {
  store_u8(p, static_cast<uint8_t>(v >> 16));
  store_be16(p + 1, static_cast<uint16_t>(v));
}
inline void store_be32(std::byte* p, uint32_t v) { detail::store_raw(p, __builtin_bswap32(v)); }
inline void store_be64(std::byte* p, uint64_t v) { detail::store_raw(p, __builtin_bswap64(v)); }
inline void store_be128(std::byte* p, uint128 v) {
  store_be64(p, high_half(v));
  store_be64(p + 8, low_half(v));
}

inline uint16_t load_le16(const std::byte* p) { return detail::load_raw<uint16_t>(p); }
inline uint32_t load_le32(const std::byte* p) { return detail::load_raw<uint32_t>(p); }
inline uint64_t load_le64(const std::byte* p) { return detail::load_raw<uint64_t>(p); }
inline void store_le16(std::byte* p, uint16_t v) { detail::store_raw(p, v); }
inline void store_le32(std::byte* p, uint32_t v) { detail::store_raw(p, v); }
inline void store_le64(std::byte* p, uint64_t v) { detail::store_raw(p, v); }

}  // namespace ub
