// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/fitted_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace ub::tools {
namespace {

constexpr size_t kLeastOfCut = 16;  // a column with fewer characters left is of no use

// Numbers of the columns that are shown, and how wide they are.
struct Shown {
  std::vector<size_t> columns, widths;

  size_t total() const {
    size_t sum = widths.empty() ? 0 : widths.size() - 1;
    for (const size_t w : widths) sum += w;
    return sum;
  }
  void leave_out_one(const FittedTable& t) {
    size_t worst = 0;
    for (size_t i = 1; i < columns.size(); ++i) {
      if (t.columns[columns[i]].rank >= t.columns[columns[worst]].rank) worst = i;
    }
    columns.erase(columns.begin() + static_cast<ptrdiff_t>(worst));
    widths.erase(widths.begin() + static_cast<ptrdiff_t>(worst));
  }
};

Shown choose(const FittedTable& t, size_t width) {
  Shown shown;
  for (size_t i = 0; i < t.columns.size(); ++i) {
    size_t widest = std::max(t.columns[i].title.size(), t.columns[i].width);
    for (const auto& row : t.rows) widest = std::max(widest, row[i].size());
    if (t.last_is_cut && i + 1 == t.columns.size() && width != 0) widest = std::min(widest, kLeastOfCut);
    shown.columns.push_back(i);
    shown.widths.push_back(widest);
  }
  while (width != 0 && shown.columns.size() > 1 && shown.total() > width) shown.leave_out_one(t);
  return shown;
}

}  // namespace

std::vector<std::string> fitted_lines(const FittedTable& t, size_t width) {
  const Shown shown = choose(t, width);
  const auto line_of = [&](auto&& cell) {
    std::string line;
    for (size_t i = 0; i < shown.columns.size(); ++i) {
      if (i != 0) line += ' ';
      const size_t column = shown.columns[i];
      line += t.columns[column].is_text ? fmt::format("{:<{}}", cell(column), shown.widths[i])
                                        : fmt::format("{:>{}}", cell(column), shown.widths[i]);
    }
    if (width != 0 && line.size() > width) line.resize(width);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::vector<std::string> lines = {line_of([&](size_t column) { return t.columns[column].title; })};
  for (const auto& row : t.rows) lines.push_back(line_of([&](size_t column) { return row[column]; }));
  return lines;
}

std::string short_number(double v) {
  if (v < 0.05) return "0";
  if (v < 9.95) return fmt::format("{:.1f}", v);
  if (v < 9999.5) return fmt::format("{:.0f}", v);
  const char* unit = "kMGT";
  for (v /= 1000; v >= 999.5 && unit[1] != 0; ++unit) v /= 1000;
  return fmt::format("{:.{}f}{}", v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0, *unit);
}

}  // namespace ub::tools
