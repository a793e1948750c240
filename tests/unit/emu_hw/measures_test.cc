// SPDX-License-Identifier: Apache-2.0
// What is measured of operations: means, rates and quantiles, which the reference takes at places cut to whole numbers.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "emu_hw/models/measures.h"

namespace ub::emu {
namespace {

// Operations that take 1 ns, 2 ns and so on, one after the other, the longest ones first.
std::map<std::string, double> measures_of_first(uint64_t count) {
  std::vector<Sample> samples;
  Time now;
  for (uint64_t ns = count; ns > 0; --ns) {
    const Time begin = now;
    now = after(now, whole_nanoseconds(ns), "test");
    samples.push_back({begin, now});
  }
  return measures_of(samples);
}

TEST(Measures, of_one_operation_are_its_latency) {
  const std::map<std::string, double> values = measures_of_first(1);
  for (const char* name : {"mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "p50i_ns", "p999i_ns"})
    EXPECT_EQ(values.at(name), 1) << name;
  EXPECT_EQ(values.at("operations"), 1);
  EXPECT_FALSE(values.contains("mops"));
}

TEST(Measures, have_quantiles_behind_so_many_of_all) {
  const struct {
    uint64_t count;
    double p50, p90, p99, p999;
  } all[] = {{2, 2, 2, 2, 2}, {10, 6, 10, 10, 10}, {100, 51, 91, 100, 100}, {1000, 501, 901, 991, 1000}};
  for (const auto& each : all) {
    const std::map<std::string, double> values = measures_of_first(each.count);
    EXPECT_EQ(values.at("p50_ns"), each.p50) << each.count;
    EXPECT_EQ(values.at("p90_ns"), each.p90) << each.count;
    EXPECT_EQ(values.at("p99_ns"), each.p99) << each.count;
    EXPECT_EQ(values.at("p999_ns"), each.p999) << each.count;
    EXPECT_EQ(values.at("max_ns"), static_cast<double>(each.count));
  }
}

TEST(Measures, have_quantiles_between_two_operations) {
  EXPECT_EQ(measures_of_first(2).at("p50i_ns"), 1.5);
  EXPECT_EQ(measures_of_first(3).at("p50i_ns"), 2);
  EXPECT_NEAR(measures_of_first(1000).at("p999i_ns"), 1 + 0.999 * 999, 1e-9);
}

TEST(Measures, have_a_rate_from_the_first_end_to_the_last_one) {
  EXPECT_NEAR(measures_of_first(4).at("mops"), 3 * 1000.0 / (3 + 2 + 1), 1e-9);
  EXPECT_EQ(measures_of_first(4).at("mean_ns"), 2.5);
}

}  // namespace
}  // namespace ub::emu
