// SPDX-License-Identifier: Apache-2.0
//
// The purpose of a pending copy into memory, packed into the tag that the host gives back. A tag with a TPN includes
// the generation of the channel, so that the answer for a channel that died finds no channel. The prefixes of UB's
// tags are none of those that are handed out (copy_prefix.h): tags of datagrams have prefix 0, and tags of channels
// have prefixes above all that are handed out.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/transport/host.h"

namespace ub::ta {

enum class CopyKind : uint8_t { kDatagram, kPlace, kPlaceResponse };

// A queue has at most 16384 started requests, so these bits of a request's number tell them apart.
constexpr uint32_t kWorkRequestMask = 0x3fff;

struct CopyPurpose {
  CopyKind kind;
  uint32_t tpn;
  Tpmsn message;          // kPlace
  uint32_t queue;         // kPlaceResponse; the record of the queue is not reused before the copy is done
  uint32_t work_request;  // kPlaceResponse: low 14 bits of its number
};

constexpr CopyTag place_tag(uint32_t tpn, Tpmsn message) {
  return uint64_t{1} << 62 | uint64_t{message.value()} << 24 | tpn;
}
constexpr CopyTag response_tag(uint32_t tpn, uint32_t queue, uint32_t work_request) {
  return uint64_t{2} << 62 | uint64_t{queue & 0xfffff} << 38 | uint64_t{work_request & kWorkRequestMask} << 24 | tpn;
}

// A copy of a datagram that arrived, which has no channel.
struct DatagramCopy {
  uint32_t record;      // ArrivingDatagram
  uint32_t generation;  // of the record
};
constexpr CopyTag datagram_tag(const DatagramCopy& c) { return uint64_t{c.record & 0xffff} << 32 | c.generation; }
constexpr DatagramCopy datagram_copy_of(CopyTag tag) {
  return {static_cast<uint32_t>(tag >> 32 & 0xffff), static_cast<uint32_t>(tag)};
}

constexpr CopyPurpose purpose_of(CopyTag tag) {
  return {static_cast<CopyKind>(tag >> 62), static_cast<uint32_t>(tag & 0xffffff),
          Tpmsn(static_cast<uint32_t>(tag >> 24)), static_cast<uint32_t>(tag >> 38 & 0xfffff),
          static_cast<uint32_t>(tag >> 24 & kWorkRequestMask)};
}

}  // namespace ub::ta
