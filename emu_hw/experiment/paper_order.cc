// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/paper_order.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace ub::emu {
namespace {

constexpr int kLast = 1000;

// After which figure a table is.
int figure_before_table(int table) { return table <= 3 ? 8 : table <= 5 ? 12 : 18; }

// The number of a figure, or of the one before a table, and then that of the table.
std::pair<int, int> place_of(const std::string& id) {
  if (!has_number_in_paper(id)) return {kLast, 0};
  const int number = std::atoi(id.c_str() + 1);
  return id[0] == 'F' ? std::pair(number, 0) : std::pair(figure_before_table(number), number);
}

bool is_before(const Experiment& a, const Experiment& b) {
  const auto place_a = place_of(a.id), place_b = place_of(b.id);
  return place_a != place_b ? place_a < place_b : strverscmp(a.id.c_str(), b.id.c_str()) < 0;
}

}  // namespace

bool has_number_in_paper(const std::string& id) {
  return id.size() > 1 && (id[0] == 'F' || id[0] == 'T') && std::isdigit(static_cast<unsigned char>(id[1])) != 0;
}

void sort_as_in_paper(std::vector<Experiment>& experiments) {
  std::stable_sort(experiments.begin(), experiments.end(), is_before);
}

}  // namespace ub::emu
