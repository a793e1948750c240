// SPDX-License-Identifier: Apache-2.0
//
// What a copy that is still pending was for, packed into the tag that the host gives back. A TPN in it carries a
// generation, so that the answer for a channel that died finds nobody.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/transport/host.h"

namespace ub::tp {

enum class CopyKind : uint8_t { kGather = 1, kPlace = 2, kPlaceResponse = 3 };

struct CopyPurpose {
  CopyKind kind;
  uint32_t tpn;
  Tpmsn message;              // kPlace
  uint32_t queue;             // kPlaceResponse
  uint32_t queue_generation;  // kPlaceResponse: low 4 bits
  uint32_t work_request;      // kPlaceResponse: low 16 bits of its number
};

constexpr CopyTag gather_tag(uint32_t tpn) { return uint64_t{1} << 62 | tpn; }
constexpr CopyTag place_tag(uint32_t tpn, Tpmsn message) {
  return uint64_t{2} << 62 | uint64_t{message.value()} << 24 | tpn;
}
constexpr CopyTag response_tag(uint32_t tpn, uint32_t queue, uint32_t generation, uint32_t work_request) {
  return uint64_t{3} << 62 | uint64_t{generation & 15} << 58 | uint64_t{queue & 0x3ffff} << 40 |
         uint64_t{work_request & 0xffff} << 24 | tpn;
}

constexpr CopyPurpose purpose_of(CopyTag tag) {
  return {static_cast<CopyKind>(tag >> 62),
          static_cast<uint32_t>(tag & 0xffffff),
          Tpmsn(static_cast<uint32_t>(tag >> 24)),
          static_cast<uint32_t>(tag >> 40 & 0x3ffff),
          static_cast<uint32_t>(tag >> 58 & 15),
          static_cast<uint32_t>(tag >> 24 & 0xffff)};
}

}  // namespace ub::tp
