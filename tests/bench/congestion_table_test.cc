// SPDX-License-Identifier: Apache-2.0
//
// What congestion_table prints is what the Core does: bounds of its figures, and the fabric that it stands on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <string>
#include <vector>

#include "tests/bench/congestion_scenarios.h"
#include "tests/bench/virtual_writer.h"

namespace ub::bench {
namespace {

IncastResult incast(const char* name, uint64_t seed = 1) { return run_incast(*find_algorithm(name), {.seed = seed}); }

struct Bounds {
  const char* name;
  double least_utilisation, least_fairness;
  double most_queue;  // bytes, mean
  friend void PrintTo(const Bounds& b, std::ostream* out) { *out << b.name; }
};

class Incast : public testing::TestWithParam<Bounds> {};

TEST_P(Incast, keeps_the_bottleneck_busy_and_shares_it) {
  const Bounds& b = GetParam();
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    const IncastResult r = incast(b.name, seed);
    EXPECT_GE(r.utilisation, b.least_utilisation);
    EXPECT_LE(r.utilisation, 1);
    EXPECT_GE(r.goodput, 0.95 * b.least_utilisation * static_cast<double>(kBottleneckRate));
    EXPECT_GE(r.fairness, b.least_fairness);
    EXPECT_LE(r.mean_queue, b.most_queue);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Incast,
                         testing::Values(Bounds{"none", 0.95, 0.8, 2e6}, Bounds{"caqm", 0.95, 0.95, 80e3},
                                         Bounds{"caqm-hints", 0.95, 0.95, 80e3}, Bounds{"ldcp", 0.95, 0.95, 100e3},
                                         Bounds{"dcqcn", 0.9, 0.85, 250e3}, Bounds{"dcqcn-2.5", 0.85, 0.85, 300e3},
                                         Bounds{"swift", 0.97, 0.95, 400e3}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST(CongestionTable, who_has_control_loses_nothing_once_it_has_settled) {
  for (const char* name : {"caqm", "caqm-hints", "ldcp", "dcqcn", "swift"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(incast(name).drops, 0u);
  }
  EXPECT_NE(incast("none").drops, 0u);
}

TEST(CongestionTable, with_hints_packets_have_the_shorter_header) {
  EXPECT_GT(incast("caqm-hints").goodput, incast("caqm").goodput);
}

TEST(CongestionTable, the_same_seed_gives_the_same_figures) {
  for (const Algorithm& a : kAlgorithms) {
    SCOPED_TRACE(a.name);
    const IncastSpec spec{.time = milliseconds(4), .seed = 7};
    std::vector<IncastPoint> curve;
    EXPECT_EQ(run_incast(a, spec), run_incast(a, spec, &curve));
    EXPECT_EQ(curve.size(), 200u);
    EXPECT_NE(run_incast(a, spec), run_incast(a, {.time = spec.time, .seed = 8}));
  }
  const ShortSpec few{.short_writes = 100, .seed = 7};
  EXPECT_EQ(run_short(kAlgorithms[1], few), run_short(kAlgorithms[1], few));
}

// Four packets of 16 KiB need 10 us and three times the sending of a packet at 25 Gb/s.
TEST(CongestionTable, a_short_write_alone_takes_what_its_way_takes) {
  const ShortResult r = run_short(*find_algorithm("none"), {.long_senders = 0});
  EXPECT_NEAR(r.p50, 14'000, 200);
  EXPECT_EQ(r.drops, 0u);
}

TEST(CongestionTable, short_writes_among_long_ones_are_not_long) {
  const double without = run_short(*find_algorithm("none"), {}).p99;
  for (const char* name : {"caqm", "ldcp", "dcqcn", "swift"}) {
    SCOPED_TRACE(name);
    const ShortResult r = run_short(*find_algorithm(name), {});
    EXPECT_LE(r.p99, without / 10);
    EXPECT_GE(r.long_goodput, 0.45 * static_cast<double>(kBottleneckRate));
  }
}

// ---- small beside bulk --------------------------------------------------------------------------------------------

constexpr double kAloneOf1KiB = 9'600;  // ns, at 10 Gb/s

TEST(SmallBesideBulk, alone_takes_what_its_way_takes) {
  for (const bool by_class : {false, true}) {
    const ShortResult r = run_small(*find_algorithm("none"), {.flood = false, .by_class = by_class});
    EXPECT_NEAR(r.p50, kAloneOf1KiB, 300);
    EXPECT_EQ(r.drops, 0u);
  }
}

// With all algorithms alike: the flood has no part in it. A small one waits for a frame of bulk that is leaving the hop
// (3.3 us), and for two that have left the Core before it (1.3 us each); so does its acknowledgement.
TEST(SmallBesideBulk, where_the_network_serves_classes_small_ones_hardly_wait) {
  for (const Algorithm& a : kAlgorithms) {
    for (const uint64_t seed : {1, 2}) {
      SCOPED_TRACE(a.name);
      const ShortResult alone = run_small(a, {.flood = false, .seed = seed}), r = run_small(a, {.seed = seed});
      EXPECT_LE(r.p99, alone.p99 + 12'000);
      EXPECT_GE(r.long_goodput, 0.5e10) << "nor does the flood starve";
    }
  }
}

// Where the network has one queue it takes congestion control.
TEST(SmallBesideBulk, in_one_queue_small_ones_wait_as_long_as_it_is) {
  EXPECT_GE(run_small(*find_algorithm("none"), {.by_class = false}).p99, 300'000);
  for (const char* name : {"caqm", "ldcp", "dcqcn", "swift"}) {
    SCOPED_TRACE(name);
    EXPECT_LE(run_small(*find_algorithm(name), {.by_class = false}).p99, 250'000);
  }
}

// The host itself is the bottleneck: what its Core sends, and when, is all that makes a small one wait.
TEST(SmallBesideBulk, a_host_that_is_the_bottleneck_serves_small_ones_in_time) {
  const SmallSpec fast{.by_class = false, .hop_rate = kBottleneckRate};
  SmallSpec alone = fast;
  alone.flood = false;
  const Algorithm& none = *find_algorithm("none");
  const ShortResult r = run_small(none, fast);
  EXPECT_LE(r.p99, run_small(none, alone).p99 + 8'000);
  EXPECT_GE(r.long_goodput, 0.9 * static_cast<double>(kHostRate));
}

// ---- the fabric -------------------------------------------------------------------------------------------------

constexpr uint32_t kBytes = 16 * 1024;

class OneWrite final : public Writer {
 public:
  using Writer::Writer;
  void start() { write(fabric.now()); }
  Duration took{};

 private:
  void done(Instant since) override { took = fabric.now() - since; }
};

/// Two hosts of 10 Gb/s with four addresses each, and cables of 1 us.
struct TwoHosts {
  TwoHosts() : host(add()), there(add(), kBytes) {}

  VirtualHost& add() {
    CoreConfig c;
    c.compact = false;
    QueueSpec q;
    q.bits_per_second = kRate;
    q.cable = microseconds(1);
    return fabric.add_host(c, {kRate, microseconds(1)}, std::vector<QueueSpec>(4, q));
  }
  QueueSpec& way_there(uint32_t path) { return fabric.queue_spec(there.host, path); }
  uint64_t payload_over(uint32_t path) { return fabric.queue_counts(there.host, path).payload_bytes; }
  /// Of a WRITE on a channel that is there; zero: it was not answered within a millisecond.
  Duration write_over(uint32_t path) {
    OneWrite writer(fabric, host, there, kBytes, path);
    for (int i = 0; i < 2; ++i) {
      writer.start();
      fabric.run_until(fabric.now() + milliseconds(1));
    }
    return writer.took;
  }

  static constexpr uint64_t kRate = 10'000'000'000;
  VirtualFabric fabric{1};
  VirtualHost& host;
  End there;
};

// Three packets wait for the line and one passes it twice: five times 3346 ns, and four cables.
TEST(VirtualFabric, a_write_takes_the_time_of_its_way) {
  TwoHosts f;
  const Duration took = f.write_over(0);
  EXPECT_GE(took, nanoseconds(5 * 3300 + 4000));
  EXPECT_LE(took, nanoseconds(5 * 3400 + 4000 + 200));
}

TEST(VirtualFabric, a_path_has_a_queue_of_its_own) {
  TwoHosts f;
  f.way_there(0).down = true;
  EXPECT_GT(f.write_over(2).ns, 0);
  EXPECT_GE(f.payload_over(2), uint64_t{kBytes});
  for (uint32_t path : {0, 1, 3}) EXPECT_EQ(f.payload_over(path), 0u) << path;
}

TEST(VirtualFabric, what_is_cut_lets_nothing_pass) {
  TwoHosts f;
  f.way_there(1).down = true;
  EXPECT_EQ(f.write_over(1).ns, 0);
  EXPECT_NE(f.fabric.queue_counts(f.there.host, 1).dropped, 0u);
}

TEST(VirtualFabric, a_longer_slower_or_less_steady_path_takes_longer) {
  const Duration usual = TwoHosts().write_over(0);
  TwoHosts longer, slower, unsteady;
  longer.way_there(0).cable = microseconds(11);
  slower.way_there(0).bits_per_second /= 2;
  unsteady.way_there(0).jitter = microseconds(20);
  EXPECT_EQ(longer.write_over(0), usual + microseconds(10));
  EXPECT_GE(slower.write_over(0), usual + nanoseconds(4 * 3300));
  EXPECT_GT(unsteady.write_over(0), usual + nanoseconds(500));
  EXPECT_EQ(unsteady.host.core.counters()[Counter::kTpTxRetransmitFast], 0u) << "the order stays";
}

}  // namespace
}  // namespace ub::bench
