// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/wire/icrc.h"

#include <cstring>

#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::wire {
namespace {

constexpr size_t kMaskedV4 = kIpv4Size + kUdpSize;
constexpr size_t kMaskedV6 = kIpv6Size + kUdpSize;

// Ones where a hop may write. The masked header is built and stored in blocks of 16 bytes, the size in which
// the CRC reads it back: smaller stores would make those loads wait until they have left the store buffer.
struct alignas(16) Mask {
  uint8_t bytes[16];
};
constexpr Mask kV4Front{{0, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0, 0xFF, 0xFF}};       // ToS, TTL, header checksum
constexpr Mask kV4Back{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}};  // UDP checksum
constexpr Mask kV6Front{{0x0F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0xFF}};                // class, flow label, hop limit
constexpr Mask kV6Middle{};
constexpr Mask kV6Back = kV4Back;

void copy_masked(std::byte* dst, const std::byte* src, const Mask& mask) {
  using Block = uint64_t __attribute__((vector_size(16)));
  Block v, m;
  std::memcpy(&v, src, 16);
  std::memcpy(&m, &mask, 16);
  v |= m;
  std::memcpy(dst, &v, 16);
}

}  // namespace

uint32_t icrc_begin(const std::byte* l3, bool is_v6, uint32_t state) {
  std::byte h[kMaskedV6];
  if (!is_v6) {
    copy_masked(h + kMaskedV4 - 16, l3 + kMaskedV4 - 16, kV4Back);
    copy_masked(h, l3, kV4Front);  // last: the first load is all of it
    return crc32_update(state, h, kMaskedV4);
  }
  copy_masked(h, l3, kV6Front);
  copy_masked(h + 16, l3 + 16, kV6Middle);
  copy_masked(h + 32, l3 + 32, kV6Back);
  return crc32_update(state, h, kMaskedV6);
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

uint32_t icrc_of_packet(const std::byte* p, size_t size_bytes, NetForm form) {
  if (form == NetForm::kIpv4) [[likely]]
    return icrc_compute(p, size_bytes, false);
  if (form == NetForm::kIpv6) return icrc_compute(p, size_bytes, true);
  return icrc_compute_nth24(p + LinkHeader::kSize, size_bytes - LinkHeader::kSize);
}

}  // namespace ub::wire
