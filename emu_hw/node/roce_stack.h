// SPDX-License-Identifier: Apache-2.0
//
// RoCE requests, step by step. The NIC sits behind PCIe. It takes a request of up to `inline_limit` bytes out
// of the doorbell itself (BF, "BlueFlame"), and fetches another one from memory (DMA).
#pragma once

#include <vector>

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/request_stack.h"
#include "emu_hw/node/roce_connections.h"
#include "emu_hw/rules/jitter.h"
#include "emu_hw/rules/loss.h"

namespace ub::emu {

class RoceStack final : public RequestStack {
 public:
  // Queue pairs of `here`, connected with each of the peers, to which it is joined: Parameters::remote_jetties each.
  RoceStack(const Parameters&, EmulatedHost& here, const Peers&);

  Task run(Operation& op) override;

 private:
  Task go_there(Operation& op, Train& train) override;
  Task tell_receiver(Operation& op) override;
  Task go_back(Operation& op, Train& train) override;
  bool is_fetched(const Operation& op) const;

  const Parameters& parameters_;
  const ContextNeeds contexts_;
  LossRule loss_;
  JitterRule jitter_;
  std::vector<RoceConnections> connections_;  // by peer
};

}  // namespace ub::emu
