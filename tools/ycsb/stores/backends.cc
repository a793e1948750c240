// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/stores/backends.h"

#include <fmt/format.h>

#include "tools/common/tool_error.h"

namespace ub::ycsb {

const BackendEntry& find_backend(const std::string& name) {
  std::string names;
  for (const BackendEntry& entry : kBackends) {
    if (name == entry.name) {
      if (entry.open != nullptr) return entry;
      throw tools::ToolError(
          tools::kExitUsage,
          fmt::format("-db {}: this build has no such store; install {} and build again", name, entry.package));
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  throw tools::ToolError(tools::kExitUsage, fmt::format("-db {}: there is no such store, but {}", name, names));
}

}  // namespace ub::ycsb
