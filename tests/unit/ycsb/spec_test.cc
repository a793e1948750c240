// SPDX-License-Identifier: Apache-2.0
//
// Workloads: the defaults of YCSB, and what contradicts itself.
#include "tools/ycsb/spec.h"

#include <gtest/gtest.h>

#include "tests/unit/ycsb/sentences.h"
#include "tests/unit/ycsb/workload.h"
#include "tools/ycsb/settings.h"

namespace ub::ycsb {
namespace {

TEST(Spec, defaults_are_those_of_ycsb) {
  const Spec spec = workload("recordcount=100\n");
  EXPECT_EQ(spec.table, "usertable");
  EXPECT_EQ(spec.insert_count, 100u);
  EXPECT_EQ(spec.field_count, 10u);
  EXPECT_EQ(spec.field_length->most(), 100u);
  EXPECT_TRUE(spec.read_all_fields);
  EXPECT_FALSE(spec.write_all_fields);
  EXPECT_EQ(spec.proportion(Operation::kRead), 0.95);
  EXPECT_EQ(spec.proportion(Operation::kUpdate), 0.05);
  EXPECT_EQ(spec.key_choice, KeyChoice::kUniform);
  EXPECT_EQ(spec.scan_length->most(), 1000u);
}

TEST(Spec, mistakes_are_told) {
  expect_sentence([] { workload("operationcount=1\n"); }, {"recordcount is missing"});
  expect_sentence([] { workload("recordcount=none\n"); }, {"recordcount=none"});
  expect_sentence([] { workload("recordcount=1\nrequestdistribution=gauss\n"); },
                  {"requestdistribution=gauss", "file:2", "zipfian"});
  expect_sentence([] { workload("recordcount=1\nworkload=TimeSeriesWorkload\n"); }, {"TimeSeriesWorkload"});
  expect_sentence([] { workload("recordcount=10\ninsertstart=5\ninsertcount=6\n"); }, {"insertcount=6", "exceed"});
  expect_sentence([] { workload("recordcount=10\ninsertstart=10\n"); }, {"insertstart=10"});
  expect_sentence([] { workload("recordcount=10\nminscanlength=20\nmaxscanlength=10\n"); }, {"minscanlength=20"});
  expect_sentence([] { workload("recordcount=1\ndataintegrity=true\nfieldlengthdistribution=uniform\n"); },
                  {"dataintegrity", "fieldlengthdistribution=uniform"});
}

TEST(Spec, proportions_above_1_name_those_that_are_defaults) {
  expect_sentence([] { workload("recordcount=1\ninsertproportion=0.5\n"); },
                  {"1.5", "insertproportion 0.5", "readproportion 0.95 (the default)"});
  expect_sentence([] { workload("recordcount=1\nreadproportion=0\nupdateproportion=0\n"); }, {"no operation"});
  expect_sentence([] { workload("recordcount=1\nreadproportion=1.1\n"); }, {"readproportion=1.1", "from 0 to 1"});
  // Sums that are 1 but for rounding are right.
  workload("recordcount=1\nreadproportion=0.1\nupdateproportion=0.2\ninsertproportion=0.7\n");
}

TEST(Settings, percentiles_and_intervals) {
  Properties p;
  p.set_pair("hdrhistogram.percentiles=99.9, 50,90");
  p.set_pair("target=1000");
  const Settings settings = read_settings(p);
  EXPECT_EQ(settings.percentiles, (std::vector<double>{50, 90, 99.9}));
  EXPECT_TRUE(settings.operation_latency && settings.intended_latency);  // since there is a target
  EXPECT_FALSE(read_settings(Properties()).intended_latency);
  for (const char* list : {"", "50,", "0", "101", "50;90", "x", "50 60"}) {
    p.set_pair(std::string("hdrhistogram.percentiles=") + list);
    expect_sentence([&] { read_settings(p); }, {"hdrhistogram.percentiles", "commas"});
  }
}

}  // namespace
}  // namespace ub::ycsb
