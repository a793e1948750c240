// SPDX-License-Identifier: Apache-2.0
// packet_kind.h - what kind of packet a frame is, so that a fault can concern some kinds only. It looks at headers and
// believes none: a frame that cannot be read is of the kind "other".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ub::impair {

enum class Kind : uint8_t {
  kData,   // data packets of an RTP channel, with requests and responses; unreliable datagrams
  kAck,    // TPACK, TPNAK, TPSACK and CNP of an RTP channel
  kSetup,  // control records, which make, probe and end channels
  kCtp,    // packets of the compact transport
  kRoce,   // packets to the UDP port of RoCEv2
  kOther,
};

// A set of kinds, a bit for each.
using Kinds = uint8_t;
inline constexpr Kinds kAllKinds = 0x3F;
constexpr Kinds kinds_of(Kind kind) { return static_cast<Kinds>(1u << static_cast<unsigned>(kind)); }
constexpr bool has_kind(Kinds kinds, Kind kind) { return (kinds & kinds_of(kind)) != 0; }

Kind kind_of(std::span<const std::byte> eth_frame);

}  // namespace ub::impair
