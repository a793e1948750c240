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
#include "emu_hw/parts/context_cache.h"
#include "emu_hw/rules/loss.h"

namespace ub::emu {

class LdstStack final : public Stack {
 public:
  // A handle at `here` for memory at `there`. The hosts are joined by a link that carries TP bypass.
  LdstStack(const Parameters&, EmulatedHost& here, EmulatedHost& there, size_t memory_bytes);
  void open() override;
  Task run(Operation& op) override;

 private:
  Task there_and_back(Operation& op);
  void begin(const Operation& op);
  void end(const Operation& op);

  const uint64_t cycles_;
  EmulatedHost& here_;
  EmulatedHost& there_;
  Cache cache_;
  ContextCache contexts_here_, contexts_there_;
  LossRule loss_;
  Region remote_;
  std::vector<std::byte> local_;
  std::vector<uint32_t> tickets_;  // of the operation that is under way
  uint32_t target_ = 0, handle_ = 0;
};

}  // namespace ub::emu
