// SPDX-License-Identifier: Apache-2.0
//
// One-sided UB work requests, step by step: from the call that posts to the completion that the library finds. The NIC
// sits on the CPU's bus, so nothing crosses PCIe.
#pragma once

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/one_sided.h"

namespace ub::emu {

class UrmaStack {
 public:
  // A queue at `here` whose requests reach memory at `there`. The hosts are joined, and Node::settle() follows.
  UrmaStack(const Parameters&, EmulatedHost& here, EmulatedHost& there);

  // The operation completes when the task ends. Throws if the Core completed it with an error.
  Task run(Operation& op);

 private:
  Task there_and_back(Operation& op);

  const uint64_t cycles_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  OneSided requests_;
  SendRing ring_;
  uint32_t target_ = 0;
};

}  // namespace ub::emu
