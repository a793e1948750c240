// SPDX-License-Identifier: Apache-2.0
//
// The distributions against their theory: chi-square with fixed seeds, so the numbers are always the same.
#include "tools/ycsb/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace ub::ycsb {
namespace {

constexpr int kDraws = 1'000'000;

// Draws that fell on each item; what is above the last one counts for it.
std::vector<double> count(uint64_t items, const std::function<uint64_t(Prng&)>& next) {
  Prng random(42);
  std::vector<double> counts(items, 0);
  for (int i = 0; i < kDraws; ++i) counts[std::min(next(random), items - 1)] += 1;
  return counts;
}

// Chi-square of the counts, for each degree of freedom: about 1 if the probabilities hold; with the numbers of items of
// this file it is above 1.5 in less than one of a thousand samples.
double chi_square(const std::vector<double>& counts, const std::vector<double>& probabilities) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * kDraws;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum / static_cast<double>(counts.size() - 1);
}

std::vector<double> zipfian_probabilities(uint64_t items) {
  std::vector<double> p(items);
  for (uint64_t i = 0; i < items; ++i) p[i] = std::pow(static_cast<double>(i + 1), -kZipfianTheta);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

TEST(Zeta, agrees_with_sums_and_with_the_constant_of_ycsb) {
  double sum = 0;
  for (uint64_t i = 1; i <= 100'000; ++i) {
    sum += std::pow(static_cast<double>(i), -kZipfianTheta);
    if (i == 1 || i == 999 || i == 1001 || i == 100'000) {
      EXPECT_NEAR(zeta(i), sum, 1e-9) << i;
    }
  }
  // ZETAN of YCSB's ScrambledZipfianGenerator, for ten thousand million items.
  EXPECT_NEAR(zeta(10'000'000'000), 26.46902820178302, 1e-8);
}

// The first two items have the probabilities of the law. From the third on the method takes a curve, whose sums are off
// by up to 5 % here.
std::vector<double> probabilities_of_the_method(uint64_t items) {
  const double n = static_cast<double>(items), two = 1 + std::pow(0.5, kZipfianTheta), all = zeta(items);
  const double eta = (1 - std::pow(2 / n, 1 - kZipfianTheta)) / (1 - two / all);
  std::vector<double> p = {1 / all, (two - 1) / all};
  double below = two / all;
  for (uint64_t i = 2; i < items; ++i) {
    const double up_to = (std::pow(static_cast<double>(i + 1) / n, 1 - kZipfianTheta) - 1 + eta) / eta;
    p.push_back(up_to - below);
    below = up_to;
  }
  return p;
}

TEST(Zipfian, ranks_have_the_probabilities_of_the_method_and_nearly_those_of_the_law) {
  const uint64_t items = 1000;
  const Zipfian zipfian(items);
  const std::vector<double> counts = count(items, [&](Prng& random) { return zipfian.next(random); });
  EXPECT_LT(chi_square(counts, probabilities_of_the_method(items)), 1.5);
  const std::vector<double> law = zipfian_probabilities(items);
  double drawn = 0, expected = 0;
  for (uint64_t i = 0; i < items; ++i) {
    drawn += counts[i];
    expected += law[i] * kDraws;
    EXPECT_NEAR(drawn / expected, 1, 0.05) << "up to rank " << i;
  }
}

TEST(Zipfian, growing_is_the_same_as_being_large) {
  Zipfian grown(100);
  for (uint64_t items = 101; items <= 1000; ++items) grown.grow(items);
  const Zipfian large(1000);
  Prng a(7), b(7);
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(grown.next(a), large.next(b));
  grown.grow(5);
  EXPECT_EQ(grown.items(), 1000u);
}

TEST(Zipfian, few_items) {
  Prng random(1);
  for (const uint64_t items : {1, 2, 3}) {
    const Zipfian zipfian(items);
    for (int i = 0; i < 10'000; ++i) ASSERT_LT(zipfian.next(random), items);
  }
}

TEST(ScrambledZipfian, popular_items_lie_where_their_ranks_are_scattered) {
  const uint64_t items = 1000;
  const ScrambledZipfian zipfian(items);
  const std::vector<double> counts = count(items, [&](Prng& random) { return zipfian.next(random); });
  // Rank 0 of ten thousand million has this share, and lies where its hash does; with it lie ranks of the tail.
  const double first = 1 / zeta(10'000'000'000);
  const auto hottest = static_cast<uint64_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  EXPECT_EQ(hottest, scattered(0) % items);
  EXPECT_NEAR(counts[hottest] / kDraws, first, 0.003);
  // Every item is reached by some rank.
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 0);
}

TEST(Scattered, is_the_hash_of_ycsb) {
  // The first keys that YCSB loads are user6284781860667377211 and user8517097267634966620.
  EXPECT_EQ(scattered(0), 6284781860667377211u);
  EXPECT_EQ(scattered(1), 8517097267634966620u);
}

TEST(Hotspot, hot_items_have_their_share_and_all_are_even_among_themselves) {
  const uint64_t items = 200;
  const Hotspot hotspot(items, 0.2, 0.8);
  const std::vector<double> counts = count(items, [&](Prng& random) { return hotspot.next(random); });
  std::vector<double> p(items);
  for (uint64_t i = 0; i < items; ++i) p[i] = i < 40 ? 0.8 / 40 : 0.2 / 160;
  EXPECT_LT(chi_square(counts, p), 1.5);
}

TEST(Hotspot, nothing_or_everything_is_hot) {
  for (const double fraction : {0.0, 1.0}) {
    const uint64_t items = 200;
    const Hotspot hotspot(items, fraction, 0.5);
    const std::vector<double> counts = count(items, [&](Prng& random) { return hotspot.next(random); });
    EXPECT_LT(chi_square(counts, std::vector<double>(items, 1.0 / items)), 1.5);
  }
}

TEST(Exponential, follows_the_law_and_its_percentile) {
  const uint64_t items = 400;
  const Exponential exponential(95, 200);
  const std::vector<double> counts = count(items, [&](Prng& random) { return exponential.next(random); });
  EXPECT_NEAR(std::accumulate(counts.begin(), counts.begin() + 200, 0.0) / kDraws, 0.95, 0.001);
  const double gamma = -std::log(0.05) / 200;
  std::vector<double> p(items);
  for (uint64_t i = 0; i < items; ++i) {
    const double x = static_cast<double>(i);
    p[i] = std::exp(-gamma * x) - (i + 1 == items ? 0 : std::exp(-gamma * (x + 1)));
  }
  EXPECT_LT(chi_square(counts, p), 1.5);
}

TEST(Length, constant_uniform_and_zipfian) {
  Prng random(3);
  const Length constant(Length::Kind::kConstant, 1, 100);
  EXPECT_EQ(constant.next(random), 100u);
  const Length uniform(Length::Kind::kUniform, 11, 210);
  const std::vector<double> counts = count(200, [&](Prng& r) { return uniform.next(r) - 11; });
  EXPECT_LT(chi_square(counts, std::vector<double>(200, 1.0 / 200)), 1.5);
  const Length zipfian(Length::Kind::kZipfian, 5, 104);
  const std::vector<double> short_ones = count(100, [&](Prng& r) { return zipfian.next(r) - 5; });
  EXPECT_NEAR(short_ones[0] / kDraws, 1 / zeta(100), 0.002);
}

// The bound of the tests above is no empty one.
TEST(ChiSquare, notices_one_percent) {
  std::vector<double> p(200, 1.0 / 200);
  const std::vector<double> counts = count(200, [&](Prng& r) { return r.chance(0.01) ? r.below(20) : r.below(200); });
  EXPECT_GT(chi_square(counts, p), 1.5);
}

}  // namespace
}  // namespace ub::ycsb
