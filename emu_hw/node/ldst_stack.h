// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of remote memory, step by step: through the caches of the CPU, and by TP bypass, which has neither
// queue nor completion.
#pragma once

#include <vector>

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/parts/cache.h"
#include "emu_hw/rules/fused_ack.h"
#include "emu_hw/rules/jitter.h"
#include "emu_hw/rules/loss.h"

namespace ub::emu {

class LdstStack final : public Stack {
 public:
  // Handles at `here` for the memory of its peers, to which it is joined by links that carry TP bypass.
  LdstStack(const Parameters&, EmulatedHost& here, const Peers&);
  void open() override;
  Task run(Operation& op) override;

 private:
  // The blocks of an operation that is under way.
  struct Blocks {
    std::vector<std::byte> local;
    std::vector<uint32_t> tickets;
  };

  Task there_and_back(Operation& op, Train request);
  void begin(const Operation& op, Blocks& blocks);
  void end(const Operation& op, const Blocks& blocks);

  const uint64_t cycles_;
  const bool is_pipelined_;
  EmulatedHost& here_;
  std::vector<EmulatedHost*> peers_;
  Cache cache_;
  const ContextNeeds contexts_;
  LossRule loss_;
  JitterRule jitter_;
  const FusedAck fused_ack_;
  std::vector<uint32_t> targets_, handles_;  // by peer
};

}  // namespace ub::emu
