// SPDX-License-Identifier: Apache-2.0
//
// A program that keeps some operations in flight: the next one is issued a nanosecond after one has ended. If they
// arrive at times of their own, this is an open loop, with as many in flight at most.
#pragma once

#include <cstdint>

#include "emu_hw/kernel/task.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/workload/loop.h"
#include "emu_hw/workload/open_loop.h"
#include "emu_hw/workload/workload.h"

namespace ub::emu {

class ClosedLoop final : public Loop {
 public:
  ClosedLoop(Kernel& kernel, Stack& stack, Workload& workload, uint32_t node, uint32_t in_flight);

  // The next one is issued a gap of these after the former, if there is room. They outlive this.
  void issue_by(PoissonArrivals& arrivals) { arrivals_ = &arrivals; }

  void start(uint64_t operations) override;

 private:
  Task issue(uint64_t operations);
  Task carry_out(uint64_t number);

  Kernel& kernel_;
  Stack& stack_;
  Workload& workload_;
  const uint32_t node_, most_;
  uint32_t in_flight_ = 0;
  PoissonArrivals* arrivals_ = nullptr;
  Program program_;
  WaitList room_;
};

}  // namespace ub::emu
