// SPDX-License-Identifier: Apache-2.0
//
// What a copy that is still pending was for, packed into the tag that the host gives back. A TPN in it carries a
// generation, so that the answer for a channel that died finds nobody. UB has the tags without a prefix that is handed out
// (core_common.h): those of channels lie behind the prefixes, those of datagrams before them.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/transport/host.h"

namespace ub::ta {

enum class CopyKind : uint8_t { kDatagram, kGather, kPlace, kPlaceResponse };

// A queue has at most 16384 requests under way, so these bits of a number tell them apart.
constexpr uint32_t kWorkRequestMask = 0x3fff;

struct CopyPurpose {
  CopyKind kind;
  uint32_t tpn;
  Tpmsn message;          // kPlace
  uint32_t queue;         // kPlaceResponse; its record is not used again before the copy is done
  uint32_t work_request;  // kPlaceResponse: low 14 bits of its number
  uint32_t held;          // kGather: HeldPacket
};

constexpr CopyTag gather_tag(uint32_t tpn, uint32_t held) {
  return uint64_t{1} << 62 | uint64_t{held & 0xfffff} << 38 | tpn;
}
constexpr CopyTag place_tag(uint32_t tpn, Tpmsn message) {
  return uint64_t{2} << 62 | uint64_t{message.value()} << 24 | tpn;
}
constexpr CopyTag response_tag(uint32_t tpn, uint32_t queue, uint32_t work_request) {
  return uint64_t{3} << 62 | uint64_t{queue & 0xfffff} << 38 | uint64_t{work_request & kWorkRequestMask} << 24 | tpn;
}

// A copy for a datagram, which has no channel: a record, and which use of it.
struct DatagramCopy {
  bool arriving;  // an ArrivingDatagram, else a GatheringDatagram
  uint32_t record;
  uint32_t generation;
};
constexpr CopyTag datagram_tag(const DatagramCopy& c) {
  return uint64_t{c.arriving} << 48 | uint64_t{c.record & 0xffff} << 32 | c.generation;
}
constexpr DatagramCopy datagram_copy_of(CopyTag tag) {
  return {(tag >> 48 & 1) != 0, static_cast<uint32_t>(tag >> 32 & 0xffff), static_cast<uint32_t>(tag)};
}

constexpr CopyPurpose purpose_of(CopyTag tag) {
  return {static_cast<CopyKind>(tag >> 62),
          static_cast<uint32_t>(tag & 0xffffff),
          Tpmsn(static_cast<uint32_t>(tag >> 24)),
          static_cast<uint32_t>(tag >> 38 & 0xfffff),
          static_cast<uint32_t>(tag >> 24 & kWorkRequestMask),
          static_cast<uint32_t>(tag >> 38 & 0xfffff)};
}

}  // namespace ub::ta
