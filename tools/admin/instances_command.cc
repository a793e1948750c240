// SPDX-License-Identifier: Apache-2.0
//
// What single commands show of running instances.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "tools/admin/channel_rows.h"
#include "tools/admin/commands.h"
#include "tools/admin/event_rows.h"
#include "tools/admin/instance_pages.h"
#include "tools/admin/table.h"

namespace ub::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string duration_text(uint64_t from_ns, uint64_t to_ns) {
  const double s = to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e9 : 0;
  if (s < 120) return fmt::format("{:.1f} s", s);
  if (s < 7200) return fmt::format("{:.0f} min", s / 60);
  return fmt::format("{:.1f} h", s / 3600);
}

std::string access_text(uint8_t access) {
  std::string text;
  if ((access & kAccessLocalOnly) != 0) text += "local ";
  if ((access & kAccessRead) != 0) text += "read ";
  if ((access & kAccessWrite) != 0) text += "write ";
  if ((access & kAccessAtomic) != 0) text += "atomic ";
  if (text.empty()) return "none";
  text.pop_back();
  return text;
}

Json counters_json(const StatsReport& r, bool all) {
  Json j = Json::object();
  for (auto& [name, value] : r.counters) {
    if (all || value != 0) j[name] = value;
  }
  return j;
}

Json objects_json(const StatsObjects& o) {
  Json j = Json::object();
  for (const auto& [kind, count] : object_counts(o)) j[kind] = count;
  return j;
}

Json pools_json(const StatsReport& r) {
  Json rows = Json::array();
  for (size_t i = 0; i < kStatsPools; ++i) {
    const StatsPool& p = r.objects.pools[i];
    rows.push_back({{"pool", kStatsPoolNames[i]},
                    {"in_use", p.in_use},
                    {"highest", p.highest},
                    {"size", p.size},
                    {"refused", p.refused}});
  }
  return rows;
}

Json segments_json(const StatsReport& r) {
  Json rows = Json::array();
  for (const StatsSegment& s : r.segments) {
    rows.push_back({{"token_id", s.token_id},
                    {"address", fmt::format("{:#x}", s.address)},
                    {"length", s.length},
                    {"access", access_text(s.access)},
                    {"token", s.token_required != 0 ? "required" : "none"}});
  }
  return rows;
}

Json apps_json(const StatsReport& r) {
  Json rows = Json::array();
  for (const StatsApp& a : r.apps) {
    rows.push_back({{"pid", a.pid},
                    {"program", text_of(a.program)},
                    {"uid", a.uid},
                    {"send_queues", a.send_queues},
                    {"receive_queues", a.receive_queues},
                    {"jfcs", a.jfcs},
                    {"segments", a.segments},
                    {"targets", a.targets},
                    {"shared_kib", a.shared_bytes >> 10},
                    {"posts", a.posts},
                    {"agent_copies", a.copies},
                    {"agent_stalls", a.stalls},
                    {"agent_starved", a.starved},
                    {"longest_starved_ms", a.longest_starved_ms},
                    {"events_lost", a.events_lost}});
  }
  return rows;
}

// How often each ended, and how those who drive spent their time; in percent for people.
Json work_json(const WorkFigures& work) {
  Json document = Json::object();
  for (size_t i = 0; i < kOperationCounts; ++i) document[kOperationNames[i]] = work.operations[i];
  for (size_t i = 0; i < kRegimes; ++i) {
    document[fmt::format("own_{}_ns", kRegimeNames[i])] = work.own_regimes_ns[i];
    document[fmt::format("application_{}_ns", kRegimeNames[i])] = work.application_regimes_ns[i];
  }
  return document;
}

double percent_of(const uint64_t (&ns)[kRegimes], size_t regime) {
  const double all = static_cast<double>(std::accumulate(std::begin(ns), std::end(ns), uint64_t{0}));
  return all == 0 ? 0 : 100 * static_cast<double>(ns[regime]) / all;
}

void print_work(const WorkFigures& work) {
  for (size_t i = 0; i < kOperationCounts; ++i) fmt::print("{:<14} {}\n", kOperationNames[i], work.operations[i]);
  fmt::print("\n{:<10} {:>12} {:>24}\n", "TIME", "OWN THREAD %", "APPLICATION (SAMPLED) %");
  for (size_t i = 0; i < kRegimes; ++i) {
    fmt::print("{:<10} {:>12.1f} {:>24.1f}\n", kRegimeNames[i], percent_of(work.own_regimes_ns, i),
               percent_of(work.application_regimes_ns, i));
  }
}

// An array of flat objects as a table.
void print_rows(const Json& rows, uint32_t total, const char* what) {
  if (rows.empty()) {
    fmt::print("no {}\n", what);
    return;
  }
  for (const std::string& line : table_lines(rows)) fmt::print("{}\n", line);
  if (total > rows.size()) fmt::print("and {} more\n", total - rows.size());
}

