// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/event_rows.h"

#include <fmt/format.h>
#include <time.h>

#include "lib/transport/looking/sentence.h"

namespace ub::tools {
namespace {

std::string sentence_of(const Note& note) {
  char text[kSentenceRoom];
  return std::string(write_sentence(note, text));
}

std::string clock_text(uint64_t wall_ns) {
  const auto seconds = static_cast<time_t>(wall_ns / 1'000'000'000);
  tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:06}", local.tm_hour, local.tm_min, local.tm_sec,
                     wall_ns / 1000 % 1'000'000);
}

double seconds_of(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

nlohmann::ordered_json events_json(const std::vector<StatsNote>& notes) {
  auto rows = nlohmann::ordered_json::array();
  for (const StatsNote& n : notes) {
    rows.push_back({{"at", seconds_of(n.first_ns)},
                    {"until", seconds_of(n.last_ns)},
                    {"times", n.times},
                    {"stage", kStageNames[static_cast<uint32_t>(n.note.stage)]},
                    {"text", sentence_of(n.note)}});
  }
  return rows;
}

std::vector<std::string> event_lines(const std::vector<StatsNote>& notes) {
  std::vector<std::string> lines;
  for (const StatsNote& n : notes) {
    std::string line = clock_text(n.first_ns) + "  " + sentence_of(n.note);
    if (n.times > 1) line += fmt::format(" ({} times, until {})", n.times, clock_text(n.last_ns));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ub::tools
