// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/event_rows.h"

#include <fmt/format.h>

#include "lib/transport/looking/sentence.h"
#include "tools/admin/instance_pages.h"

namespace ub::tools {
namespace {

std::string sentence_of(const Note& note) {
  char text[kSentenceRoom];
  return std::string(write_sentence(note, text));
}

}  // namespace

nlohmann::ordered_json events_json(const std::vector<StatsNote>& notes) {
  auto rows = nlohmann::ordered_json::array();
  for (const StatsNote& n : notes) {
    rows.push_back({{"at", wall_seconds(n.first_ns)},
                    {"until", wall_seconds(n.last_ns)},
                    {"times", n.times},
                    {"stage", kStageNames[static_cast<uint32_t>(n.note.stage)]},
                    {"text", sentence_of(n.note)}});
  }
  return rows;
}

std::vector<std::string> event_lines(const std::vector<StatsNote>& notes) {
  std::vector<std::string> lines;
  for (const StatsNote& n : notes) {
    std::string line = wall_clock_text(n.first_ns) + "  " + sentence_of(n.note);
    if (n.times > 1) line += fmt::format(" ({} times, until {})", n.times, wall_clock_text(n.last_ns));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ub::tools
