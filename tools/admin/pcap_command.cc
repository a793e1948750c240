// SPDX-License-Identifier: Apache-2.0
//
// urma_admin pcap: asks a running instance at its door (dataplane/look_door.h) to capture its frames.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/ipc/pause.h"
#include "tools/admin/commands.h"
#include "tools/admin/visit.h"

namespace ub::tools {
namespace {

constexpr Duration kPause = milliseconds(5);
constexpr int kMostPauses = 2000;  // a disk may be slow

bool is(std::string_view status, std::string_view state) { return status.starts_with("ok " + std::string(state)); }

// The file is made and closed by a thread of the instance: waits until that is done.
std::optional<std::string> settled(Visit& visit, std::string status, std::string_view passing) {
  for (int i = 0; is(status, passing) && i < kMostPauses; ++i) {
    ipc::pause_for(kPause);
    std::optional<std::string> next = visit.ask("pcap status");
    if (!next) return next;
    status = *next;
  }
  return status;
}

}  // namespace

int capture_instance(const InstanceSelection& selection, const CaptureWish& wish) {
  Visit visit;
  if (!visit.open(selection)) return 1;
  std::string request = "pcap " + wish.verb;
  if (wish.verb == "on") {
    request += fmt::format(" {} {} {}", wish.bytes, wish.files, wish.snap);
    for (const std::string& term : wish.filter) request += " " + term;
    request += " file=" + std::filesystem::absolute(wish.path).lexically_normal().string();
  }
  std::optional<std::string> status = visit.ask(request);
  if (status) status = settled(visit, *status, wish.verb == "on" ? "opening" : "ending");
  if (!status) return 1;
  if (is(*status, "failed") && wish.verb == "on") {
    fmt::print(stderr, "urma_admin: {}\n", status->substr(status->rfind("; ") + 2));
    return 1;
  }
  fmt::print("{}: {}\n", visit.instance(), status->substr(3));
  return is(*status, "failed") ? 1 : 0;
}

}  // namespace ub::tools
