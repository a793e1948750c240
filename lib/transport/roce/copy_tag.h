// SPDX-License-Identifier: Apache-2.0
// copy_tag.h - the tag of a copy of the RoCE engine into memory, which the host gives back when the copy is done: it
// says what the copy was for, behind the prefix that the engine took (copy_prefix.h). The record of a queue pair is not
// used again before these copies are done.
#pragma once

#include <cstdint>

#include "lib/transport/copy_prefix.h"
#include "lib/transport/host.h"

namespace ub::roce {

enum class CopyFor : uint8_t {
  kPlace,     ///< for a request of the peer
  kResponse,  ///< number: the request that the response answers
};

struct CopyPurpose {
  CopyFor what;
  uint32_t qp;
  uint32_t number;
};

constexpr CopyTag copy_tag(uint32_t prefix, const CopyPurpose& p) {
  return uint64_t{prefix} << kCopyPrefixShift | uint64_t{static_cast<uint8_t>(p.what)} << 48 |
         uint64_t{p.qp & 0xFFFF} << 32 | p.number;
}
constexpr CopyPurpose purpose_of(CopyTag tag) {
  return {static_cast<CopyFor>(tag >> 48 & 3), static_cast<uint32_t>(tag >> 32 & 0xFFFF), static_cast<uint32_t>(tag)};
}

}  // namespace ub::roce
