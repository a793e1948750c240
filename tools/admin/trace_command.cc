// SPDX-License-Identifier: Apache-2.0
//
// urma_admin trace: asks a running instance at its door (dataplane/look_door.h).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <string>

#include "dataplane/look_door.h"
#include "dataplane/tsc_clock.h"
#include "tools/admin/commands.h"
#include "tools/admin/instance_pages.h"
#include "tools/admin/visit.h"

namespace ub::tools {
namespace {

struct Head {
  uint64_t next = 0, total = 0;
};
// "ok NEXT TOTAL STATE": the first line of a page.
bool read_head(std::string_view line, Head* head) {
  if (!line.starts_with("ok ")) return false;
  line.remove_prefix(3);
  for (uint64_t* number : {&head->next, &head->total}) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), *number);
    if (error != std::errc{}) return false;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
    line.remove_prefix(line.empty() ? 0 : 1);
  }
  return true;
}

// "NS SENTENCE" with its time as people read it, or as JSON.
void print_line(std::string_view line, uint64_t to_wall, nlohmann::ordered_json* rows) {
  uint64_t ns = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), ns);
  if (error != std::errc{}) return;
  line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  if (rows == nullptr) {
    fmt::print("{}  {}\n", wall_clock_text(ns + to_wall), line);
  } else {
    rows->push_back({{"at", wall_seconds(ns + to_wall)}, {"text", line}});
  }
}

bool show_notes(Visit& visit, bool json) {
  const uint64_t to_wall = wall_ns() - TscClock::monotonic_ns();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (Head head;;) {
    const uint64_t from = head.next;
    const std::optional<std::string> page = visit.ask(fmt::format("trace show {}", from));
    if (!page) return false;
    std::string_view text = *page;
    const size_t first = std::min(text.find('\n'), text.size());
    if (!read_head(text.substr(0, first), &head)) return false;
    text.remove_prefix(std::min(first + 1, text.size()));
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      print_line(text.substr(0, end), to_wall, json ? &rows : nullptr);
    }
    if (head.next == from || head.next >= head.total) break;
  }
  if (json) fmt::print("{}\n", rows.dump(2));
  return true;
}

}  // namespace

int trace_instance(const InstanceSelection& selection, const TraceWish& wish, bool json) {
  Visit visit;
  if (!visit.open(selection)) return 1;
  if (wish.verb == "show") return show_notes(visit, json) ? 0 : 1;
  std::string request = "trace " + wish.verb;
  if (wish.verb == "add") {
    request += fmt::format(" {}", wish.notes);
    for (const std::string& term : wish.filter) request += " " + term;
  }
  if (request.size() > LookDoor::kMostRequestBytes) {
    fmt::print(stderr, "urma_admin: the filter is too long: {} bytes at most\n", LookDoor::kMostRequestBytes);
    return 2;
  }
  const std::optional<std::string> answer = visit.ask(request);
  if (!answer) return 1;
  fmt::print("{}: {}\n", visit.instance(), answer->substr(3));
  return 0;
}

}  // namespace ub::tools
