// SPDX-License-Identifier: Apache-2.0
//
// Remote memory as a swap device: pages that are resident are local memory; another one is a fault, whose kernel reads
// the page, and perhaps some behind it, by RoCE (as Infiniswap and Fastswap do). As in the reference a request does not
// pass through the NIC of the target, and there is neither order nor a context to be fetched.
#pragma once

#include "emu_hw/kernel/slots.h"
#include "emu_hw/node/roce_connections.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/parts/lru_set.h"

namespace ub::emu {

class SwapStack final : public Stack {
 public:
  SwapStack(const Parameters&, EmulatedHost& here, EmulatedHost& there);

  Task run(Operation& op) override;

 private:
  Task read_pages(Operation& op, Operation& read);

  const Parameters& parameters_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  WorkRequests requests_;
  RoceConnections connections_;
  LruSet resident_;
  Slots reads_;  // of the kernel's block device
};

}  // namespace ub::emu
