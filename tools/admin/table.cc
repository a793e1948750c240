// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace ub::tools {

using Json = nlohmann::ordered_json;

namespace {

std::string cell(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.1f}", value.get<double>()) : value.dump();
}

}  // namespace

std::vector<std::string> table_lines(const Json& rows) {
  if (rows.empty()) return {};
  std::vector<std::vector<std::string>> table(1);
  for (auto& [name, value] : rows[0].items()) table[0].push_back(name);
  for (const Json& row : rows) {
    std::vector<std::string>& cells = table.emplace_back();
    for (auto& [name, value] : row.items()) cells.push_back(cell(value));
  }
  std::vector<size_t> width(table[0].size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : table) {
    std::string& line = lines.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
  }
  return lines;
}

}  // namespace ub::tools
