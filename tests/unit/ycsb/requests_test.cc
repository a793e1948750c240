// SPDX-License-Identifier: Apache-2.0
//
// What is drawn: the mix of operations, keys that exist, fields and lengths.
#include "tools/ycsb/requests.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/ycsb/workload.h"

namespace ub::ycsb {
namespace {

constexpr int kDraws = 100'000;

struct Source {
  explicit Source(const std::string& text, bool whole_records = false)
      : spec(workload(text)),
        inserted(spec.record_count),
        requests(spec, KeyChooser(spec), inserted, 1, whole_records) {}

  Draw next() {
    Draw draw;
    requests.draw(&draw);
    return draw;
  }

  Spec spec;
  KeySequence inserted;
  Requests requests;
};

TEST(Requests, operations_come_in_their_proportions) {
  Source source(
      "recordcount=1000\nreadproportion=0.4\nupdateproportion=0.3\ninsertproportion=0.15\nscanproportion=0.1\n"
      "readmodifywriteproportion=0.05\nfieldlength=1\n");
  std::map<Operation, double> counts;
  Draw draw;
  for (int i = 0; i < kDraws; ++i) {
    source.requests.draw(&draw);
    counts[draw.operation] += 1;
  }
  for (const auto& [operation, count] : counts) {
    const double p = source.spec.proportion(operation);
    EXPECT_NEAR(count, p * kDraws, 4 * std::sqrt(kDraws * p * (1 - p))) << operation_name(operation);
  }
  EXPECT_EQ(counts.size(), kOperations);
}

TEST(Requests, proportions_below_1_are_shares_of_their_sum) {
  Source source("recordcount=1000\nreadproportion=0.3\nupdateproportion=0\nscanproportion=0.1\n");
  int scans = 0;
  for (int i = 0; i < kDraws; ++i) scans += source.next().operation == Operation::kScan;
  EXPECT_NEAR(scans, kDraws / 4, 4 * std::sqrt(kDraws * 3 / 16));
}

TEST(Requests, keys_are_those_of_records_that_exist) {
  for (const char* name : {"uniform", "zipfian", "latest", "sequential", "hotspot", "exponential"}) {
    Source source(std::string("recordcount=50\noperationcount=100000\ninsertproportion=0.05\nreadproportion=0.9\n"
                              "fieldlength=1\nrequestdistribution=") +
                  name);
    std::set<uint64_t> seen;
    for (int i = 0; i < 5000; ++i) {
      const Draw draw = source.next();
      if (draw.operation == Operation::kInsert) {
        source.inserted.ended(draw.number);
        continue;
      }
      ASSERT_LT(draw.number, source.inserted.existing_end()) << name;
      seen.insert(draw.number);
    }
    EXPECT_GE(seen.size(), 50u) << name;
  }
}

TEST(Requests, latest_prefers_what_was_inserted_last) {
  Source source("recordcount=1000\nrequestdistribution=latest\nreadproportion=1\nupdateproportion=0\n");
  const uint64_t number = source.inserted.take();
  int newest = 0;
  for (int i = 0; i < kDraws; ++i) newest += source.next().number == 999;
  EXPECT_NEAR(newest, kDraws / zeta(1000), 4 * std::sqrt(kDraws / zeta(1000)));
  source.inserted.ended(number);
  newest = 0;
  for (int i = 0; i < kDraws; ++i) newest += source.next().number == 1000;
  EXPECT_NEAR(newest, kDraws / zeta(1001), 4 * std::sqrt(kDraws / zeta(1001)));
}

TEST(Requests, sequential_goes_round) {
  Source source(
      "recordcount=10\ninsertstart=4\nrequestdistribution=sequential\nreadproportion=1\nupdateproportion=0\n");
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(source.next().number, 4 + i % 6);
}

TEST(Requests, fields_are_one_or_all) {
  const std::string updates = "recordcount=10\nreadproportion=0\nupdateproportion=1\nfieldlength=5\n";
  const size_t one = 6 + 5, all = 10 * one;
  EXPECT_EQ(Source(updates).next().record.size(), one);
  EXPECT_EQ(Source(updates + "writeallfields=true\n").next().record.size(), all);
  EXPECT_EQ(Source(updates, true).next().record.size(), all);
  const std::string reads = "recordcount=10\nreadproportion=1\nupdateproportion=0\n";
  EXPECT_EQ(Source(reads).next().read_field, RecordFormat::kAllFields);
  EXPECT_GE(Source(reads + "readallfields=false\n").next().read_field, 0);
  EXPECT_EQ(Source(reads + "readallfields=false\n", true).next().read_field, RecordFormat::kAllFields);
}

TEST(Requests, scans_have_lengths_within_their_bounds) {
  Source source(
      "recordcount=10\nreadproportion=0\nupdateproportion=0\nscanproportion=1\nminscanlength=3\nmaxscanlength=7\n");
  std::set<uint32_t> lengths;
  for (int i = 0; i < 1000; ++i) lengths.insert(source.next().scan_length);
  EXPECT_EQ(lengths, (std::set<uint32_t>{3, 4, 5, 6, 7}));
}

TEST(Requests, the_same_seed_draws_the_same) {
  Source a("recordcount=1000\nrequestdistribution=zipfian\n"), b("recordcount=1000\nrequestdistribution=zipfian\n");
  for (int i = 0; i < 1000; ++i) {
    const Draw x = a.next(), y = b.next();
    ASSERT_EQ(x.operation, y.operation);
    ASSERT_EQ(x.number, y.number);
    ASSERT_EQ(x.record, y.record);
  }
}

TEST(KeySequence, a_record_exists_when_all_before_it_do) {
  KeySequence sequence(100);
  for (uint64_t number = 100; number < 105; ++number) EXPECT_EQ(sequence.take(), number);
  sequence.ended(103);
  sequence.ended(101);
  EXPECT_EQ(sequence.existing_end(), 100u);
  sequence.ended(100);
  EXPECT_EQ(sequence.existing_end(), 102u);
  sequence.ended(102);
  EXPECT_EQ(sequence.existing_end(), 104u);
}

}  // namespace
}  // namespace ub::ycsb
