// SPDX-License-Identifier: Apache-2.0
//
// The budget of a round trip: which part takes how much of it.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/report/ledgers.h"
#include "emu_hw/report/svg.h"

namespace ub::emu {

// A bar for each stack, in pieces, one for each line of its ledger.
Svg drawn_budget(const std::vector<LedgerOfStack>&);

// A line of the ledgers for all stacks: how often it comes, and what it takes.
struct BudgetRow {
  std::string part;
  struct Cell {
    size_t count = 0;
    Span sum;
  };
  std::vector<Cell> cells;  // as the stacks
};
// In the order of their first use, those of one kind of part together.
std::vector<BudgetRow> budget_of(const std::vector<LedgerOfStack>&);

}  // namespace ub::emu
