// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/counter_texts.h"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/counters.h"

namespace ub::tools {
namespace {

using Texts = std::map<std::string_view, std::string_view>;

const Texts& core_texts() {
  static const Texts texts = [] {
    Texts made;
    for (size_t i = 0; i < kCounterCount; ++i) made[kCounterNames[i]] = kCounterHelp[i];
    return made;
  }();
  return texts;
}

const Texts& port_texts() {
  static const Texts texts = {
#define UB_PORT_COUNTER(member, name, help) {name, help},
#include "dataplane/plugin_port_counters.def"
#undef UB_PORT_COUNTER
#define UB_LANE_COUNTER(member, name, help) {name, help},
#include "dataplane/lane_port_counters.def"
#undef UB_LANE_COUNTER
#define UB_IMPAIR_COUNT(member, help) {"impaired." #member, help},
#include "lib/impair/counts.def"
#undef UB_IMPAIR_COUNT
      {"impaired.no_room", "frames that were dropped because their port, or this process, had no room"},
  };
  return texts;
}

}  // namespace

std::string counter_text(std::string_view name) {
  for (const Texts* texts : {&core_texts(), &port_texts()}) {
    if (const auto found = texts->find(name); found != texts->end()) return std::string(found->second);
  }
  return "";
}

bool is_port_counter(std::string_view name) { return port_texts().contains(name); }

bool counts_losses(std::string_view name) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"drop", "lost", "discarded", "beyond_window", "dead", "error", "too_many", "no_room", "no_path", "no_record",
       "no_buffer", "no_context", "no_link", "full", "refused", "rejected", "broken", "missed", "_late"});
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) { return name.find(word) != name.npos; });
}

}  // namespace ub::tools
