// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config_names.h"

#include <algorithm>
#include <tuple>

namespace ub::configuration {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view wrong, std::string (Key::*name_of)() const) {
  size_t best = 1 + wrong.size() / 3;
  std::string nearest;
  for (const Key& key : keys()) {
    const std::string name = (key.*name_of)();
    const size_t distance = edit_distance(wrong, name);
    if (distance < best) std::tie(best, nearest) = std::make_tuple(distance, name);
  }
  for (const Key& key : keys()) {  // the right key under the wrong section
    if (best > 2 && wrong.ends_with(concat(".", key.name))) nearest = (key.*name_of)();
  }
  return nearest.empty() ? "; urma_admin config lists all keys" : concat("; did you mean ", quoted(nearest), "?");
}

std::string did_you_mean_section(std::string_view wrong) {
  size_t best = 1 + wrong.size() / 2;
  std::string nearest;
  for (const Key& key : keys()) {
    const size_t distance = edit_distance(wrong, key.section);
    if (distance < best) std::tie(best, nearest) = std::make_tuple(distance, std::string(key.section));
  }
  return nearest.empty() ? "; urma_admin config lists all keys" : concat("; did you mean ", quoted(nearest), "?");
}

}  // namespace ub::configuration
