// SPDX-License-Identifier: Apache-2.0
//
// Answers in JSON, from invented reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dataplane/telemetry.h"

namespace ub {
namespace {

nlohmann::ordered_json answer(const StatsReport& report, const std::string& request) {
  std::string why;
  const auto text = answer_telemetry(report, request, &why);
  EXPECT_TRUE(text) << why;
  if (!text) return {};
  EXPECT_LE(text->size(), kMostTelemetryBytes);
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(*text);
  const std::string path = request.substr(0, request.find(','));
  EXPECT_TRUE(json.is_object() && json.size() == 1 && json.contains(path)) << *text;
  return json.at(path);
}

TEST(Telemetry, lists_its_commands) {
  const nlohmann::ordered_json paths = answer({}, "/");
  for (const TelemetryCommand* c = telemetry_commands(); c->path != nullptr; ++c) {
    EXPECT_NE(std::find(paths.begin(), paths.end(), c->path), paths.end()) << c->path;
    answer({}, c->path);
  }
}

TEST(Telemetry, says_what_is_wrong) {
  std::string why;
  EXPECT_FALSE(answer_telemetry({}, "/softub/none", &why));
  EXPECT_NE(why.find("/softub/none"), std::string::npos);
  EXPECT_FALSE(answer_telemetry({}, "/softub/info,1", &why));
  EXPECT_FALSE(answer_telemetry({}, "/softub/channels,x", &why));
}

TEST(Telemetry, counters_that_are_not_0_have_names_that_dpdk_allows) {
  StatsReport report;
  report.counters = {{"rx.packets", 5}, {"tx.packets", 0}, {"dpdk.tx.waited", 3}};
  EXPECT_EQ(answer(report, "/softub/counters"), (nlohmann::ordered_json{{"rx_packets", 5}}));
  EXPECT_EQ(answer(report, "/softub/ports").at("counters"), (nlohmann::ordered_json{{"dpdk_tx_waited", 3}}));
}

TEST(Telemetry, channels_come_in_pages_that_fit) {
  StatsReport report;
  report.channels.resize(50);
  for (uint32_t i = 0; i < 50; ++i) {
    StatsChannel& c = report.channels[i];
    c = {};
    c.tpn = i;
    c.tx_packets = c.rx_packets = c.retransmits = c.lost = UINT64_MAX;
    c.smoothed_rtt_ns = INT64_MAX;
    for (uint64_t& count : c.counts) count = UINT64_MAX;
  }
  uint64_t from = 0, seen = 0;
  do {
    const nlohmann::ordered_json page = answer(report, "/softub/channels," + std::to_string(from));
    EXPECT_EQ(page.at("total"), 50);
    for (const auto& c : page.at("channels")) EXPECT_EQ(c.at("tpn"), seen++);
    from = page.at("next");
  } while (from != 0);
  EXPECT_EQ(seen, 50u);
  EXPECT_TRUE(answer(report, "/softub/channels,99").at("channels").empty());
}

TEST(Telemetry, packets_in_flight_are_counted_where_their_numbers_wrap) {
  StatsReport report;
  report.channels.resize(1);
  report.channels[0].oldest_unacked = 0xfffffe;
  report.channels[0].next_psn = 3;
  EXPECT_EQ(answer(report, "/softub/channels").at("channels").at("0").at("in_flight_packets"), 5);
}

TEST(Telemetry, latencies_have_the_classes_that_were_seen) {
  StatsReport report;
  report.work.latency_on = 1;
  report.work.latencies[0].classes[1] = {.count = 3, .min = 1, .mean = 2, .p50 = 2, .p99 = 4, .p999 = 4, .max = 4};
  const nlohmann::ordered_json stages = answer(report, "/softub/latency").at("stages");
  EXPECT_EQ(stages.size(), kLatencyStages);
  EXPECT_EQ(stages.at("posted_to_sent").at("classes").size(), 1u);
  EXPECT_EQ(stages.at("posted_to_sent").at("classes").at("bulk").at("p99_ns"), 4);
}

}  // namespace
}  // namespace ub
