// SPDX-License-Identifier: Apache-2.0
//
// What the send queues of one owner share, jettys' and queue pairs': a rate of requests, and what elements that send nothing
// may cost the NIC that passes them. A request that starts makes up for the first such element.
//
// Thread: the owner of the Core.
#pragma once

#include "lib/base/allowance.h"
#include "lib/transport/cc/pacer.h"

namespace ub {

struct OwnerLimits {
  // Prices of slots that nothing is sent for, and of the first of them at one time.
  static constexpr Duration kPassedSlot = microseconds(2), kPassedFirst = microseconds(20);

  cc::Pacer pacer;
  Allowance passing;

  // A request starts.
  void charge(Instant now, uint64_t payload_bytes) {
    passing.give_back(kPassedFirst);
    pacer.charge(now, payload_bytes);
  }
};

}  // namespace ub
