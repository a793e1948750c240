// SPDX-License-Identifier: Apache-2.0
// Files of experiments: what is wrong in one is named with file, key and remedy. Verdicts by class.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "emu_hw/experiment/run_point.h"
#include "emu_hw/experiment/verdict.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {
namespace {

const std::string kGood = R"(id = "one"
title = "a read"
class = "X"
workload = "bulk_read"
operations = 3
measure = "mean_ns"
stacks = ["urma"]
sweep = "payload"
values = [64, 256]
[expected]
urma = [757, 799]
)";

class ExperimentFile : public testing::Test {
 protected:
  ExperimentFile() { EXPECT_NE(mkdtemp(directory_), nullptr); }
  ~ExperimentFile() override {
    std::remove(path().c_str());
    std::remove(directory_);
  }
  std::string path() const { return std::string(directory_) + "/one.toml"; }
  Experiment read(const std::string& text) const {
    std::ofstream(path()) << text;
    return read_experiment(path());
  }
  // The message, without the name of the file, which must be there.
  std::string error_of(const std::string& text) const {
    try {
      read(text);
    } catch (const BadExperiment& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find(path()), 0u) << what;
      return what.substr(path().size() + 1);
    }
    return "none";
  }
  static std::string refusal(const Experiment& e, const std::string& stack, double value,
                             const std::map<std::string, double>& overrides = {}) {
    try {
      run_point(e, stack, value, overrides);
    } catch (const BadExperiment& error) {
      return error.what();
    }
    return "none";
  }
  static std::string with(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  }
  char directory_[32] = "/tmp/ub-emu-test-XXXXXX";
};

TEST_F(ExperimentFile, is_read) {
  const Experiment e = read(kGood + "[set]\n");
  EXPECT_EQ(e.id, "one");
  EXPECT_EQ(e.judged_as, Class::kExact);
  EXPECT_EQ(e.operations, 3u);
  EXPECT_EQ(e.values, (std::vector<double>{64, 256}));
  ASSERT_EQ(e.series.size(), 1u);
  EXPECT_EQ(e.series[0].expected, (std::vector<double>{757, 799}));
}

TEST_F(ExperimentFile, says_what_is_wrong) {
  EXPECT_EQ(error_of(with("title", "titel")),
            " titel: there is no such key; there are id, title, class, measure, workload, operations, repeats, sweep, "
            "values, set, stacks, expected");
  EXPECT_EQ(error_of(with("id = \"one\"", "")), " id: is missing, or no text in quotation marks");
  EXPECT_EQ(error_of(with("\"X\"", "\"Y\"")), " class: is X, R, S or F, not Y");
  EXPECT_EQ(error_of(with("mean_ns", "mean")), " measure: is mean_ns or mops, not mean");
  EXPECT_EQ(error_of(with("values = [64, 256]", "values = []")), " values: a sweep needs at least one value");
  EXPECT_EQ(error_of(with("values = [64, 256]", "values = [64, \"a\"]")), " values: is no number");
  EXPECT_EQ(error_of(with("[757, 799]", "[757]")), " expected.urma: has 1 numbers for 2 values");
  EXPECT_EQ(error_of(with("stacks = [\"urma\"]", "stacks = []")), " stacks: name at least one stack");
  EXPECT_EQ(error_of(with("operations = 3", "operations = 0")), " operations: give a whole number, at least 1");
  EXPECT_EQ(error_of(with("operations = 3", "operations = \"ten\"")), " operations: give a whole number, at least 1");
  EXPECT_EQ(error_of(with("urma = [757, 799]", "dma = [757, 799]")), " expected.dma: this stack is not among `stacks`");
  EXPECT_EQ(error_of(with("urma = [757, 799]", "urma = 757")), " expected.urma: is missing, or no list of numbers");
  EXPECT_EQ(error_of(kGood + "[set]\npayload = 8\n"), " set.payload: is what is swept");
  EXPECT_EQ(error_of(with("[expected]", "[expected")).substr(0, 3), "10:");
}

