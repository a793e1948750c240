// SPDX-License-Identifier: Apache-2.0
//
// A pointer chase on one core, from the start of its program: it writes all lines, fills a list of their numbers,
// shuffles it, links the lines in that order, and follows the links. It ends after so many instructions, so with many
// lines it does not come to the chase. Instructions and accesses of each step follow from the published counts: of
// 32 MiB the run has 499 117 lines written with 2 508 318 accesses, and nothing else, and so on step by step.
#pragma once

#include <cstdint>
#include <vector>

#include "emu_hw/coherent/core.h"
#include "emu_hw/kernel/random_stream.h"

namespace ub::emu {

class ChaseProgram {
 public:
  ChaseProgram(Kernel& kernel, const Parameters& p, CoherentCore& core);

  Task run();

  uint64_t accesses() const { return accesses_; }
  uint64_t hops() const { return hops_; }

 private:
  struct Step {
    uint64_t instructions, accesses;
    uint64_t uses;  // of lines; all other accesses hit
  };
  static constexpr Step kStart{20, 5, 1}, kWriteLine{20, 5, 1}, kFill{20, 5, 1}, kShuffle{67, 17, 2}, kLink{46, 12, 2},
      kHop{30, 9, 1};

  Task start();
  Task write_lines();
  Task fill_list();
  Task shuffle();
  Task link_lines();
  Task chase();
  bool begin(const Step& step);
  Task use(Access access, uint64_t line);
  Task access_line(Access access, uint64_t line);

  const Parameters& p_;
  const CoherentTiming timing_;
  CoherentCore& core_;
  RandomStream random_;
  std::vector<uint64_t> order_;
  uint64_t instructions_ = 0, accesses_ = 0, hops_ = 0;
  uint64_t hits_ = 0;  // whose time has not passed yet
};

}  // namespace ub::emu
