// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "dataplane/words.h"
#include "lib/base/channel_counts.h"

namespace ub {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostChannels = 16, kMostApps = 40;  // in one answer

// DPDK allows no other characters in a name.
std::string key_of(std::string_view name) {
  std::string key(name);
  std::replace_if(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '/'; }, '_');
  return key;
}

template <size_t N>
std::string text_of(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

std::string ip_text(const uint8_t (&bytes)[16]) {
  Eid eid;
  std::memcpy(eid.bytes.data(), bytes, sizeof bytes);
  return eid_text(eid);
}

template <size_t N>
Json named(const char* const (&names)[N], const uint64_t (&values)[N], const char* suffix = "") {
  Json object = Json::object();
  for (size_t i = 0; i < N; ++i) object[std::string(names[i]) + suffix] = values[i];
  return object;
}

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    std::string_view word = take_part(&list, ',');
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

bool is_of_core(std::string_view counter) {
  return std::find(std::begin(kCounterNames), std::end(kCounterNames), counter) != std::end(kCounterNames);
}

// Those that are not 0.
Json counters_if(const StatsReport& r, bool of_core) {
  Json object = Json::object();
  for (const auto& [name, value] : r.counters) {
    if (value != 0 && is_of_core(name) == of_core) object[key_of(name)] = value;
  }
  return object;
}

// ---- the commands ----------------------------------------------------------------------------------------------

Json info(const StatsReport& r, uint64_t) {
  Json eids = Json::array();
  for (const Eid& eid : r.eids) eids.push_back(eid_text(eid));
  const StatsObjects& o = r.objects;
  return {{"pid", static_cast<uint64_t>(r.pid)},
          {"program", r.program},
          {"placement", r.placement},
          {"device", r.device},
          {"wires", r.wires},
          {"eids", eids},
          {"uasid", uint64_t{r.uasid}},
          {"udp_port", uint64_t{r.udp_port}},
          {"started_ns", r.started_ns},
          {"updated_ns", r.updated_ns},
          {"jettys", uint64_t{o.jetty}},
          {"send_queues", uint64_t{o.jfs}},
          {"receive_queues", uint64_t{o.jfr}},
          {"completion_queues", uint64_t{o.jfc}},
          {"segments", uint64_t{o.segments}},
          {"peers", uint64_t{o.peers}},
          {"channels", uint64_t{o.channels}},
          {"links", uint64_t{o.links}}};
}

Json counters(const StatsReport& r, uint64_t) { return counters_if(r, true); }
Json ports(const StatsReport& r, uint64_t) {
  return {{"wires", words_of(r.wires)}, {"counters", counters_if(r, false)}};
}

Json channel(const StatsChannel& c) {
  Json counts = Json::object();
  for (size_t i = 0; i < kChannelCounts; ++i) {
    if (c.counts[i] != 0) counts[key_of(kChannelCountNames[i])] = c.counts[i];
  }
  return {{"tpn", uint64_t{c.tpn}},
          {"peer", ip_text(c.peer_eid)},
          {"remote", ip_text(c.remote_ip)},
          {"remote_port", uint64_t{c.remote_port}},
          {"transport", c.compact != 0 ? "ctp" : "rtp"},
          {"lane", c.bulk != 0 ? "bulk" : "small"},
          {"state", uint64_t{c.state}},
          {"window_packets", uint64_t{c.window_packets}},
          {"in_flight_packets", uint64_t{in_flight_of(c)}},
          {"rtt_ns", static_cast<uint64_t>(std::max<int64_t>(c.smoothed_rtt_ns, 0))},
          {"tx_packets", c.tx_packets},
          {"rx_packets", c.rx_packets},
          {"retransmits", c.retransmits},
          {"lost_packets", c.lost},
          {"counts", counts}};
}

Json app(const StatsApp& a) {
  return {{"pid", uint64_t{a.pid}},
          {"uid", uint64_t{a.uid}},
          {"program", text_of(a.program)},
          {"send_queues", uint64_t{a.send_queues}},
          {"receive_queues", uint64_t{a.receive_queues}},
          {"completion_queues", uint64_t{a.jfcs}},
          {"segments", uint64_t{a.segments}},
          {"targets", uint64_t{a.targets}},
          {"shared_bytes", a.shared_bytes},
          {"posts", a.posts},
          {"copies", a.copies},
          {"stalls", uint64_t{a.stalls}},
          {"events_lost", a.events_lost}};
}

// The rows from number `from` on, as many as fit; "next": the number behind them, 0: there are no more.
template <class Row, class Make>
Json page_of(const char* name, const std::vector<Row>& rows, uint64_t from, size_t most, Make make) {
  Json object = Json::object();  // by number: DPDK has no arrays of objects
  uint64_t at = std::min<uint64_t>(from, rows.size());
  for (; at != rows.size() && object.size() != most; ++at) object[std::to_string(at)] = make(rows[at]);
  return {{"total", uint64_t{rows.size()}}, {"next", at == rows.size() ? 0 : at}, {name, object}};
}

Json channels(const StatsReport& r, uint64_t from) {
  return page_of("channels", r.channels, from, kMostChannels, channel);
}
Json apps(const StatsReport& r, uint64_t from) { return page_of("apps", r.apps, from, kMostApps, app); }

Json work(const StatsReport& r, uint64_t) {
  return {{"operations", named(kOperationNames, r.work.operations)},
          {"own_regimes_ns", named(kRegimeNames, r.work.own_regimes_ns)},
          {"application_regimes_ns", named(kRegimeNames, r.work.application_regimes_ns)}};
}

Json figures(const LatencyFigures& f) {
  return {{"count", f.count},   {"min_ns", f.min},     {"mean_ns", f.mean}, {"p50_ns", f.p50},
          {"p99_ns", f.p99}, {"p99_9_ns", f.p999}, {"max_ns", f.max}};
}

Json stage(const LatencyOfStage& of) {
  Json classes = Json::object();
  for (size_t i = 0; i < kTrafficClasses; ++i) {
    if (of.classes[i].count != 0) classes[kTrafficClassNames[i]] = figures(of.classes[i]);
  }
  return {{"no_start", of.misses.no_start},
          {"forgotten", of.misses.forgotten},
          {"unseen", of.misses.unseen},
          {"classes", classes}};
}

Json latency(const StatsReport& r, uint64_t) {
  Json stages = Json::object();
  for (size_t i = 0; i < kLatencyStages; ++i) stages[kLatencyStageNames[i]] = stage(r.work.latencies[i]);
  return {{"on", r.work.latency_on},
          {"since_ns", r.work.latency_since_ns},
          {"ended", named(kOperationKindNames, r.work.kinds)},
          {"stages", stages}};
}

struct Command {
  Json (*make)(const StatsReport&, uint64_t from);
  bool has_parameter;
};
constexpr TelemetryCommand kCommands[] = {
    {"/softub/apps", "The applications of a daemon. Parameter: number of the first one"},
    {"/softub/channels", "Its channels. Parameter: number of the first one"},
    {"/softub/counters", "The counters of its Core that are not 0"},
    {"/softub/info", "What the NIC is, and how many objects it has"},
    {"/softub/latency", "How long stages take inside, while that is measured"},
    {"/softub/ports", "Its wires, and their counters that are not 0"},
    {"/softub/work", "Operations that ended, and how those who drive spend their time"},
    {nullptr, nullptr},
};
constexpr Command kAnswers[] = {{apps, true},  {channels, true}, {counters, false}, {info, false},
                                {latency, false}, {ports, false},   {work, false}};
static_assert(std::size(kAnswers) + 1 == std::size(kCommands));

std::string list_of_commands() {
  Json paths = Json::array({"/"});
  for (const TelemetryCommand* c = kCommands; c->path != nullptr; ++c) paths.push_back(c->path);
  return Json{{"/", paths}}.dump();
}

}  // namespace

const TelemetryCommand* telemetry_commands() { return kCommands; }

std::optional<std::string> answer_telemetry(const StatsReport& report, std::string_view request, std::string* why) {
  const std::string_view path = take_part(&request, ',');
  if (path == "/") return list_of_commands();
  for (size_t i = 0; i < std::size(kAnswers); ++i) {
    if (path != kCommands[i].path) continue;
    uint64_t from = 0;
    if (!request.empty() && (!kAnswers[i].has_parameter || !read_number(request, &from))) {
      *why = std::string(path) + (kAnswers[i].has_parameter ? " takes a number behind its comma" : " has no parameter");
      return std::nullopt;
    }
    const Json answer = {{std::string(path), kAnswers[i].make(report, from)}};
    return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  *why = "there is no \"" + std::string(path) + "\"; / lists all commands";
  return std::nullopt;
}

}  // namespace ub
