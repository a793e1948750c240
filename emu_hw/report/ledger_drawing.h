// SPDX-License-Identifier: Apache-2.0
//
// What pictures of ledgers share: a colour for each kind of part, its legend, and texts for pointers.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/report/ledgers.h"
#include "emu_hw/report/svg.h"

namespace ub::emu {

std::string colour_of(PartKind kind);
// Those that occur, in their order.
std::vector<PartKind> kinds_of(const std::vector<LedgerOfStack>&);
void draw_kinds(Svg&, const std::vector<PartKind>&, Svg::Point at);
// "nic.pipe, host 1: 80 ns, from 140 ns".
std::string tip_of(const LedgerOfStack&, size_t line);
double longest_ns(const std::vector<LedgerOfStack>&);

}  // namespace ub::emu
