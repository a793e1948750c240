// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/channel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "lib/transport/tp/channel.h"
#include "tools/admin/instance_pages.h"
#include "tools/admin/table.h"

namespace ub::tools {

using Json = nlohmann::ordered_json;

const char* channel_state(uint8_t state) {
  constexpr const char* kNames[] = {"free", "requested", "half open", "open", "closing", "dead"};  // ChannelState
  return state < std::size(kNames) ? kNames[state] : "?";
}

std::string lane_name(const StatsChannel& c) {
  const char* kind = c.compact != 0 ? "compact" : c.bulk != 0 ? "bulk" : "small";
  return fmt::format("{}{}", c.ordered != 0 ? "ordered " : "", kind);
}

const char* transport_name(const StatsChannel& c) {
  if (c.compact == 0) return c.cna != 0 ? "rtp over cna" : "rtp";
  return c.repeats != 0 ? "ctp with repeats" : "ctp";
}

const char* retransmission_name(const StatsChannel& c) {
  if (c.compact != 0) return c.repeats != 0 ? "requests" : "none";
  return c.go_back_n != 0 ? "go_back_n" : "selective";
}

std::string endpoint_text(const uint8_t (&ip)[16], uint16_t port) {
  const std::string text = ip_text(ip);
  return text.find(':') == std::string::npos ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

std::vector<StatsPath> paths_of(const StatsReport& r, const StatsChannel& c) {
  std::vector<StatsPath> paths;
  std::copy_if(r.paths.begin(), r.paths.end(), std::back_inserter(paths),
               [&](const StatsPath& p) { return p.tpn == c.tpn; });
  return paths;
}

namespace {

Json counts_json(const StatsChannel& c) {
  Json counts = Json::object();
  for (size_t i = 0; i < kChannelCounts; ++i) counts[kChannelCountNames[i]] = c.counts[i];
  return counts;
}

double us_of(int64_t ns) { return static_cast<double>(ns) / 1000; }
double mbit_of(uint32_t kbytes_per_second) { return static_cast<double>(kbytes_per_second) * 8 / 1000; }

Json paths_json(const std::vector<StatsPath>& paths) {
  Json rows = Json::array();
  uint64_t sent = 0;
  for (const StatsPath& p : paths) sent += p.tx_packets;
  for (const StatsPath& p : paths) {
    const double share = sent == 0 ? 0 : 100 * static_cast<double>(p.tx_packets) / static_cast<double>(sent);
    rows.push_back({{"path", p.number},
                    {"local", endpoint_text(p.local_ip, p.local_port)},
                    {"remote", endpoint_text(p.remote_ip, p.remote_port)},
                    {"live", p.live != 0},
                    {"share_percent", share},
                    {"rtt_us", us_of(p.smoothed_rtt_ns)},
                    {"window", p.window_packets},
                    {"rate_mbit_s", mbit_of(p.rate_kbytes_per_second)},
                    {"in_flight", p.in_flight},
                    {"marks", p.marks},
                    {"lost", p.lost},
                    {"deaths", p.deaths},
                    {"tx_packets", p.tx_packets},
                    {"rx_packets", p.rx_packets}});
  }
  return rows;
}

// For a table: each count that is not 0 everywhere is a column. Paths have lines of their own.
Json channel_rows(Json rows, bool all) {
  const auto is_shown = [&](auto get) { return all || std::any_of(rows.begin(), rows.end(), get); };
  for (const char* name : {"rate_mbit_s", "lost"}) {
    if (is_shown([&](const Json& row) { return row[name].get<double>() != 0; })) continue;
    for (Json& row : rows) row.erase(name);
  }
  for (const char* name : kChannelCountNames) {
    if (!is_shown([&](const Json& row) { return row["counts"][name].get<uint64_t>() != 0; })) continue;
    for (Json& row : rows) row[name] = row["counts"][name];
  }
  for (Json& row : rows) {
    for (const char* name : {"counts", "paths", "paths_total"}) row.erase(name);
  }
  return rows;
}

// The line of a channel says all of its only path.
bool has_path_lines(const Json& channel) { return channel["paths_total"].get<uint32_t>() > 1; }

// The same of a path for a table.
Json path_row(const Json& path) {
  Json row = {{"path", path["path"]},
              {"local > remote", path["local"].get<std::string>() + " > " + path["remote"].get<std::string>()},
              {"state", path["live"].get<bool>() ? "live" : "dead"}};
  for (auto& [name, value] : path.items()) {
    if (name != "local" && name != "remote" && name != "live") row[name] = value;
  }
  return row;
}

}  // namespace

std::string ip_text(const uint8_t (&bytes)[16]) {
  Eid eid;
  std::copy(bytes, bytes + 16, eid.bytes.begin());
  return eid_text(eid);
}

Json channels_json(const StatsReport& r) {
  Json rows = Json::array();
  for (const StatsChannel& c : r.channels) {
    rows.push_back(
        {{"channel", c.tpn & ((1u << tp::kTpnIndexBits) - 1)},
         {"tpn", c.tpn},
         {"peer_tpn", c.peer_tpn},
         {"peer", ip_text(c.peer_eid)},
         {"peer_uasid", fmt::format("{:#010x}", c.peer_uasid)},
         {"remote", fmt::format("{}:{}", ip_text(c.remote_ip), c.remote_port)},
         {"link", c.link},
         {"mtu", c.mtu},
         {"transport", transport_name(c)},
         {"lane", lane_name(c)},
         {"state", channel_state(c.state)},
         {"in_flight", in_flight_of(c)},
         {"queued", c.queued_messages},
         {"tx_packets", c.tx_packets},
         {"rx_packets", c.rx_packets},
         {"retransmission", retransmission_name(c)},
         {"retransmits", c.retransmits},
         {"rtt_us", us_of(c.smoothed_rtt_ns)},
         {"rto_us", us_of(c.rto_ns)},
         {"congestion", text_of(c.congestion_control)},
         {"window", c.window_packets},
         {"rate_mbit_s", mbit_of(c.rate_kbytes_per_second)},
         {"lost", c.lost},
         {"counts", counts_json(c)},
         {"paths_total", c.paths},
         {"paths", paths_json(paths_of(r, c))}});
  }
  return rows;
}

void print_channels(const StatsReport& r, bool all) {
  const Json channels = channels_json(r);
  if (channels.empty()) return fmt::print("no channels\n");
  Json paths = Json::array();
  for (const Json& c : channels) {
    if (has_path_lines(c)) std::transform(c["paths"].begin(), c["paths"].end(), std::back_inserter(paths), path_row);
  }
  const std::vector<std::string> lines = table_lines(channel_rows(channels, all)), path_lines = table_lines(paths);
  fmt::print("{}\n", lines[0]);
  if (!paths.empty()) fmt::print("    {}\n", path_lines[0]);
  size_t next_path = 1;
  for (size_t i = 0; i < channels.size(); ++i) {
    fmt::print("{}\n", lines[i + 1]);
    if (!has_path_lines(channels[i])) continue;
    const size_t shown = channels[i]["paths"].size(), total = channels[i]["paths_total"].get<size_t>();
    for (size_t n = 0; n < shown; ++n) fmt::print("    {}\n", path_lines[next_path++]);
    if (total > shown) fmt::print("    and {} more\n", total - shown);
  }
  if (r.channels_total > channels.size()) fmt::print("and {} more\n", r.channels_total - channels.size());
}

}  // namespace ub::tools
