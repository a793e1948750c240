// SPDX-License-Identifier: Apache-2.0
//
// One core writes a line again and again, with a pause after each write, and all others read it all the time. They
// start in turn, and then run until the kernel ends.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emu_hw/coherent/core.h"

namespace ub::emu {

class SharedLineProgram {
 public:
  SharedLineProgram(Kernel& kernel, const Parameters& p, std::vector<std::unique_ptr<CoherentCore>>& cores)
      : kernel_(kernel), p_(p), cores_(cores) {}

  Task run();

  uint64_t writes() const { return writes_; }

 private:
  Task start(CoherentCore& core, uint64_t first, uint64_t count);
  Task read(CoherentCore& core);
  Task write(CoherentCore& core);

  Kernel& kernel_;
  const Parameters& p_;
  std::vector<std::unique_ptr<CoherentCore>>& cores_;
  uint64_t writes_ = 0;
};

}  // namespace ub::emu
