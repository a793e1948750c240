// SPDX-License-Identifier: Apache-2.0
//
// One operation through both hosts: which part works on it when.
#pragma once

#include <vector>

#include "emu_hw/report/ledgers.h"
#include "emu_hw/report/svg.h"

namespace ub::emu {

// A panel for each stack, with a lane for each kind of part of each host; all on one axis of time.
Svg drawn_timeline(const std::vector<LedgerOfStack>&);

}  // namespace ub::emu
