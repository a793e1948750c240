// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/report.h"

#include "lib/impair/text.h"
#include "tools/fabric/path_names.h"

namespace ub::fabric {
namespace {

template <class Visit>
void each_count(const impair::Counts& counts, Visit visit) {
#define UB_IMPAIR_COUNT(member, text) visit(#member, counts.member);
#include "lib/impair/counts.def"
#undef UB_IMPAIR_COUNT
}

void append_count(std::string* line, const std::string& name, uint64_t value) {
  if (value != 0) line->append(line->empty() ? "  " : ", ").append(name).append(" ").append(std::to_string(value));
}

}  // namespace

std::string paths_as_text(std::span<const PathId> paths, const Config& config, Network& network, Instant now) {
  std::string text;
  for (const PathId& id : paths) {
    impair::Link& link = network.link(id);
    text.append(name_of(id, config)).append("  ").append(impair::to_text(link.spec_at(now))).append("\n");
    std::string counted;
    each_count(link.counts(), [&](const char* name, uint64_t value) { append_count(&counted, name, value); });
    append_count(&counted, "under_way", link.under_way());
    append_count(&counted, "changes_to_come", link.changes_to_come(now));
    if (!counted.empty()) text.append(counted).append("\n");
  }
  return text;
}

std::string medium_as_text(const Medium& medium) {
  std::string counted;
  for (const MediumCount& count : medium.counts()) append_count(&counted, count.name, count.value);
  return counted.empty() ? counted : "fabric" + counted + "\n";
}

nlohmann::json as_json(const Config& config, Network& network, const Medium& medium, Instant now) {
  nlohmann::json links = nlohmann::json::array();
  for (const PathId& id : network.all_paths()) {
    impair::Link& link = network.link(id);
    nlohmann::json counters;
    each_count(link.counts(), [&](const char* name, uint64_t value) { counters[name] = value; });
    links.push_back({{"from", config.nics[id.from].name},
                     {"to", config.nics[id.to].name},
                     {"path", id.path + 1},
                     {"impairments", impair::to_text(link.spec_at(now))},
                     {"counters", counters},
                     {"under_way", link.under_way()},
                     {"changes_to_come", link.changes_to_come(now)}});
  }
  nlohmann::json counted = nlohmann::json::object();
  for (const MediumCount& count : medium.counts()) counted[count.name] = count.value;
  return {{"seed", config.seed}, {"links", links}, {"medium", counted}};
}

}  // namespace ub::fabric
