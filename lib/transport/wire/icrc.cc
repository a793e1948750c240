// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/icrc.h"

#include <cstring>

#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::wire {
namespace {

constexpr size_t kMaskedV4 = kIpv4Size + kUdpSize;
constexpr size_t kMaskedV6 = kIpv6Size + kUdpSize;

inline void mask(std::byte* p, uint32_t bits_be) {
  store_be32(p, load_be32(p) | bits_be);
}

}  // namespace

uint32_t icrc_begin(const std::byte* l3, bool is_v6) {
  std::byte h[kMaskedV6];
  if (!is_v6) {
    std::memcpy(h, l3, kMaskedV4);
    mask(h, 0x00FF0000);       // ToS
    mask(h + 8, 0xFF00FFFF);   // TTL, header checksum
    mask(h + 24, 0x0000FFFF);  // UDP checksum
    return crc32_update(crc32_init(), h, kMaskedV4);
  }
  std::memcpy(h, l3, kMaskedV6);
  mask(h, 0x0FFFFFFF);       // traffic class, flow label
  mask(h + 4, 0x000000FF);   // hop limit
  mask(h + 44, 0x0000FFFF);  // UDP checksum
  return crc32_update(crc32_init(), h, kMaskedV6);
}

uint32_t icrc_begin_nth24(const std::byte* nth) {
  std::byte h[Nth24::kSize];
  std::memcpy(h, nth, sizeof h);
  h[6] = h[7] = h[8] = std::byte{0xFF};  // CCI, LBF
  return crc32_update(crc32_init(), h, sizeof h);
}

uint32_t icrc_compute(const std::byte* l3, size_t size_bytes, bool is_v6) {
  const size_t head = is_v6 ? kMaskedV6 : kMaskedV4;
  return icrc_finish(crc32_update(icrc_begin(l3, is_v6), l3 + head, size_bytes - head));
}

uint32_t icrc_compute_nth24(const std::byte* nth, size_t size_bytes) {
  return icrc_finish(crc32_update(icrc_begin_nth24(nth), nth + Nth24::kSize, size_bytes - Nth24::kSize));
}

}  // namespace ub::wire
