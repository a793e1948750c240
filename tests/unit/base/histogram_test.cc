// SPDX-License-Identifier: Apache-2.0
//
// The histogram against exact sorting.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lib/base/histogram.h"

namespace ub {
namespace {

constexpr double kPercents[] = {0, 0.001, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99, 99.999, 100};

uint64_t exact_percentile(const std::vector<uint64_t>& sorted, double percent) {
  const double wanted = std::ceil(percent / 100 * static_cast<double>(sorted.size()) - 1e-6);
  const size_t rank = wanted < 1 ? 1 : static_cast<size_t>(wanted);
  return sorted[std::min(rank, sorted.size()) - 1];
}

void expect_close(const Histogram& histogram, std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  ASSERT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  for (const double percent : kPercents) {
    const double exact = static_cast<double>(exact_percentile(values, percent));
    EXPECT_NEAR(static_cast<double>(histogram.percentile(percent)), exact, exact * 0.005) << percent << " %";
  }
}

TEST(Histogram, percentiles__agree_with_sorting) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::lognormal_distribution<double> shape(3 + round, 0.2 + 0.1 * round);
    std::vector<uint64_t> values(1 + random() % 200'000);
    Histogram histogram;
    for (uint64_t& value : values) {
      value = static_cast<uint64_t>(std::min(shape(random), 1e18));
      histogram.record(value);
    }
    expect_close(histogram, values);
  }
}

TEST(Histogram, percentiles__of_small_values_are_exact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 200; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile(50), 100u);
  EXPECT_EQ(histogram.percentile(99), 198u);
  EXPECT_EQ(histogram.percentile(99.5), 199u);
  EXPECT_EQ(histogram.percentile(100), 200u);
}

TEST(Histogram, rank__is_not_pushed_up_by_rounding) {
  Histogram histogram;
  histogram.record_many(10, 999);
  histogram.record(200);
  EXPECT_EQ(histogram.percentile(99.9), 10u);
  EXPECT_EQ(histogram.percentile(99.95), 200u);
}

TEST(Histogram, extremes__are_kept) {
  Histogram histogram;
  histogram.record(0);
  histogram.record(UINT64_MAX);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.percentile(50), 0u);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_EQ(histogram.percentile(100), UINT64_MAX);
}

TEST(Histogram, buckets__every_power_of_two_and_its_neighbours) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const uint64_t value : {(1ULL << bit) - 1, 1ULL << bit, (1ULL << bit) + 1}) {
      Histogram histogram;
      histogram.record_many(value, 3);
      histogram.record(UINT64_MAX);
      const double got = static_cast<double>(histogram.percentile(50));
      EXPECT_NEAR(got, static_cast<double>(value), static_cast<double>(value) * 0.004) << value;
    }
  }
}

TEST(Histogram, merge__equals_recording_in_one) {
  std::mt19937_64 random(8);
  std::vector<uint64_t> values;
  Histogram left, right, whole;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(random() % 1'000'000);
    (i % 3 == 0 ? left : right).record(values.back());
    whole.record(values.back());
  }
  left.merge(right);
  expect_close(left, values);
  EXPECT_DOUBLE_EQ(left.mean(), whole.mean());
  EXPECT_NEAR(left.stddev(), whole.stddev(), 1e-6 * whole.stddev());
}

TEST(Histogram, empty__answers_zero) {
  Histogram histogram;
  EXPECT_EQ(histogram.percentile(50), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.record(5);
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0u);
}

TEST(Histogram, moments) {
  Histogram histogram;
  for (const uint64_t value : {2, 4, 4, 4, 5, 5, 7, 9}) histogram.record(value);
  EXPECT_DOUBLE_EQ(histogram.mean(), 5);
  EXPECT_DOUBLE_EQ(histogram.stddev(), 2);
}

}  // namespace
}  // namespace ub
