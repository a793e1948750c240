// SPDX-License-Identifier: Apache-2.0
//
// When an operation was issued, and when it ended: what is measured of it.
#pragma once

#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

struct Sample {
  Time issued, ended;
  Span latency() const { return ended - issued; }
};

}  // namespace ub::emu
