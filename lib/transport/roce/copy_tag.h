// SPDX-License-Identifier: Apache-2.0
// copy_tag.h - what a pending copy of the RoCE engine was for, in the tag that the host gives back. Bit 60 of the
// datagram kind of tp/copy_tag.h, which has no use for it. Records of queue pairs are not used again before their copies
// into memory are done, and each frame has a number.
#pragma once

#include <cstdint>

#include "lib/transport/host.h"

namespace ub::roce {

enum class CopyFor : uint8_t {
  kGather,    ///< number: of the frame
  kPlace,     ///< a request of the peer
  kResponse,  ///< number: the request that it answers
};

struct CopyPurpose {
  CopyFor what;
  uint32_t qp;
  uint32_t number;
};

constexpr CopyTag copy_tag(CopyFor what, uint32_t qp, uint32_t number) {
  return uint64_t{1} << 60 | uint64_t{static_cast<uint8_t>(what)} << 58 | uint64_t{qp & 0xFFFF} << 32 | number;
}
constexpr bool is_roce_copy(CopyTag tag) { return tag >> 62 == 0 && (tag >> 60 & 1) != 0; }
constexpr CopyPurpose purpose_of(CopyTag tag) {
  return {static_cast<CopyFor>(tag >> 58 & 3), static_cast<uint32_t>(tag >> 32 & 0xFFFF), static_cast<uint32_t>(tag)};
}

}  // namespace ub::roce
