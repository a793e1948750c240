// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/console.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/impair/quoted.h"
#include "lib/impair/text.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/path_names.h"
#include "tools/fabric/report.h"

namespace ub::fabric {
namespace {

using tools::kExitUsage;
using tools::ToolError;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kHelp =
    "set LINKS TEXT   change links: set a>b loss=1% delay=50us; set *>* down\n"
    "show [LINKS]     what links are like, and what they counted\n"
    "json             the same of all links, as JSON in one line\n"
    "help             these lines\n"
    "quit             end the fabric\n"
    "LINKS is a>b, a<>b for both directions, a>b/2 for one of several paths; * stands for every NIC\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

// The first word, and what follows it.
std::pair<std::string_view, std::string_view> first_word(std::string_view text) {
  text = trimmed(text);
  const size_t end = std::min(text.find_first_of(kBlanks), text.size());
  return {text.substr(0, end), trimmed(text.substr(end))};
}

}  // namespace

void Console::set(Instant now, std::string_view links, std::string_view text) {
  const std::vector<PathId> paths = paths_named(links, config_);
  std::vector<impair::Script> scripts;
  for (const PathId& id : paths) {
    impair::Parsed parsed = impair::parse(text, network_.link(id).spec_at(now));
    if (!parsed.script) throw ToolError(kExitUsage, name_of(id, config_) + ": " + parsed.error);
    if (scripts.empty()) check_changes(now, paths, parsed.script->changes.size());
    scripts.push_back(std::move(*parsed.script));
  }
  for (size_t i = 0; i < paths.size(); ++i) network_.link(paths[i]).set(now, std::move(scripts[i]));
}

// A text has the same number of changes for each link.
void Console::check_changes(Instant now, std::span<const PathId> paths, size_t changes_of_each) {
  size_t others = network_.changes_to_come(now);
  for (const PathId& id : paths) others -= network_.link(id).changes_to_come(now);
  if (paths.size() * changes_of_each + others <= kMostChanges) return;
  throw ToolError(kExitUsage, std::to_string(changes_of_each) + " changes of " + std::to_string(paths.size()) +
                                  " links, beside " + std::to_string(others) +
                                  " of others that are still to come: more than " + std::to_string(kMostChanges) +
                                  "; name fewer links or changes, or set the later changes later");
}

std::string Console::show(Instant now, std::string_view links) {
  if (!links.empty()) return paths_as_text(paths_named(links, config_), config_, network_, now);
  return paths_as_text(network_.all_paths(), config_, network_, now) + medium_as_text(medium_);
}

std::string Console::obey(Instant now, std::string_view line) {
  const auto [verb, rest] = first_word(line);
  if (verb == "set") {
    const auto [links, text] = first_word(rest);
    if (text.empty()) throw ToolError(kExitUsage, "set takes links and what they shall be like: set a>b loss=1%");
    set(now, links, text);
    return {};
  }
  if (verb == "show") return show(now, rest);
  if (verb == "json" && rest.empty()) return as_json(config_, network_, medium_, now).dump() + "\n";
  if (verb == "help" && rest.empty()) return std::string(kHelp);
  if (verb == "quit" && rest.empty()) {
    quit_ = true;
    return {};
  }
  throw ToolError(kExitUsage, impair::quoted(trimmed(line)) + " is no command; known are set, show, json, help, quit");
}

std::string Console::answer(Instant now, std::string_view line) try {
  return obey(now, line) + "ok\n";
} catch (const ToolError& error) {
  return std::string("error: ") + error.what() + "\n";
}

}  // namespace ub::fabric
