// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a fabric as TOML.
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

// Header only: do not compile this file with the flags of tomlplusplus.pc, which ask for its shared library.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "lib/impair/quoted.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/config.h"

namespace ub::fabric {
namespace {

using tools::kExitUsage;
using tools::ToolError;

class Reader {
 public:
  Reader(std::string path, Draft* draft) : path_(std::move(path)), draft_(draft) {}

  void read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string_view name = key.str();
      Config& config = draft_->config;
      if (name == "nics") {
        read_nics(table(node, name));
      } else if (name == "links") {
        read_links(table(node, name));
      } else if (name == "seed") {
        config.seed = static_cast<uint64_t>(number(node, name, 0, INT64_MAX));
      } else if (name == "paths") {
        config.paths = static_cast<uint32_t>(number(node, name, 1, kMostPaths));
      } else if (name == "spray") {
        config.spray = parse_spray(text(node, name), where(node.source()));
      } else if (name == "control") {
        config.control = text(node, name);
      } else {
        fail(key.source(),
             "unknown key " + impair::quoted(name) + "; known are nics, links, seed, paths, spray, control");
      }
    }
  }

 private:
  std::string where(const toml::source_region& place) const {
    return path_ + ":" + std::to_string(place.begin.line) + ":" + std::to_string(place.begin.column);
  }

  [[noreturn]] void fail(const toml::source_region& place, const std::string& what) const {
    throw ToolError(kExitUsage, where(place) + ": " + what);
  }

  const toml::table& table(const toml::node& node, std::string_view name) const {
    if (!node.is_table()) fail(node.source(), std::string(name) + " is a table: [" + std::string(name) + "]");
    return *node.as_table();
  }

  std::string text(const toml::node& node, std::string_view name) const {
    if (!node.is_string()) fail(node.source(), std::string(name) + ": expected a string");
    return node.as_string()->get();
  }

  int64_t number(const toml::node& node, std::string_view name, int64_t least, int64_t most) const {
    if (!node.is_integer() || node.as_integer()->get() < least || node.as_integer()->get() > most) {
      fail(node.source(),
           std::string(name) + ": expected an integer of " + std::to_string(least) + " to " + std::to_string(most));
    }
    return node.as_integer()->get();
  }

  // A table of toml++ is sorted by its keys; here the order of the file counts.
  template <class Visit>
  static void in_order(const toml::table& table, Visit visit) {
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
    auto place = [](const auto& entry) { return entry.first->source().begin; };
    std::sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    for (const auto& [key, node] : entries) visit(*key, *node);
  }

  void read_nics(const toml::table& nics) {
    in_order(nics, [&](const toml::key& key, const toml::node& node) {
      draft_->nics.push_back({std::string(key.str()), text(node, key.str()), where(key.source())});
    });
  }

  void read_links(const toml::table& links) {
    in_order(links, [&](const toml::key& key, const toml::node& node) {
      draft_->config.settings.push_back({std::string(key.str()), text(node, key.str()), where(node.source())});
    });
  }

  std::string path_;
  Draft* draft_;
};

}  // namespace

void load_file(const std::string& path, Draft* draft) try {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw ToolError(kExitUsage, path + ": is a directory, not a file");
  Reader(path, draft).read(toml::parse_file(path));
} catch (const toml::parse_error& error) {
  const auto& place = error.source().begin;
  const std::string at = place.line == 0 ? "" : ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  throw ToolError(kExitUsage, path + at + ": " + std::string(error.description()));
}

}  // namespace ub::fabric
