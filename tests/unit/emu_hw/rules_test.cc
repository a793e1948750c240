// SPDX-License-Identifier: Apache-2.0
// Rules that the reference has in place of a protocol, and programs whose operations arrive by chance.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emu_hw/models/model.h"
#include "emu_hw/rules/fused_ack.h"
#include "emu_hw/rules/lock.h"
#include "emu_hw/rules/runtime_cap.h"
#include "emu_hw/workload/open_loop.h"
#include "emu_hw/workload/workload.h"

namespace ub::emu {
namespace {

// By a profile: one of RoCE fetches its requests.
PointResult run(const std::string& profile, const std::string& workload, Parameters p) {
  if (profile == "dma") p.inline_limit = 0;
  const std::string stack = profile == "dma" || profile == "bf" ? "roce" : profile;
  PointResult result = run_two_node({stack, workload, p});
  EXPECT_EQ(result.invalid, "");
  return result;
}
double value(const std::string& profile, const std::string& workload, const Parameters& p, const char* name) {
  return run(profile, workload, p).values[name];
}

// ---- jitter -----------------------------------------------------------------------------------------------------

struct Jittered {
  const char* profile;
  const char* workload;
  std::vector<double> steps;  // that are stretched, in ns
};

TEST(JitterRule, stretches_what_the_reference_names) {
  const double there = 101.28, back = 101.28, empty = 100.16;  // ways over the link, with 64 bytes and with 8
  const Jittered all[] = {
      {"ldst", "pointer_chase", {there, 30, back}},
      {"urma", "pointer_chase", {there, 30, back}},
      {"urma", "bulk_write", {there, 30, empty}},
      {"urma", "send", {there, empty}},
      {"bf", "pointer_chase", {there, 500, back, 250, 250}},
      {"dma", "pointer_chase", {500, there, 500, back, 250, 250}},
      {"dma", "bulk_write", {500, there, 250, empty, 250}},
      {"dma", "send", {500, there, empty, 250}},
      {"dma", "fetch_add", {500, there, 500, empty, 250}},
  };
  for (const Jittered& each : all) {
    Parameters p;
    p.operations = 20000;
    const double without = value(each.profile, each.workload, p, "mean_ns");
    p.jitter_factor = 0.2;
    double sum = 0, squares = 0;
    for (const double step : each.steps) sum += step, squares += step * step;
    const double cut = 0.5 * static_cast<double>(each.steps.size());
    const double deviation = 0.2 * std::sqrt(squares / static_cast<double>(p.operations));
    EXPECT_NEAR(value(each.profile, each.workload, p, "mean_ns"), without + 0.2 * sum - cut, 4 * deviation)
        << each.profile << " " << each.workload;
  }
}

TEST(JitterRule, is_that_of_the_seed) {
  Parameters p;
  p.jitter_factor = 0.1;
  const double once = value("dma", "pointer_chase", p, "mean_ns");
  EXPECT_EQ(value("dma", "pointer_chase", p, "mean_ns"), once);
  p.seed = 2;
  EXPECT_NE(value("dma", "pointer_chase", p, "mean_ns"), once);
}

// ---- the end of a run --------------------------------------------------------------------------------------------

TEST(RuntimeCap, follows_from_operations_link_and_payload) {
  Parameters p;
  EXPECT_EQ(runtime_cap(p, 200).ps, (200 * (4000 + 200 + 1000 + 4) + 100'000) * 1000u);
  p.payload = 65536;
  p.link_delay = whole_nanoseconds(50);
  EXPECT_EQ(runtime_cap(p, 1).ps, (4000 + 100 + 1000 + 4 * 1310 + 100'000) * 1000u);
}

TEST(RuntimeCap, cuts_long_runs_and_leaves_latencies_alone) {
  Parameters p;
  p.payload = 65536;
  EXPECT_EQ(value("ldst", "bulk_read", p, "operations"), 150);
  EXPECT_EQ(value("ldst", "bulk_read", p, "mean_ns"), 14519);
  p.runtime_cap = RuntimeCap::kOff;
  EXPECT_EQ(value("ldst", "bulk_read", p, "operations"), 200);
  EXPECT_EQ(value("ldst", "bulk_read", p, "mean_ns"), 14519);
}

TEST(RuntimeCap, a_run_without_an_end_has_no_result) {
  Parameters p;
  p.operations = 1;
  p.remote_dram = whole_nanoseconds(1'000'000);
  const PointResult result = run_two_node({"urma", "bulk_read", p});
  EXPECT_EQ(result.invalid, "no operation ended before rule.runtime_cap; set runtime_cap = off");
  EXPECT_TRUE(result.values.empty());
}

// ---- locks -------------------------------------------------------------------------------------------------------

TEST(LockRule, as_many_attempts_as_contenders) {
  Parameters p;
  p.active_connections = 3;
  const LockRule lock(p);
  EXPECT_EQ(lock.attempts(50), 150u);
  const std::vector<Sample> attempts = {{{0}, {10}}, {{11}, {31}}, {{40}, {45}}, {{50}, {60}}};
  const std::vector<Sample> acquisitions = lock.acquisitions(attempts);  // the fourth begins one that has no end
  ASSERT_EQ(acquisitions.size(), 1u);
  EXPECT_EQ(acquisitions[0].issued.ps, 0u);
  EXPECT_EQ(acquisitions[0].latency().ps, 35u);
}

TEST(LockRule, time_to_acquire) {
  Parameters p;
  p.operations = 50;
  for (const auto& [contenders, attempt] : {std::pair{1u, 1977u}, {16u, 1977u}, {32u, 2977u}}) {
    p.active_connections = contenders;
    EXPECT_EQ(value("dma", "lock", p, "mean_ns"), contenders * attempt);
    EXPECT_EQ(value("urma", "lock", p, "mean_ns"), contenders * 750);
    EXPECT_EQ(value("urma", "lock", p, "operations"), 50);
  }
}

// ---- fused acknowledgements --------------------------------------------------------------------------------------

TEST(FusedAck, saves_a_flit_of_answers_that_have_one) {
  Parameters fused;
  fused.acknowledgement = Acknowledgement::kFused;
  const std::pair<uint64_t, double> savings[] = {{8, 0}, {31, 0}, {64, 4}, {256, 4}, {1024, 4}, {4096, 3}};
  for (const auto& [payload, saved] : savings) {
    Parameters p;
    p.payload = fused.payload = payload;
    EXPECT_EQ(value("urma", "bulk_read", fused, "mean_ns"), value("urma", "bulk_read", p, "mean_ns") - saved);
  }
  fused.payload = 64;
  EXPECT_EQ(value("ldst", "bulk_read", fused, "mean_ns"), 496);
  EXPECT_EQ(value("urma", "bulk_write", fused, "mean_ns"), 750);
  EXPECT_EQ(value("dma", "bulk_read", fused, "mean_ns"), 2236);
}

TEST(FusedAck, leaves_answers_of_less_than_a_flit_alone) {
  Parameters fused;
  fused.acknowledgement = Acknowledgement::kFused;
  for (const auto& [bytes, sent] : {std::pair{8u, 8u}, {31u, 31u}, {32u, 0u}, {33u, 1u}, {64u, 32u}}) {
    const Operation read(0, 1, Verb::kRead, bytes, {});
    EXPECT_EQ(FusedAck(fused).bytes_sent_back(read), sent);
    EXPECT_EQ(FusedAck(Parameters()).bytes_sent_back(read), bytes);
    const Operation write(0, 1, Verb::kWrite, bytes, {});
    EXPECT_EQ(FusedAck(fused).bytes_sent_back(write), 8u);
  }
}

// ---- open loops --------------------------------------------------------------------------------------------------

TEST(PoissonArrivals, have_gaps_of_the_offered_rate) {
  Parameters p;
  p.offered_rate = 0.5;
  PoissonArrivals arrivals(p);
  double sum = 0, squares = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) {
    const Span gap = arrivals.gap();
    EXPECT_EQ(gap.ps % 1000, 0u);
    sum += gap.ns();
    squares += gap.ns() * gap.ns();
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 2000 - 0.5, 25);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 2000, 50);  // that of an exponential distribution
}

// A queue of Poisson arrivals before a server that takes the same time for each: M/D/1.
TEST(OpenLoop, waits_as_queueing_theory_says) {
  Parameters p;
  p.in_flight = 256;
  p.operations = 50000;
  for (const double load : {0.2, 0.5, 0.8}) {
    p.offered_rate = load * 2;  // a read takes 500 ns
    EXPECT_NEAR(value("ldst", "bulk_read", p, "mean_ns"), 500 + 500 * load / (2 * (1 - load)), 40) << load;
    EXPECT_NEAR(value("ldst", "bulk_read", p, "mops"), p.offered_rate, 0.03 * p.offered_rate) << load;
  }
}

TEST(OpenLoop, has_no_more_in_flight_than_there_is_room_for) {
  Parameters p;
  p.in_flight = 16;
  p.operations = 1000;
  p.offered_rate = 10;
  EXPECT_EQ(value("urma", "bulk_read", p, "p99_ns"), 16 * 757 - 1);
  EXPECT_NEAR(value("urma", "bulk_read", p, "mops"), 1000.0 / 757, 1e-3);
}

// ---- workloads ---------------------------------------------------------------------------------------------------

TEST(Workload, ycsb_a_gets_half_of_the_time) {
  Parameters p;
  p.zipf_keys = 100;
  for (const bool loads : {true, false}) {
    const auto workload = make_workload("ycsb_a", p, loads);
    int gets = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
      const Step step = workload->next(i);
      gets += step.verb == (loads ? Verb::kLoad : Verb::kRead);
      if (step.verb != Verb::kLoad && step.verb != Verb::kRead) {
        EXPECT_EQ(step.verb, loads ? Verb::kStore : Verb::kWrite);
      }
      EXPECT_EQ(step.bytes, 64u);
      EXPECT_EQ(step.place % 64, 0u);
      EXPECT_LT(step.place, 100u * 64);
    }
    EXPECT_NEAR(gets, 5000, 200);
  }
}

// Whether a key is got or put says nothing of which one it is.
TEST(Workload, ycsb_a_gets_and_puts_each_key) {
  Parameters p;
  p.zipf_keys = 100;
  const auto workload = make_workload("ycsb_a", p, false);
  std::map<uint64_t, int> gets, all;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const Step step = workload->next(i);
    gets[step.place] += step.verb == Verb::kRead;
    ++all[step.place];
  }
  for (const auto& [place, count] : all)
    EXPECT_NEAR(gets[place], 0.5 * count, 2.5 * std::sqrt(count)) << place;
}

TEST(Workload, probes_of_a_hash_table_and_graph_walks) {
  const auto probes = make_workload("hash_probe", {}, false), walk = make_workload("graph_walk", {}, true);
  std::set<uint64_t> probed, walked;
  for (uint64_t i = 0; i < 50000; ++i) {
    const Step probe = probes->next(i), step = walk->next(i);
    EXPECT_EQ(probe.verb, Verb::kRead);
    probed.insert(probe.place);
    EXPECT_EQ(step.verb, i % 4 == 0 ? Verb::kWrite : Verb::kLoad);
    EXPECT_EQ(step.bytes, i % 4 == 0 ? 8u : 64u);
    walked.insert(step.place);
  }
  EXPECT_EQ(probed.size(), 1024u);
  EXPECT_EQ(*probed.rbegin(), 1023u * 64);
  EXPECT_EQ(walked.size(), 4096u);
}

TEST(Workload, so_many_of_a_hundred_reads_are_strict) {
  Parameters p;
  p.strict = 25;
  const auto workload = make_workload("mixed_order", p, true);
  int strict = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Step step = workload->next(i);
    EXPECT_EQ(step.verb, Verb::kLoad);
    EXPECT_EQ(step.place, i * 64);
    strict += step.is_strict;
  }
  EXPECT_EQ(strict, 250);
}

}  // namespace
}  // namespace ub::emu
