// SPDX-License-Identifier: Apache-2.0
//
// The names of entities, hosts and objects: plain values that the Core and its callers share. wire/ writes them into
// packets.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace ub {

/// Entity (endpoint) id, network byte order: 108-bit prefix and 20-bit Sub-ID. Over IP it is the entity's address
/// (IpAddress::bytes). UB Base Specification Rev 2.0, appendix B.3.
struct Eid {
  std::array<uint8_t, 16> bytes{};

  constexpr uint32_t sub_id() const { return (bytes[13] & 15u) << 16 | uint32_t{bytes[14]} << 8 | bytes[15]; }
  constexpr bool operator==(const Eid&) const = default;
};

/// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  static constexpr IpAddress from_v4(uint32_t host_order) {
    IpAddress a;
    a.bytes[10] = a.bytes[11] = 0xFF;
    for (int i = 0; i < 4; ++i) a.bytes[12 + i] = static_cast<uint8_t>(host_order >> (24 - 8 * i));
    return a;
  }
  constexpr bool is_v4() const {
    for (int i = 0; i < 10; ++i)
      if (bytes[i] != 0) return false;
    return bytes[10] == 0xFF && bytes[11] == 0xFF;
  }
  /// The IPv4 address in host order; only meaningful when is_v4().
  constexpr uint32_t v4() const {
    return uint32_t{bytes[12]} << 24 | uint32_t{bytes[13]} << 16 | uint32_t{bytes[14]} << 8 | bytes[15];
  }
  /// Compares two words instead of calling memcmp, because every packet needs this comparison.
  bool operator==(const IpAddress& o) const {
    uint64_t a[2], b[2];
    std::memcpy(a, bytes.data(), sizeof a);
    std::memcpy(b, o.bytes.data(), sizeof b);
    return a[0] == b[0] && a[1] == b[1];
  }
};

struct Endpoint {
  IpAddress ip;
  uint16_t port = 0;  ///< UDP port, host order

  bool operator==(const Endpoint&) const = default;
};

using MacAddress = std::array<uint8_t, 6>;

// Jettys, JFSs, JFRs and groups share one space of ids; token ids have another one of the same size.
inline constexpr uint32_t kIdSpace = 1u << 20;
inline constexpr uint32_t kFirstRequestableId = 3;  ///< lower ids belong to the protocol
/// Lower ids are given out only to programs that ask for them by number; each has a UDP port (wire/id_port.h).
inline constexpr uint32_t kFirstDynamicId = 3072;

}  // namespace ub
