// SPDX-License-Identifier: Apache-2.0
//
// Limits that the send queues of one owner share, those of jettys and of queue pairs: the rate of its requests, and the
// time that the NIC may spend on elements which need no packet. A request that starts gives back the price of the first
// such element.
//
// Thread: the owner of the Core.
#pragma once

#include "lib/base/allowance.h"
#include "lib/transport/cc/pacer.h"

namespace ub {

struct OwnerLimits {
  // The price of a slot that needs no packet, and the additional one of the first such slot at one time.
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
