// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/path_names.h"

#include <charconv>
#include <numeric>

#include "lib/impair/quoted.h"
#include "tools/common/tool_error.h"

namespace ub::fabric {
namespace {

using tools::kExitUsage;
using tools::ToolError;

std::vector<size_t> nics_named(std::string_view text, const Config& config) {
  if (text != "*") return {nic_named(config, text)};
  std::vector<size_t> all(config.nics.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

// The number behind "/", counted from 0.
uint32_t path_number(std::string_view text, const Config& config) {
  uint32_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc() && end == text.data() + text.size() && number >= 1 && number <= config.paths) {
    return number - 1;
  }
  throw ToolError(kExitUsage,
                  "there is no path " + impair::quoted(text) + "; there are 1 to " + std::to_string(config.paths));
}

}  // namespace

std::vector<PathId> paths_named(std::string_view text, const Config& config) {
  const size_t slash = text.find('/');
  const std::string_view pair = text.substr(0, slash);
  const size_t arrow = pair.find('>');
  if (arrow == pair.npos) {
    throw ToolError(kExitUsage, impair::quoted(text) + " names no links; they are named as in a>b, a<>b or *>b");
  }
  uint32_t first = 0, last = config.paths - 1;
  if (slash != text.npos) first = last = path_number(text.substr(slash + 1), config);
  const bool both = arrow > 0 && pair[arrow - 1] == '<';
  const std::vector<size_t> left = nics_named(pair.substr(0, both ? arrow - 1 : arrow), config);
  const std::vector<size_t> right = nics_named(pair.substr(arrow + 1), config);

  std::vector<PathId> named;
  std::vector<bool> has(config.nics.size() * config.nics.size());
  const auto name = [&](size_t from, size_t to) {
    if (from == to || has[from * config.nics.size() + to]) return;
    has[from * config.nics.size() + to] = true;
    for (uint32_t path = first; path <= last; ++path) named.push_back({from, to, path});
  };
  for (size_t from : left) {
    for (size_t to : right) {
      name(from, to);
      if (both) name(to, from);
    }
  }
  if (named.empty()) throw ToolError(kExitUsage, impair::quoted(text) + ": a NIC has no link to itself");
  return named;
}

std::string name_of(const PathId& id, const Config& config) {
  std::string name = config.nics[id.from].name + ">" + config.nics[id.to].name;
  if (config.paths > 1) name += "/" + std::to_string(id.path + 1);
  return name;
}

}  // namespace ub::fabric
