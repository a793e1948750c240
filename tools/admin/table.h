// SPDX-License-Identifier: Apache-2.0
//
// Tables of text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ub::tools {

// The lines of a table of flat objects that all have the same names: first the names, then one line for each object.
// Columns are as wide as they need to be. Without objects there is no line.
std::vector<std::string> table_lines(const nlohmann::ordered_json& rows);

}  // namespace ub::tools
