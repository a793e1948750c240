// SPDX-License-Identifier: Apache-2.0
//
// RoCE requests, step by step. The NIC sits behind PCIe. It takes a request of up to `inline_limit` bytes out
// of the doorbell itself (BF, "BlueFlame"), and fetches another one from memory (DMA).
#pragma once

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/work_requests.h"
#include "emu_hw/parts/context_cache.h"
#include "emu_hw/rules/loss.h"
#include "emu_hw/node/roce_connections.h"
#include "emu_hw/node/stack.h"

namespace ub::emu {

class RoceStack final : public Stack {
 public:
  // Connected queue pairs of the two hosts, which are joined: Parameters::remote_jetties of them.
  RoceStack(const Parameters&, EmulatedHost& here, EmulatedHost& there);

  Task run(Operation& op) override;

 private:
  Task there_and_back(Operation& op);
  bool is_fetched(const Operation& op) const;

  const Parameters& parameters_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  ContextCache contexts_here_, contexts_there_;
  LossRule loss_;
  WorkRequests requests_;
  RoceConnections connections_;
};

}  // namespace ub::emu
