// SPDX-License-Identifier: Apache-2.0
//
// Answers of a NIC in JSON (telemetry.h): from its statistics page, as those who are not its owner see it.
#include "dataplane/nic.h"
#include "dataplane/telemetry.h"

namespace ub {

// Owned.
std::string Nic::answer_look_telemetry(std::string_view request) {
  publish_statistics();
  std::string why;
  const std::optional<std::string> answer = telemetry(request, &why);
  return answer ? "ok " + *answer : why;
}

// Any thread, once there is a page.
std::optional<std::string> Nic::telemetry(std::string_view request, std::string* why) const {
  if (!has_page_.load(std::memory_order_acquire)) {
    *why = "the NIC has no statistics page, or begins just now";
    return std::nullopt;
  }
  StatsReport report;
  const auto page = StatsPageReader::open(statistics_->path(), why);
  if (page == nullptr || !page->read(&report, why)) return std::nullopt;
  return answer_telemetry(report, request, why);
}

}  // namespace ub
