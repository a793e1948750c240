// SPDX-License-Identifier: Apache-2.0
//
// One-sided UB work requests, step by step: from the call that posts to the completion that the library finds. The NIC
// sits on the CPU's bus, so nothing crosses PCIe.
#pragma once

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/emulated_host.h"

namespace ub::emu {

class UrmaStack {
 public:
  // A queue at `here` whose requests reach memory at `there`. The hosts are joined, and Node::settle() follows.
  UrmaStack(const Parameters&, EmulatedHost& here, EmulatedHost& there);

  // The operation completes when the task ends. Throws if the Core completed it with an error.
  Task run(Operation& op);

 private:
  static constexpr uint32_t kDepth = 64;
  static constexpr size_t kRegionBytes = size_t{1} << 20;

  Task there_and_back(Operation& op);
  void post(const Operation& op);
  bool is_complete(const Operation& op);

  const uint64_t cycles_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  CompletionQueue jfc_;
  SendRing ring_;
  Region local_, remote_;
  uint32_t target_ = 0;
};

}  // namespace ub::emu
