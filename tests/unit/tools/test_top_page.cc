// SPDX-License-Identifier: Apache-2.0
//
// The page of `urma_admin top`: rates between two invented reports, order, and what fits a small terminal.
#include <gtest/gtest.h>

#include "tests/unit/tools/invented_reports.h"
#include "tools/admin/fitted_table.h"
#include "tools/admin/top_page.h"

namespace ub::tools {
namespace {

constexpr uint64_t at(double seconds) {
  return kInventedStart + static_cast<uint64_t>(seconds * static_cast<double>(kInventedSecond));
}

// The same instance two seconds later.
Instance later(Instance i) {
  i.report.updated_ns += 2 * kInventedSecond;
  ++i.report.updates;
  return i;
}

TopView view(size_t width = 0, size_t height = 0) {
  TopView v;
  v.width = width;
  v.height = height;
  v.directory = "/some/where";
  v.clock = "12:00:00";
  return v;
}

std::vector<std::string> text(const InstanceRates& rates, const TopView& v) {
  size_t most_scroll = 0;
  std::vector<std::string> lines;
  for (const TopLine& line : top_page(rates.instances(), v, &most_scroll)) lines.push_back(line.text);
  return lines;
}

size_t line_with(const std::vector<std::string>& lines, const std::string& part) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(part) != std::string::npos) return i;
  }
  return lines.size();
}

// Two looks at one instance with a channel and counters that grew.
InstanceRates busy() {
  Instance first = invented_instance();
  first.report.counters = {{"tx.packets", 100}, {"rx.drop.bad_icrc", 5}, {"lane.requests", 0}};
  first.report.channels = {invented_channel(5)};
  first.report.channels_total = 1;
  Instance second = later(first);
  second.report.counters = {{"tx.packets", 300}, {"rx.drop.bad_icrc", 25}, {"lane.requests", 4000}};
  second.report.channels[0].tx_packets += 60;
  second.report.work.operations[0] += 80;
  InstanceRates rates;
  rates.take({first}, at(1), 2);
  rates.take({second}, at(3), 2);
  return rates;
}

TEST(TopPage, Golden) {
  EXPECT_EQ(
      text(busy(), view(80, 24)),
      (std::vector<std::string>{"12:00:00  1 instance  every 1 s  by TX+RX",
                                "    PID INSTANCE      PROGRAM WIRES    OPS/s  TX/s  RX/s TX B/s RX B/s AGAIN/s",
                                "    101 10.0.0.1-4792 perf    shm, udp    40   100     0      0      0       0",
                                "    PID CHANNEL PEER     LANE   TX/s  RX/s  RTT us WINDOW AGAIN/s LOST/s MARKS/s",
                                "    101       5 10.0.0.9 small    30     0      25     64       0      0       0",
                                "    PID PORT COUNTER                /s  TOTAL MEANING",
                                "    101 lane.requests             2000   4000 loads and stores taken from lanes",
                                "    PID LOST OR DROPPED             /s  TOTAL MEANING",
                                "    101 rx.drop.bad_icrc            10     25 ICRC mismatch: the packet was dama"}));
}

TEST(TopPage, FirstLookHasNoRates) {
  InstanceRates rates;
  rates.take({invented_instance()}, at(1), 1);
  const auto lines = text(rates, view());
  EXPECT_NE(lines[line_with(lines, "10.0.0.1-4792")].find("     -     -"), std::string::npos);
}

// The last columns of the only instance in a wide page.
std::string wide_row(const Instance& first, Instance second) {
  InstanceRates rates;
  rates.take({first}, at(1), 2);
  rates.take({std::move(second)}, at(3), 2);
  const auto lines = text(rates, view(200, 24));
  return lines[line_with(lines, "INSTANCE")] + "\n" + lines[line_with(lines, "10.0.0.1-4792")];
}

TEST(TopPage, TimeOfApplicationThreadsIfAnyDrove) {
  const Instance first = invented_instance();
  Instance second = later(first);
  second.report.work.own_regimes_ns[static_cast<size_t>(Regime::kAsleep)] += 1000;
  EXPECT_TRUE(wide_row(first, second).ends_with("     0      0      -      -        0")) << wide_row(first, second);
  second.report.work.application_regimes_ns[static_cast<size_t>(Regime::kBusy)] += 600;
  second.report.work.application_regimes_ns[static_cast<size_t>(Regime::kYielded)] += 100;
  second.report.work.application_regimes_ns[static_cast<size_t>(Regime::kHeld)] += 200;
  second.report.work.application_regimes_ns[static_cast<size_t>(Regime::kNoRoom)] += 100;
  EXPECT_TRUE(wide_row(first, second).ends_with("    70     30      -      -        0")) << wide_row(first, second);
}

