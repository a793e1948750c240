// SPDX-License-Identifier: Apache-2.0
//
// UB work requests, step by step: from the call that posts to the completion that the library finds. The NIC sits on
// the CPU's bus, so nothing crosses PCIe.
#pragma once

#include <memory>
#include <vector>

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/receivers.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/node/work_requests.h"
#include "emu_hw/parts/context_cache.h"
#include "emu_hw/rules/loss.h"

namespace ub::emu {

class UrmaStack final : public Stack {
 public:
  // A queue at `here` for memory and receivers at `there`, Parameters::remote_jetties of them. The hosts are joined,
  // and Node::settle() follows.
  UrmaStack(const Parameters&, EmulatedHost& here, EmulatedHost& there);

  Task run(Operation& op) override;

 private:
  Task there_and_back(Operation& op);

  const uint64_t cycles_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  ContextCache contexts_here_, contexts_there_;
  LossRule loss_;
  WorkRequests requests_;
  SendRing ring_;
  Receivers receivers_;
  std::vector<std::unique_ptr<SendRing>> rings_there_;  // of the receivers, which send nothing
  std::vector<uint32_t> targets_;
};

}  // namespace ub::emu
