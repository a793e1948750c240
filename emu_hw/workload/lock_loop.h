// SPDX-License-Identifier: Apache-2.0
//
// A program that takes a lock, one word of another host's memory, and gives it back at once, again and again. It
// compares and swaps until it finds the word free. A sample is what it takes to get the lock, with all attempts.
#pragma once

#include <cstdint>

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/workload/loop.h"

namespace ub::emu {

class LockLoop final : public Loop {
 public:
  // The lock is the first word of its only peer. The number of the node, from 1 on, is what its holder puts there.
  LockLoop(Kernel& kernel, Stack& stack, uint32_t node) : kernel_(kernel), stack_(stack), node_(node) {}

  void start(uint64_t acquisitions) override;

 private:
  static constexpr uint64_t kFree = 0;

  Task take_and_give_back(uint64_t acquisitions);
  Task swap(uint64_t compare, uint64_t value);

  Kernel& kernel_;
  Stack& stack_;
  const uint32_t node_;
  uint64_t number_ = 0;  // of the next operation
  uint64_t found_ = 0;   // by the last one, in the word
};

}  // namespace ub::emu
