// SPDX-License-Identifier: Apache-2.0
//
// Tables of text that fit a terminal: where there is no room for all columns, those that matter least are left out.
#pragma once

#include <string>
#include <vector>

namespace ub::tools {

struct FittedColumn {
  std::string title;
  int rank = 0;          // the columns with the highest ranks go first; of equal ones the right one
  bool is_text = false;  // texts begin at the left, numbers end at the right
  size_t width = 0;      // at least, so that a table whose numbers change does not jump
};

struct FittedTable {
  std::string title;
  std::vector<FittedColumn> columns;
  std::vector<std::vector<std::string>> rows;  // a cell for each column
  bool last_is_cut = false;                    // the last column takes what is left of the line, and is cut there
};

// The line of titles, then one line for each row, none longer than `width`. 0: as long as they need to be.
std::vector<std::string> fitted_lines(const FittedTable&, size_t width);

// 0.5, 17, 1234, 12.3k, 4.56M: at most five characters, below 10^15.
std::string short_number(double);

}  // namespace ub::tools
