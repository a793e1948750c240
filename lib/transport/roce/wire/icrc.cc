// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/wire/icrc.h"

#include <cstring>

#include "lib/transport/roce/wire/bth.h"

namespace ub::roce {
namespace {

constexpr size_t kCongestionByte = 4;  // in BTH: FECN, BECN and reserved bits
constexpr size_t kIdentification = 4;  // in the IPv4 header: two bytes

constexpr size_t network_size(bool is_v6) { return (is_v6 ? wire::kIpv6Size : wire::kIpv4Size) + wire::kUdpSize; }

}  // namespace

uint32_t icrc_begin(const std::byte* l3, bool is_v6) {
  std::byte bth[Bth::kSize];
  std::memcpy(bth, l3 + network_size(is_v6), sizeof bth);
  bth[kCongestionByte] = std::byte{0xFF};
  return crc32_update(wire::icrc_begin(l3, is_v6, kIcrcStart), bth, sizeof bth);
}

uint32_t icrc_compute(const std::byte* l3, size_t size_bytes, bool is_v6) {
  const size_t head = network_size(is_v6) + Bth::kSize;
  return wire::icrc_finish(crc32_update(icrc_begin(l3, is_v6), l3 + head, size_bytes - head));
}

bool icrc_fits(const wire::NetHeader& net) {
  if (net.tp_size() < Bth::kSize) return false;
  return icrc_compute(net.l3, static_cast<size_t>(net.end - net.l3), net.v6) == wire::icrc_load(net.end);
}

// The sums of two packets that differ only in the identification differ by the identification, moved on by the bytes
// that follow it. If that move is taken back, the difference must fit into two bytes.
bool icrc_fits_some_identification(const wire::NetHeader& net) {
  if (icrc_fits(net)) return true;
  if (net.v6 || net.tp_size() < Bth::kSize) return false;
  const auto size_bytes = static_cast<size_t>(net.end - net.l3);
  const uint32_t difference = icrc_compute(net.l3, size_bytes, false) ^ wire::icrc_load(net.end);
  return crc32_rewind(difference, size_bytes - kIdentification) >> 16 == 0;
}

}  // namespace ub::roce
