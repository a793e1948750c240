// SPDX-License-Identifier: Apache-2.0
//
// What a call does to rings.
#pragma once

#include <algorithm>
#include <bit>

#include "lib/record/shadows.h"
#include "lib/transport/looking/call_log.h"
#include "lib/transport/resource/records.h"
#include "lib/transport/roce/qp.h"

namespace ub::record {

constexpr bool destroys(Call call) {
  return call == Call::kDestroyJfc || call == Call::kDestroyJfr || call == Call::kDestroyJetty ||
         call == Call::kDestroyQp;
}

// Of a call that makes or destroys an object with a ring.
constexpr RingKind ring_kind_of(Call call) {
  switch (call) {
    case Call::kCreateJfc:
    case Call::kDestroyJfc:
      return RingKind::kCompletion;
    case Call::kCreateJfr:
    case Call::kDestroyJfr:
      return RingKind::kReceive;
    default:
      return RingKind::kSend;
  }
}

// SendQueueConfig::work is of this size, or less.
constexpr size_t work_bytes_of(uint32_t depth) {
  return std::bit_ceil(depth) * std::max(sizeof(WrState), roce::kWorkBytes);
}

}  // namespace ub::record
