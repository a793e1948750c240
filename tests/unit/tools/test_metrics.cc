// SPDX-License-Identifier: Apache-2.0
//
// Statistics pages as metrics: names, units, labels, and the text that Prometheus reads.
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <regex>
#include <set>
#include <sstream>

#include "lib/base/counters.h"
#include "tests/unit/tools/invented_reports.h"
#include "tools/admin/metric_names.h"
#include "tools/admin/stats_metrics.h"

namespace ub::tools {
namespace {

constexpr const char* kPortCounters[] = {
#define UB_PORT_COUNTER(member, name, help) name,
#include "dataplane/plugin_port_counters.def"
#undef UB_PORT_COUNTER
#define UB_LANE_COUNTER(member, name, help) name,
#include "dataplane/lane_port_counters.def"
#undef UB_LANE_COUNTER
#define UB_IMPAIR_COUNT(member, help) "impaired." #member,
#include "lib/impair/counts.def"
#undef UB_IMPAIR_COUNT
};

// The lines of the families whose names begin so. The labels of invented instances are written as @1 and @2.
std::string page(const std::vector<Instance>& instances, const std::string& prefix, size_t most_channels = 64) {
  std::istringstream all(prometheus::TextSerializer().Serialize(metrics_of(instances, 0, most_channels)));
  const std::regex wanted("(# (HELP|TYPE) )?" + prefix + ".*");
  const std::regex own_labels(R"(instance="10.0.0.(\d)-4792",pid="10\1",program="perf")");
  std::string text, line;
  while (std::getline(all, line)) {
    if (!std::regex_match(line, wanted)) continue;
    text += std::regex_replace(line, own_labels, "@$1") + "\n";
  }
  return text;
}

TEST(MetricNames, FollowTheConventions) {
  const CounterMetric drop = counter_metric("rx.drop.bad_ip_header");
  EXPECT_EQ(drop.name, "softub_rx_drop_bad_ip_header_total");
  EXPECT_EQ(drop.help, "IP version, header length, total length or checksum is wrong (rx.drop.bad_ip_header)");
  EXPECT_EQ(drop.unit, 1);
  EXPECT_EQ(counter_metric("tx.bytes").name, "softub_tx_bytes_total");
}

TEST(MetricNames, TimesAreInSeconds) {
  const CounterMetric away = counter_metric("core.away_us");
  EXPECT_EQ(away.name, "softub_core_away_seconds_total");
  EXPECT_EQ(away.unit, 1e-6);
  EXPECT_EQ(away.help.find("microseconds"), std::string::npos) << away.help;
  EXPECT_EQ(counter_metric("some.wait_ns").unit, 1e-9);
  EXPECT_EQ(counter_metric("some.wait_ms").name, "softub_some_wait_seconds_total");
}

TEST(MetricNames, AllCountersHaveLegalNamesOfTheirOwnAndTexts) {
  std::vector<std::string> counters(std::begin(kCounterNames), std::end(kCounterNames));
  counters.insert(counters.end(), std::begin(kPortCounters), std::end(kPortCounters));
  std::set<std::string> names;
  for (const std::string& counter : counters) {
    const CounterMetric m = counter_metric(counter);
    EXPECT_TRUE(std::regex_match(m.name, std::regex("softub_[a-z0-9_]+_total"))) << m.name;
    EXPECT_TRUE(names.insert(m.name).second) << m.name << " comes twice";
    EXPECT_EQ(m.help.find("does not know"), std::string::npos) << counter;
  }
}

TEST(MetricNames, CounterOfAnotherBuildIsLegal) {
  const CounterMetric m = counter_metric("new.thing-2{}");
  EXPECT_EQ(m.name, "softub_new_thing_2___total");
  EXPECT_NE(m.help.find("does not know"), std::string::npos);
}

TEST(Metrics, CountersOfInstances) {
  EXPECT_EQ(page({invented_instance(1), invented_instance(2)}, "softub_rx_"),
            R"(# HELP softub_rx_packets_total frames handed to the core by its port (rx.packets)
# TYPE softub_rx_packets_total counter
softub_rx_packets_total{@1} 7
softub_rx_packets_total{@2} 7
)");
  const std::string away = page({invented_instance()}, "softub_core_away");
  EXPECT_NE(away.find("softub_core_away_seconds_total{@1} 1.5\n"), std::string::npos) << away;
}

TEST(Metrics, OfADeadInstanceOnlyThatItIsDead) {
  Instance dead = invented_instance();
  dead.alive = false;
  EXPECT_EQ(page({dead}, "softub_instance_info"), "");
  EXPECT_EQ(page({dead}, "softub_rx"), "");
  EXPECT_NE(page({dead}, "softub_instance_up").find("softub_instance_up{@1} 0\n"), std::string::npos);
  EXPECT_NE(page({dead}, "softub_instances").find("softub_instances 0\n"), std::string::npos);
}

TEST(Metrics, Pools) {
  Instance i = invented_instance();
  i.report.objects.pools[1] = {3, 5, 100, 2};
  const std::string text = page({i}, "softub_pool");
  const std::string labels = R"({@1,pool="kept_large"} )";
  for (const char* sample : {"in_use", "in_use_highest", "size", "refused_total"}) {
    EXPECT_NE(text.find(std::string("softub_pool_") + sample + labels), std::string::npos) << text;
  }
  EXPECT_NE(text.find("softub_pool_size" + labels + "100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("softub_pool_refused_total" + labels + "2\n"), std::string::npos) << text;
}

TEST(Metrics, OperationsAndTimeOfThoseWhoDrive) {
  Instance i = invented_instance();
  i.report.work.operations[0] = 12;
  i.report.work.own_regimes_ns[static_cast<size_t>(Regime::kHeld)] = 2'500'000'000;
  const std::string operations = page({i}, "softub_operations");
  EXPECT_NE(operations.find("softub_operations_total{@1,kind=\"requests\"} 12\n"), std::string::npos) << operations;
  const std::string time = page({i}, "softub_driver");
  EXPECT_NE(time.find("{@1,driver=\"own\",regime=\"held\"} 2.5\n"), std::string::npos) << time;
  EXPECT_NE(time.find("{@1,driver=\"application\",regime=\"busy\"} 0\n"), std::string::npos) << time;
}

TEST(Metrics, LatenciesOnlyWhileTheyAreMeasured) {
  Instance i = invented_instance();
  i.report.work.latencies[0].classes[0] = {.count = 4, .p50 = 1000, .p99 = 2000, .p999 = 3000, .max = 4000};
  EXPECT_EQ(page({i}, "softub_stage"), "");
  i.report.work.latency_on = 1;
  const std::string text = page({i}, "softub_stage");
  const std::string labels = "@1,stage=\"posted_to_sent\",class=\"small\"";
  const std::string p99 = "softub_stage_latency_seconds{" + labels + ",quantile=\"0.99\"} 2e-06\n";
  EXPECT_NE(text.find(p99), std::string::npos) << text;
  EXPECT_NE(text.find("softub_stage_latency_samples{" + labels + "} 4\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("class=\"bulk\""), std::string::npos) << text;
}

TEST(Metrics, ChannelsAndTheirPaths) {
  Instance i = invented_instance();
  i.report.channels = {invented_channel(5)};
  i.report.channels_total = 1;
  StatsPath path{};
  path.tpn = 5;
  path.number = 1;
  path.live = 1;
  path.smoothed_rtt_ns = 2'000'000;
  i.report.paths = {path};
  EXPECT_EQ(page({i}, "softub_channel_(rtt|in_flight)"),
            R"(# HELP softub_channel_in_flight_packets packets sent and not yet acknowledged
# TYPE softub_channel_in_flight_packets gauge
softub_channel_in_flight_packets{@1,tpn="5",peer="10.0.0.9"} 10
# HELP softub_channel_rtt_seconds smoothed round trip; 0: nothing was measured
# TYPE softub_channel_rtt_seconds gauge
softub_channel_rtt_seconds{@1,tpn="5",peer="10.0.0.9"} 2.5e-05
)");
  const std::string info = page({i}, "softub_channel_info");
  EXPECT_NE(info.find(R"(softub_channel_info{@1,tpn="5",peer="10.0.0.9",remote="10.0.0.9:4793",link="0",)"
                      R"(transport="rtp",lane="small",state="open",retransmission="selective",congestion="swift"} 1)"),
            std::string::npos)
      << info;
  EXPECT_EQ(page({i}, "softub_path_(rtt|live)"),
            R"(# HELP softub_path_live 1: data takes the path; 0: nothing arrives on it
# TYPE softub_path_live gauge
softub_path_live{@1,tpn="5",path="1"} 1
# HELP softub_path_rtt_seconds smoothed round trip of the path
# TYPE softub_path_rtt_seconds gauge
softub_path_rtt_seconds{@1,tpn="5",path="1"} 0.002
)");
}

TEST(Metrics, ChannelsBeyondTheLimitAreCounted) {
  Instance i = invented_instance();
  i.report.channels = {invented_channel(5), invented_channel(6), invented_channel(7)};
  i.report.channels_total = 700;
  const std::string text = page({i}, "softub_channel", 2);
  EXPECT_EQ(text.find("tpn=\"7\""), std::string::npos);
  EXPECT_NE(text.find("tpn=\"6\""), std::string::npos);
  EXPECT_NE(text.find("softub_channels_unlisted{@1} 698\n"), std::string::npos);
}

TEST(Metrics, ApplicationThatIsAttachedTwiceIsOne) {
  Instance i = invented_instance();
  i.report.placement = "daemon";
  i.report.apps = {invented_app(900, 10), invented_app(900, 5), invented_app(901, 1)};
  i.report.apps_total = 3;
  EXPECT_EQ(page({i}, "softub_app_(posts|agent_longest)"),
            R"(# HELP softub_app_agent_longest_starved_seconds the longest time that the agent got no CPU
# TYPE softub_app_agent_longest_starved_seconds gauge
softub_app_agent_longest_starved_seconds{@1,app_pid="900",app_uid="0",app_program="worker"} 0.02
softub_app_agent_longest_starved_seconds{@1,app_pid="901",app_uid="0",app_program="worker"} 0.02
# HELP softub_app_posts_total doorbells of the application that the daemon took
# TYPE softub_app_posts_total counter
softub_app_posts_total{@1,app_pid="900",app_uid="0",app_program="worker"} 15
softub_app_posts_total{@1,app_pid="901",app_uid="0",app_program="worker"} 1
)");
}

TEST(Metrics, PacketsInFlightAreCountedWhereTheirNumbersWrap) {
  Instance i = invented_instance();
  i.report.channels = {invented_channel(5)};
  i.report.channels_total = 1;
  i.report.channels[0].oldest_unacked = 0xfffffe;
  i.report.channels[0].next_psn = 3;
  EXPECT_TRUE(page({i}, "softub_channel_in_flight").ends_with("} 5\n"));
}

// All that is told of it: what each row has, together.
TEST(Metrics, AllNumbersOfAnApplicationThatIsAttachedTwiceAreAdded) {
  Instance i = invented_instance();
  i.report.placement = "daemon";
  StatsApp app = invented_app(900, 5);
  app.send_queues = app.receive_queues = app.jfcs = app.segments = app.targets = app.stalls = app.starved = 5;
  app.shared_bytes = app.copies = app.events_lost = 5;
  i.report.apps = {app, app};
  i.report.apps_total = 2;
  const std::string all = page({i}, "softub_app_(?!agent_longest)");
  size_t samples = 0;
  for (size_t at = all.find("app_pid="); at != std::string::npos; at = all.find("app_pid=", at + 1), ++samples) {
    const std::string line = all.substr(at, all.find('\n', at) - at);
    EXPECT_TRUE(line.ends_with("} 10")) << line;
  }
  EXPECT_EQ(samples, 11u);
}

TEST(Metrics, NamesThatOthersChoseAreHarmless) {
  Instance i = invented_instance();
  i.report.program = "a\"b\\c\n\xff\x1b[2J";
  EXPECT_NE(page({i}, "softub_instance_up").find("program=\"a\\\"b\\\\c???[2J\"} 1\n"), std::string::npos);
}

}  // namespace
}  // namespace ub::tools
