// SPDX-License-Identifier: Apache-2.0
//
// Running instances, loaded from their statistics pages (dataplane/stats_page.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/stats_page.h"
#include "tools/admin/commands.h"

namespace ub::tools {

struct Instance {
  std::string name;  // of its page: "10.0.0.1-4792"
  std::string page;  // the path of that
  bool alive = false;
  StatsReport report;
  std::vector<StatsNote> events;  // what happened last, the oldest first
  std::string no_events;          // why they cannot be read
};

// Where instances of this user publish: as the selection says, else the configuration. Nothing, with a message on
// stderr: the configuration is wrong.
std::optional<std::string> directory_of(const InstanceSelection&);

// Why the pages of this directory cannot be listed, as a sentence, or an empty text. That the directory does not exist
// is no reason while its parent does: the first instance makes it.
std::string directory_problem(const std::string& directory);

// Nothing and `*error`: the page cannot be read, or is gone.
std::optional<Instance> load_instance(const std::string& directory, const std::string& name, std::string* error);

// All pages that can be read, sorted by name. `*unreadable`: how many others there are. One that goes away meanwhile is
// none of them.
std::vector<Instance> load_instances(const std::string& directory, size_t* unreadable);

// Nothing, with a message on stderr unless the page is gone meanwhile.
std::optional<Instance> load_or_complain(const std::string& directory, const std::string& name);
// The one that is meant, or nothing with a message on stderr.
std::optional<Instance> choose_instance(const InstanceSelection&);

// Is that its name, its pid or its uasid?
bool matches(const Instance&, const std::string& wanted);

uint64_t wall_ns();                             // since 1970
double wall_seconds(uint64_t wall_ns);          // the same
std::string wall_clock_text(uint64_t wall_ns);  // "13:05:41.123456", local time

struct ObjectCount {
  const char* kind;
  uint32_t count;
};
std::array<ObjectCount, 10> object_counts(const StatsObjects&);

// The text in a field of fixed size.
template <size_t N>
std::string text_of(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

}  // namespace ub::tools