void print_pairs(const Json& pairs) {
  size_t width = 0;
  for (auto& [name, value] : pairs.items()) width = std::max(width, name.size());
  for (auto& [name, value] : pairs.items()) fmt::print("{:<{}}  {}\n", name, width, value.dump());
}

}  // namespace

int list_instances(const InstanceSelection& selection, bool json) {
  const auto directory = directory_of(selection);
  if (!directory) return 1;
  const uint64_t now = wall_ns();
  Json document = Json::array();
  for (const std::string& name : list_stats_pages(*directory)) {
    const auto i = load_or_complain(*directory, name);
    if (!i) continue;
    const StatsReport& r = i->report;
    std::string eids;
    for (const Eid& e : r.eids) eids += fmt::format("{}{}", eids.empty() ? "" : ",", eid_text(e));
    document.push_back({{"instance", i->name},
                        {"pid", r.pid},
                        {"program", r.program},
                        {"state", i->alive ? "running" : "dead"},
                        {"uasid", fmt::format("{:#010x}", r.uasid)},
                        {"eids", eids},
                        {"placement", r.placement},
                        {"wires", r.wires},
                        {"up", duration_text(r.started_ns, i->alive ? now : r.updated_ns)}});
  }
  if (json) {
    fmt::print("{}\n", document.dump(2));
  } else {
    print_rows(document, 0, fmt::format("instances in {}", *directory).c_str());
  }
  return 0;
}

int list_names(const InstanceSelection& selection, bool json) {
  const auto directory = directory_of(selection);
  if (!directory) return 1;
  Json document = Json::array();
  for (const std::string& name : list_stats_pages(*directory)) {
    const auto i = load_or_complain(*directory, name);
    if (!i || !i->alive) continue;
    for (const StatsName& n : i->report.names) {
      document.push_back({{"name", fmt::format("{}@{}", text_of(n.name), eid_text(i->report.eids.at(0)))},
                          {"length", n.segment.length},
                          {"access", access_text(n.segment.access)},
                          {"token", n.segment.token_required != 0 ? "required" : "none"},
                          {"pid", i->report.pid},
                          {"program", i->report.program}});
    }
  }
  if (json) {
    fmt::print("{}\n", document.dump(2));
  } else {
    print_rows(document, 0, "names");
  }
  return 0;
}

int show_instance(const InstanceSelection& selection, const std::string& what, bool all, bool json) {
  const auto instance = choose_instance(selection);
  if (!instance) return 1;
  const StatsReport& r = instance->report;
  if (what == "events" && !instance->no_events.empty()) {
    fmt::print(stderr, "urma_admin: {}: {}\n", instance->name, instance->no_events);
    return 1;
  }
  if (json) {
    Json document = {{"instance", instance->name}, {"pid", r.pid},     {"program", r.program},
                     {"running", instance->alive}, {"uasid", r.uasid}, {"started_ns", r.started_ns},
                     {"updated_ns", r.updated_ns}};
    if (what == "objects") document["objects"] = objects_json(r.objects);
    if (what == "counters") document["counters"] = counters_json(r, true);
    if (what == "channels") document["channels"] = channels_json(r), document["channels_total"] = r.channels_total;
    if (what == "pools") document["pools"] = pools_json(r);
    if (what == "work") document["work"] = work_json(r.work);
    if (what == "segments") document["segments"] = segments_json(r), document["segments_total"] = r.segments_total;
    if (what == "events") document["events"] = events_json(instance->events);
    if (what == "apps") document["apps"] = apps_json(r), document["apps_total"] = r.apps_total;
    fmt::print("{}\n", document.dump(2));
    return 0;
  }
  const std::string age =
      r.updated_ns == 0 ? "never updated" : fmt::format("as of {} ago", duration_text(r.updated_ns, wall_ns()));
  fmt::print("# {}  pid {}  {}  uasid {:#010x}  {}{}\n", instance->name, r.pid, r.program, r.uasid, age,
             instance->alive ? "" : "  DEAD");
  if (what == "objects") print_pairs(objects_json(r.objects));
  if (what == "counters") print_pairs(counters_json(r, all));
  if (what == "channels") print_channels(r, all);
  if (what == "pools") print_rows(pools_json(r), 0, "pools");
  if (what == "work") print_work(r.work);
  if (what == "segments") print_rows(segments_json(r), r.segments_total, "segments");
  if (what == "apps") print_rows(apps_json(r), r.apps_total, "applications");
  if (what == "events") {
    for (const std::string& line : event_lines(instance->events)) fmt::print("{}\n", line);
    if (instance->events.empty()) fmt::print("no events\n");
  }
  return 0;
}

}  // namespace ub::tools