TEST_F(ExperimentFile, runs_with_other_values) {
  const Experiment e = read(kGood);
  EXPECT_EQ(run_point(e, "urma", 64, {}).value, 757);
  EXPECT_EQ(run_point(e, "urma", 64, {{"link_delay", 200}}).value, 957);
  EXPECT_EQ(refusal(e, "irma", 64), path() + ": stacks: there is no irma; ldst, urma, bf, dma, iswap, fswap");
  EXPECT_EQ(refusal(e, "urma", 0), path() + ": payload = 0: give a whole number from 1 to 65536");
  EXPECT_EQ(refusal(e, "urma", 64, {{"payload", 8}}), "--set payload: this is what one sweeps; edit its `values`");
  EXPECT_EQ(refusal(e, "urma", 64, {{"in_flight", 0}}), "in_flight = 0: give a whole number from 1 to 1.04858e+06");
  EXPECT_EQ(refusal(e, "urma", 64, {{"locality", 101}}), "locality = 101: give a number from 0 to 100");
  EXPECT_EQ(refusal(e, "urma", 64, {{"remote_jetties", 3000}}),
            "remote_jetties = 3000.000000: give a whole number from 1 to 1024");
  EXPECT_EQ(refusal(e, "urma", 64, {{"link_dely", 200}}),
            "link_dely: there is no parameter of that name; `ub_emu parameters` lists all");
  Experiment unknown = e;
  unknown.workload = "chess";
  EXPECT_NE(refusal(unknown, "urma", 64).find("workload: there is no chess"), std::string::npos);
}

// An operation that no stack of that kind has makes its point invalid, and harms no other one.
TEST_F(ExperimentFile, what_cannot_be_done_has_no_result) {
  const Experiment e = read(with("bulk_read", "send"));
  const PointResult result = run_point(e, "iswap", 64, {{"in_flight", 4}});
  EXPECT_EQ(result.invalid, "SEND 0 of node 1: a swap device has loads and stores alone");
  EXPECT_EQ(run_point(e, "urma", 64, {}).invalid, "");
}

TEST(Parameter, takes_numbers_that_make_sense) {
  Parameters p;
  EXPECT_EQ(set_parameter(p, "nic_cycle", 3.5), "");
  EXPECT_EQ(p.nic_cycle.ps, 3500u);
  EXPECT_EQ(set_parameter(p, "link_bw", 100), "");
  EXPECT_EQ(p.link_bw, 100u);
  EXPECT_EQ(set_parameter(p, "membus", -1), "membus = -1.000000: give nanoseconds from 0 to 1e12");
  EXPECT_EQ(set_parameter(p, "l1_lines", 0.5), "l1_lines = 0.500000: give a whole number from 1 to 1000000");
  EXPECT_EQ(set_parameter(p, "link_bw", 0), "link_bw = 0.000000: give whole Gb/s, 1 to 1000000");
  EXPECT_NE(set_parameter(p, "memobus", 1), "");
}

TEST(Verdict, by_class) {
  EXPECT_EQ(judge(Class::kExact, {500}, {503}), Verdict::kInClass);
  EXPECT_EQ(judge(Class::kExact, {500}, {506}), Verdict::kOutOfClass);
  EXPECT_EQ(judge(Class::kExact, {5000}, {5050}), Verdict::kInClass);
  EXPECT_EQ(judge(Class::kRandom, {100}, {106}), Verdict::kInClass);
  EXPECT_EQ(judge(Class::kRandom, {100}, {93}), Verdict::kOutOfClass);
  EXPECT_EQ(judge(Class::kShape, {100, 200}, {114, 171}), Verdict::kInClass);
  EXPECT_EQ(judge(Class::kFormula, {100}, {100.1}), Verdict::kOutOfClass);
  EXPECT_EQ(judge(Class::kExact, {}, {1}), Verdict::kNoData);
  EXPECT_EQ(judge(Class::kExact, {500}, {std::nan("")}), Verdict::kOutOfClass);
}

}  // namespace
}  // namespace ub::emu
