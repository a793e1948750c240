// SPDX-License-Identifier: Apache-2.0
//
// Operations as a trace for Perfetto and chrome://tracing: each stack and host a process, each kind of part a thread.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/report/ledgers.h"

namespace ub::emu {

std::string trace_of(const std::vector<LedgerOfStack>&);

}  // namespace ub::emu