TEST(TopPage, LatenciesOnlyWhileTheyAreMeasured) {
  const Instance first = invented_instance();
  Instance second = later(first);
  LatencyOfStage& of = second.report.work.latencies[static_cast<size_t>(LatencyStage::kPostedToCompleted)];
  of.classes[0] = {.count = 1, .p50 = 1'000'000, .p99 = 1'000'000};
  of.classes[1] = {.count = 9, .p50 = 5000, .p99 = 70'000};
  EXPECT_TRUE(wide_row(first, second).ends_with("     -      -        0")) << wide_row(first, second);
  second.report.work.latency_on = 1;
  EXPECT_TRUE(wide_row(first, second).ends_with("   5.0     70        0")) << wide_row(first, second);
}

TEST(TopPage, NoInstance) { EXPECT_EQ(text({}, view(80, 24))[1], "no instance runs in /some/where"); }

TEST(TopPage, BusiestFirstAndSorted) {
  Instance first = invented_instance();
  first.report.channels = {invented_channel(5), invented_channel(6)};
  first.report.channels[0].smoothed_rtt_ns = 90'000'000;
  Instance second = later(first);
  second.report.channels[1].tx_packets += 500;
  InstanceRates rates;
  rates.take({first}, at(1), 1);
  rates.take({second}, at(3), 1);
  TopView v = view();
  auto lines = text(rates, v);
  EXPECT_LT(line_with(lines, "     6 "), line_with(lines, "     5 "));
  v.sort = TopSort::kRtt;
  lines = text(rates, v);
  EXPECT_GT(line_with(lines, "     6 "), line_with(lines, "     5 "));
  EXPECT_EQ(next_sort(next_sort(next_sort(next_sort(v.sort)))), v.sort);
}

TEST(TopPage, ScrollsTablesThatDoNotFit) {
  Instance i = invented_instance();
  for (uint32_t n = 0; n < 100; ++n) i.report.channels.push_back(invented_channel(1000 + n));
  InstanceRates rates;
  rates.take({i}, at(1), 1);
  TopView v = view(80, 24);
  size_t most_scroll = 0;
  EXPECT_EQ(top_page(rates.instances(), v, &most_scroll).size(), 24u);
  auto lines = text(rates, v);
  EXPECT_LT(line_with(lines, "1000"), 24u);
  EXPECT_EQ(lines.back(), "  (1 to 19 of 100)");
  v.scroll = most_scroll;
  lines = text(rates, v);
  EXPECT_EQ(lines.back(), "  (82 to 100 of 100)");
  EXPECT_LT(line_with(lines, "10.0.0.1-4792"), 24u) << "a table that fits does not move";
}

TEST(TopPage, FitsEveryTerminal) {
  const InstanceRates rates = busy();
  for (size_t width = 1; width <= 200; width += 3) {
    for (const size_t height : {1, 2, 3, 5, 8, 13, 24, 50}) {
      const auto lines = text(rates, view(width, height));
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(line.size(), width) << line;
    }
  }
}

TEST(TopPage, TextOfOthersIsHarmless) {
  Instance i = invented_instance();
  i.report.program = "\x1b[2J\n";
  InstanceRates rates;
  rates.take({i}, at(1), 1);
  for (const std::string& line : text(rates, view())) EXPECT_EQ(line.find_first_of("\x1b\n"), std::string::npos);
}

TEST(InstanceRates, KeepsRatesForAWhileThenTheInstanceIsIdle) {
  InstanceRates rates = busy();
  const Instance unchanged = rates.instances()[0].now;
  rates.take({unchanged}, at(4), 2);
  EXPECT_EQ(rates.instances()[0].counter_rate("tx.packets"), 100);
  rates.take({unchanged}, at(6), 2);
  EXPECT_EQ(rates.instances()[0].counter_rate("tx.packets"), 0);
}

TEST(InstanceRates, AnotherProcessUnderTheSameNameStartsAnew) {
  InstanceRates rates = busy();
  Instance other = later(rates.instances()[0].now);
  other.report.pid = 4711;
  rates.take({other}, at(5), 2);
  EXPECT_EQ(rates.instances()[0].seconds, 0);
}

TEST(InstanceRates, CountsThatShrinkHaveNoRate) {
  InstanceRates rates = busy();
  Instance smaller = later(rates.instances()[0].now);
  smaller.report.counters[0].second = 1;
  rates.take({smaller}, at(5), 2);
  EXPECT_EQ(rates.instances()[0].counter_rate("tx.packets"), 0);
}

TEST(ShortNumber, HasAtMostFiveCharacters) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.5), "0.5");
  EXPECT_EQ(short_number(17.4), "17");
  EXPECT_EQ(short_number(9999), "9999");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(999'600), "1.00M");
  EXPECT_EQ(short_number(4.56e9), "4.56G");
  for (double v = 0.01; v < 9e14; v *= 1.07) EXPECT_LE(short_number(v).size(), 5u) << v;
}

}  // namespace
}  // namespace ub::tools
