// SPDX-License-Identifier: Apache-2.0
//
// A link that loses frames: each one with the same chance, whatever it carries.
#pragma once

#include <cstdint>
#include <string>

#include "emu_hw/kernel/random_stream.h"

namespace ub::emu {

class FrameLoss {
 public:
  // Of the frames that this node sends.
  FrameLoss(double chance, uint64_t seed, uint32_t node)
      : chance_(chance), random_(seed, "link of node " + std::to_string(node), "loss") {}

  // Is the next frame lost?
  bool draw() { return random_.chance(chance_); }

 private:
  const double chance_;
  RandomStream random_;
};

}  // namespace ub::emu
