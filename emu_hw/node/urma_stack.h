// SPDX-License-Identifier: Apache-2.0
//
// UB work requests, step by step: from the call that posts to the completion that the library finds. The NIC sits on
// the CPU's bus, so nothing crosses PCIe.
#pragma once

#include <vector>

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/request_stack.h"
#include "emu_hw/rules/fused_ack.h"
#include "emu_hw/rules/jitter.h"
#include "emu_hw/rules/loss.h"

namespace ub::emu {

class UrmaStack final : public RequestStack {
 public:
  // A queue at `here` for memory and receivers of its peers, Parameters::remote_jetties of each. They are joined to it,
  // and Node::settle() follows.
  UrmaStack(const Parameters&, EmulatedHost& here, const Peers&);

  Task run(Operation& op) override;

 private:
  Task go_there(Operation& op, Train& train) override;
  Task tell_receiver(Operation& op) override;
  Task go_back(Operation& op, Train& train) override;

  const uint64_t cycles_;
  const ContextNeeds contexts_;
  LossRule loss_;
  JitterRule jitter_;
  const FusedAck fused_ack_;
  SendRing ring_;
  std::vector<std::vector<uint32_t>> targets_;  // by peer and receiver
};

}  // namespace ub::emu
