// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "dataplane/config.h"
#include "tools/admin/commands.h"

namespace ub::tools {

int show_config(const std::string& filter, bool changed_only, bool json) {
  const ConfigResult result = load_config();
  if (!result.config) {
    fmt::print(stderr, "{}\n", result.error);
    return 1;
  }
  nlohmann::json document = nlohmann::json::array();
  std::string section;
  size_t shown = 0;
  for (const ConfigRow& row : describe(*result.config)) {
    if (row.key.find(filter) == std::string::npos) continue;
    if (changed_only && row.source == "default") continue;
    ++shown;
    if (json) {
      document.push_back({{"key", row.key},
                          {"value", row.value},
                          {"default", row.default_value},
                          {"range", row.range},
                          {"unit", row.unit},
                          {"source", row.source},
                          {"help", row.help}});
      continue;
    }
    const std::string its_section = row.key.substr(0, row.key.find('.'));
    if (its_section != section) {
      fmt::print("{}[{}]\n", section.empty() ? "" : "\n", its_section);
      section = its_section;
    }
    auto or_empty = [](const std::string& s) { return s.empty() ? std::string("\"\"") : s; };
    std::string about = fmt::format("default {}", or_empty(row.default_value));
    if (!row.range.empty()) about += "; " + row.range;
    if (!row.unit.empty()) about += "; " + row.unit;
    fmt::print("{} = {}    # {} ({})\n    {}\n", row.key, or_empty(row.value), row.source, about, row.help);
  }
  if (json) fmt::print("{}\n", document.dump(2));
  if (shown == 0 && !changed_only && !filter.empty()) {
    fmt::print(stderr, "urma_admin: no key contains \"{}\"\n", filter);
    return 1;
  }
  if (!json) {
    for (const std::string& file : result.config->files) fmt::print("\nread: {}\n", file);
    if (shown == 0) fmt::print("everything is at its default\n");
  }
  return 0;
}

}  // namespace ub::tools
