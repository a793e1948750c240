// SPDX-License-Identifier: Apache-2.0
// Files of experiments: what is wrong in one is named with file, key and remedy. Verdicts by class.
#include <gtest/gtest.h>

#include <algorithm>
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
    return read_experiment(path(), profiles);
  }
  // The message, without the name of the file, which must be there.
  std::string error_of(const std::string& text) const {
    try {
      read(text);
    } catch (const BadFile& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find(path()), 0u) << what;
      return what.substr(path().size() + 1);
    }
    return "none";
  }
  static std::string refusal(const Experiment& e, double value, const Settings& overrides = {}) {
    try {
      run_point(e, e.series[0], value, overrides);
    } catch (const BadFile& error) {
      return error.what();
    }
    return "none";
  }
  static double mean(const Experiment& e, double value, const Settings& overrides = {}) {
    return measured(e, run_point(e, e.series[0], value, overrides));
  }
  static std::string with(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  }
  const Profiles profiles = {{"dma", {"", "fetched", "roce", {{"inline_limit", "0"}}}}};
  char directory_[32] = "/tmp/ub-emu-test-XXXXXX";
};

TEST_F(ExperimentFile, is_read) {
  const Experiment e = read(kGood + "[set]\n");
  EXPECT_EQ(e.id, "one");
  EXPECT_EQ(e.judged_as, Class::kExact);
  EXPECT_EQ(e.values, (std::vector<double>{64, 256}));
  ASSERT_EQ(e.series.size(), 1u);
  EXPECT_EQ(e.series[0].expected, (std::vector<double>{757, 799}));
  EXPECT_EQ(e.series[0].set, (Settings{{"operations", "3"}}));
}

TEST_F(ExperimentFile, says_what_is_wrong) {
  EXPECT_EQ(error_of(with("title", "titel")),
            " titel: there is no such key; there are id, title, class, not_reproducible, paper, model, workload, "
            "measure, operations, repeats, sweep, values, set, stacks, series, expected");
  EXPECT_EQ(error_of(with("id = \"one\"", "")), " id: is missing, or no text in quotation marks");
  EXPECT_EQ(error_of(with("\"X\"", "\"Y\"")), " class: is X, R, S or F, not Y");
  EXPECT_EQ(error_of(kGood + "[set]\n" + "payload = 8\n"), " set.payload: is what is swept");
  EXPECT_EQ(error_of("model = \"chess\"\n" + kGood), " model: there is no chess; there are " + names_of_models());
  EXPECT_EQ(error_of(with("values = [64, 256]", "values = []")), " values: a sweep needs at least one value");
  EXPECT_EQ(error_of(with("values = [64, 256]", "values = [64, \"a\"]")), " values: is no list of numbers");
  EXPECT_EQ(error_of(with("[757, 799]", "[757]")), " expected.urma: has 1 numbers for 2 values");
  EXPECT_EQ(error_of(with("[757, 799]", "[nan, nan]")), " expected.urma: has no number at all; leave it out");
  EXPECT_EQ(error_of(with("stacks = [\"urma\"]", "stacks = []")), " stacks: name at least one");
  EXPECT_EQ(error_of(with("operations = 3", "operations = \"ten\"")), " operations: is missing, or no number");
  EXPECT_EQ(error_of(with("operations = 3", "repeats = 0")), " repeats: give a whole number from 1 to 1000");
  EXPECT_EQ(error_of(with("urma = [757, 799]", "dma = [757, 799]")), " expected.dma: is not among `stacks`");
  EXPECT_EQ(error_of(with("urma = [757, 799]", "urma = 757")), " expected.urma: is missing, or no list of numbers");
  EXPECT_EQ(error_of(kGood + "[set]\nmembus = [8]\n"), " set.membus: is neither a number nor a text");
  EXPECT_EQ(error_of(with("[expected]", "[expected")).substr(0, 3), "10:");
  EXPECT_EQ(error_of(with("values = [64, 256]", "values = [64, nan]")), " values: give finite numbers");
  EXPECT_EQ(error_of(with("values = [64, 256]", "values = [64, 64]")), " values: has one of them twice; leave one out");
  EXPECT_EQ(error_of(with("[757, 799]", "[inf, 799]")),
            " expected.urma: give finite numbers, and nan where none is published");
  EXPECT_EQ(error_of(with("[\"urma\"]", "[\"urma\", \"urma\"]")),
            " stacks: has a name twice; name a series and its stack by [series.NAME]");
  EXPECT_EQ(error_of("model = \"state\"\n" + kGood), " workload: the model state has none; leave it out");
  for (const char* id : {"", "../one", "a b", "<b>", "-one"})
    EXPECT_EQ(error_of(with("\"one\"", '"' + std::string(id) + '"')),
              " id: give letters and digits, and - . _ behind the first one");
}

TEST_F(ExperimentFile, says_what_is_wrong_with_a_series) {
  EXPECT_EQ(error_of(kGood + "[series.dma]\n"), " series.dma: is not among `stacks`");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nwidth = 3\n"),
            " series.urma.width: there is no such key; there are profile, stack, set, within, within_percent, "
            "decided_by, beside, explanation");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nprofile = \"chess\"\n"),
            " series.urma.profile: there is no chess; there are dma");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nprofile = \"dma\"\nstack = \"roce\"\n"),
            " series.urma.stack: a profile has one; leave one of the two out");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nset = { payload = 3 }\n"), " series.urma.set.payload: is what is swept");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nbeside = \"dma\"\nexplanation = \"x\"\n"),
            " series.urma.beside: there is no dma among `stacks`");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nbeside = \"urma\"\n"),
            " series.urma.beside: is the series itself; name another one");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nbeside = \"dma\"\n"),
            " series.urma.explanation: say what makes it differ from dma");
}

// A value that is passed over would look as if it counted.
TEST_F(ExperimentFile, says_what_is_of_another_kind_in_a_series) {
  for (const char* key : {"profile", "stack", "decided_by", "beside", "explanation"})
    EXPECT_EQ(error_of(kGood + "[series.urma]\n" + key + " = 3\n"),
              " series.urma." + std::string(key) + ": is no text in quotation marks");
  for (const char* key : {"within", "within_percent"})
    for (const char* value : {"\"much\"", "-1", "nan", "inf", "[1]"})
      EXPECT_EQ(error_of(kGood + "[series.urma]\n" + key + " = " + value + "\n"),
                " series.urma." + std::string(key) + ": give a number from 0 on");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nset = 3\n"),
            " series.urma.set: is no table: write [series.urma.set]");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nwithin = 1\nwithin_percent = 1\n"),
            " series.urma.within: leave it or within_percent out");
  EXPECT_EQ(read(kGood + "[series.urma]\nwithin = 0\n").series[0].within, 0);
}

// Before anything runs.
TEST_F(ExperimentFile, says_what_is_wrong_with_a_parameter) {
  EXPECT_EQ(error_of(kGood + "[set]\nlink_dely = 3\n"),
            " link_dely: there is no parameter of that name; `ub_emu parameters` lists all");
  EXPECT_EQ(error_of(kGood + "[set]\nlink_delay = \"3GB\"\n"),
            " link_delay = 3GB: unknown unit \"GB\"; it is given in ns, ps, us, ms, s");
  EXPECT_EQ(error_of(kGood + "[series.urma]\nset = { link_dely = 3 }\n"),
            " link_dely: there is no parameter of that name; `ub_emu parameters` lists all");
  EXPECT_EQ(error_of(with("\"payload\"", "\"paylod\"")),
            " paylod: there is no parameter of that name; `ub_emu parameters` lists all");
  EXPECT_EQ(error_of(with("[64, 256]", "[64, 65537]")),
            " payload = 65537: give a whole number from 1 to 65536 bytes");
}

TEST_F(ExperimentFile, has_a_name_of_its_own) {
  const std::string other = std::string(directory_) + "/two.toml";
  for (const auto& [id, same] : {std::pair{"one", "ONE"}, {"o-ne", "o.-ne"}}) {
    std::ofstream(path()) << with("\"one\"", '"' + std::string(id) + '"');
    std::ofstream(other) << with("\"one\"", '"' + std::string(same) + '"');
    try {
      read_experiments(directory_, profiles);
      ADD_FAILURE() << "two of one name: " << same;
    } catch (const BadFile& error) {
      EXPECT_EQ(error.what(),
                other + ": id: " + path() + " has the same, but for capitals and - . _; give another one");
    }
  }
  std::remove(other.c_str());
  EXPECT_EQ(read_experiments(directory_, profiles).size(), 1u);
}

TEST_F(ExperimentFile, runs_with_other_values) {
  const Experiment e = read(kGood);
  EXPECT_EQ(mean(e, 64), 757);
  EXPECT_EQ(mean(e, 64, {{"link_delay", "200"}}), 957);
  EXPECT_EQ(mean(e, 64, {{"link_delay", "0.2us"}}), 957);
  EXPECT_EQ(refusal(e, 0), path() + ": payload = 0: give a whole number from 1 to 65536 bytes");
  EXPECT_EQ(refusal(e, 64, {{"payload", "8"}}), "--set payload: this is what one sweeps; edit its `values`");
  EXPECT_EQ(refusal(e, 64, {{"in_flight", "0"}}), "--set in_flight = 0: give a whole number from 1 to 1048576");
  EXPECT_EQ(refusal(e, 64, {{"link_dely", "200"}}),
            "--set link_dely: there is no parameter of that name; `ub_emu parameters` lists all");
  EXPECT_NE(refusal(read(with("bulk_read", "chess")), 64).find("workload: there is no \"chess\""), std::string::npos);
  EXPECT_NE(refusal(read(with("mean_ns", "mean")), 64).find("measure: this point has no mean; it has max_ns, mean_ns"),
            std::string::npos);
  EXPECT_EQ(refusal(e, 64, {{"rto_min", "0"}}), path() + ": rto_min: give at least 1 ns");
  EXPECT_EQ(refusal(e, 64, {{"rto_max", "1"}}), path() + ": rto_max: is less than rto_min; give at least as much");
  Experiment irma = e;
  irma.series[0].stack = "irma";
  EXPECT_EQ(refusal(irma, 64), path() + ": stacks: there is no stack or profile irma of two_node; `ub_emu profiles` "
                                        "lists profiles, with their stacks");
}

// Of the profile, of the experiment, of the series: the later ones win.
TEST_F(ExperimentFile, series_have_settings_of_their_own) {
  const std::string text = with("[\"urma\"]", "[\"dma\", \"farther\"]");
  const Experiment e = read(text.substr(0, text.find("[expected]")) +
                            "[set]\nroce_so_overhead = 0\n[series.farther]\nprofile = \"dma\"\n"
                            "set = { link_delay = 150, roce_so_overhead = 10 }\n");
  EXPECT_EQ(measured(e, run_point(e, e.series[0], 64, {})), 2186);
  EXPECT_EQ(measured(e, run_point(e, e.series[1], 64, {})), 2296);
}

TEST_F(ExperimentFile, series_can_name_a_stack_that_has_no_profile) {
  const std::string text = with("[\"urma\"]", "[\"dma\"]");
  const Experiment e = read(text.substr(0, text.find("[expected]")) + "[series.dma]\nstack = \"urma\"\n");
  EXPECT_EQ(e.series[0].stack, "urma");
  EXPECT_EQ(e.series[0].set, (Settings{{"operations", "3"}}));
}

TEST_F(ExperimentFile, what_is_not_reproducible_needs_no_more) {
  const Experiment e = read("id = \"T1\"\ntitle = \"area\"\nnot_reproducible = \"software has no area\"\n");
  EXPECT_EQ(e.not_reproducible, "software has no area");
  EXPECT_TRUE(e.series.empty());
}

TEST_F(ExperimentFile, what_is_not_reproducible_has_no_more) {
  EXPECT_EQ(error_of("not_reproducible = \"\"\nid = \"T1\"\ntitle = \"area\"\n"), " not_reproducible: say why");
  EXPECT_EQ(error_of("not_reproducible = \"no area\"\n" + kGood),
            " class: leave it out, or not_reproducible: nothing is run here");
}

// An operation that no stack of that kind has makes its point invalid, and harms no other one.
TEST_F(ExperimentFile, what_cannot_be_done_has_no_result) {
  Experiment e = read(with("bulk_read", "send"));
  EXPECT_EQ(run_point(e, e.series[0], 64, {}).invalid, "");
  e.series[0].stack = "swap";
  const PointResult result = run_point(e, e.series[0], 64, {{"in_flight", "4"}});
  EXPECT_EQ(result.invalid, "SEND 0 of node 1: a swap device has loads and stores alone");
  EXPECT_TRUE(result.values.empty());
  e.series[0].stack = "urma";
  EXPECT_EQ(run_point(e, e.series[0], 64, {{"offered_rate", "1e-20"}, {"runtime_cap", "off"}}).invalid,
            "the next arrival: later than the 213 days of virtual time; is a delay mistaken?");
  e.workload = "lock";
  EXPECT_EQ(refusal(e, 64, {{"operations", "1000000"}, {"active_connections", "100000"}}),
            path() + ": operations, active_connections: a lock takes operations * active_connections attempts; give "
                     "10000000 at most");
  e.series[0].stack = "swap";
  e.workload = "scan";
  EXPECT_EQ(run_point(e, e.series[0], 64, {{"prefetch_window", "256"}, {"runtime_cap", "off"}}).invalid, "");
  EXPECT_EQ(run_point(e, e.series[0], 64, {{"prefetch_window", "257"}}).invalid,
            "a page fault reads 1 MiB at most: give a smaller page_size or prefetch_window");
}

// By chance a run of one operation loses its only frame, and then it has no result before it is cut.
TEST_F(ExperimentFile, a_repeat_that_is_invalid_spoils_its_point) {
  Experiment e = read(kGood);
  const auto invalid = [&](uint64_t seed, uint64_t repeats) {
    e.repeats = repeats;
    const PointResult result = run_point(e, e.series[0], 64, {{"seed", std::to_string(seed)}, {"loss", "link"},
                                                              {"loss_rate", "0.2"}, {"operations", "1"}});
    EXPECT_EQ(result.values.empty(), !result.invalid.empty());
    return result.invalid;
  };
  bool has_first = false, has_last = false;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const std::string first = invalid(seed, 1), last = invalid(seed + 1, 1);
    EXPECT_EQ(invalid(seed, 2), first.empty() ? last : first) << seed;
    has_first |= !first.empty() && last.empty();
    has_last |= first.empty() && !last.empty();
  }
  EXPECT_TRUE(has_first && has_last);
}

TEST(Parameter, takes_what_makes_sense) {
  Parameters p;
  EXPECT_EQ(set_parameter(p, "nic_cycle", "3.5"), "");
  EXPECT_EQ(p.nic_cycle.ps, 3500u);
  EXPECT_EQ(set_parameter(p, "link_bw", "1 Tb/s"), "");
  EXPECT_EQ(p.link_bw, 1000u);
  EXPECT_EQ(set_parameter(p, "page_size", "64 KiB"), "");
  EXPECT_EQ(p.page_size, 65536u);
  EXPECT_EQ(set_parameter(p, "cache_policy", "uc"), "");
  EXPECT_EQ(p.cache_policy, CachePolicy::kUncached);
  EXPECT_EQ(set_parameter(p, "membus", "-1"), "membus = -1: give a number from 0 to 1000000000000 ns");
  EXPECT_EQ(set_parameter(p, "l1_lines", "0.5"), "l1_lines = 0.5: give a whole number from 1 to 1000000 lines");
  EXPECT_EQ(set_parameter(p, "link_bw", "0"), "link_bw = 0: give a whole number from 1 to 1000000 Gb/s");
  EXPECT_EQ(set_parameter(p, "membus", "3 feet"),
            "membus = 3 feet: unknown unit \"feet\"; it is given in ns, ps, us, ms, s");
  EXPECT_EQ(set_parameter(p, "membus", "fast"), "membus = fast: is no number");
  EXPECT_EQ(set_parameter(p, "membus", "nan"), "membus = nan: give a number from 0 to 1000000000000 ns");
  EXPECT_EQ(set_parameter(p, "seed", "3 ns"), "seed = 3 ns: has no unit; leave out \"ns\"");
  EXPECT_EQ(set_parameter(p, "cache_policy", "w"), "cache_policy = w: give one of: wb wt uc");
  EXPECT_NE(set_parameter(p, "memobus", "1"), "");
}

// What is a whole number of picoseconds is not changed by the way through a text.
TEST(Parameter, times_are_exact) {
  for (uint64_t ps = 0; ps < 20'000; ++ps) {
    Parameters p;
    const std::string text = text_of(static_cast<double>(ps) / 1000);
    ASSERT_EQ(set_parameter(p, "link_delay", text), "");
    ASSERT_EQ(p.link_delay.ps, ps) << text;
    ASSERT_EQ(set_parameter(p, "membus", std::to_string(ps) + " ps"), "");
    ASSERT_EQ(p.membus.ps, ps);
    ASSERT_EQ(changed_parameters(p)["link_delay"], text);
  }
  Parameters p;
  EXPECT_EQ(set_parameter(p, "membus", "0.0006"), "");
  EXPECT_EQ(p.membus.ps, 1u);
}

// By the names, defaults and units of the reference.
TEST(Parameter, has_the_default_of_the_reference) {
  struct {
    const char *name, *value, *unit;
  } const reference[] = {
      {"nic_cycle", "3.106", "ns"}, {"nic_cycles_ldst", "8", "cycles"}, {"nic_cycles_urma", "25", "cycles"},
      {"nic_cycles_roce", "9", "cycles"}, {"flit", "32", "bytes"}, {"link_delay", "100", "ns"},
      {"link_bw", "400", "Gb/s"}, {"remote_dram", "30", "ns"}, {"membus", "30", "ns"}, {"l1", "1", "ns"},
      {"l2", "4", "ns"}, {"llc", "12", "ns"}, {"local_dram", "70", "ns"}, {"l1_lines", "512", "lines"},
      {"l2_lines", "8192", "lines"}, {"pcie_mmio_write", "150", "ns"}, {"pcie_dma_read", "500", "ns"},
      {"pcie_dma_write", "250", "ns"}, {"wqe_construct", "30", "ns"}, {"verb_post_lib", "50", "ns"},
      {"verb_poll_lib", "30", "ns"}, {"cqe_poll_host", "70", "ns"}, {"cqe_poll_onchip", "5", "ns"},
      {"roce_so_overhead", "50", "ns"}, {"ub_so_gating", "20", "ns"}, {"roce_qp_cache", "512", "entries"},
      {"ub_tp_cache", "2048", "entries"}, {"active_connections", "1", ""}, {"remote_jetties", "1", ""},
      {"roce_target_dispatch", "200", "ns"}, {"ub_jetty_group_dispatch", "0", "ns"}, {"jetties_per_tp", "1", ""},
      {"tp_psn_service", "5", "ns"}, {"loss_rate", "0", ""}, {"gbn_flight", "32", "packets"},
      {"jitter_factor", "0", ""}, {"page_size", "4096", "bytes"}, {"kernel_pf", "3000", "ns"},
      {"prefetch_window", "1", "pages"}, {"resident_pages", "16384", "pages"}, {"parallel_swap_depth", "4", ""},
  };
  for (const auto& each : reference) {
    const auto& all = all_parameters();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == std::string(each.name); });
    ASSERT_NE(found, all.end()) << each.name;
    EXPECT_EQ(found->default_text, each.value) << each.name;
    EXPECT_EQ(found->unit, std::string(each.unit)) << each.name;
  }
}

// What is listed as a default is one.
TEST(Parameter, defaults_are_accepted) {
  for (const ParameterInfo& each : all_parameters()) {
    Parameters p;
    EXPECT_EQ(set_parameter(p, each.name, each.default_text), "");
  }
}

Verdict verdict(Class judged_as, std::vector<double> expected, const std::vector<double>& measured) {
  Experiment e;
  e.judged_as = judged_as;
  e.measure = "mean_ns";
  Series series;
  series.expected = std::move(expected);
  return judge(e, series, measured).verdict;
}

TEST(Verdict, by_class) {
  EXPECT_EQ(verdict(Class::kExact, {500}, {503}), Verdict::kInClass);
  EXPECT_EQ(verdict(Class::kExact, {500}, {506}), Verdict::kOutOfClass);
  EXPECT_EQ(verdict(Class::kExact, {5000}, {5050}), Verdict::kInClass);
  EXPECT_EQ(verdict(Class::kRandom, {100}, {106}), Verdict::kInClass);
  EXPECT_EQ(verdict(Class::kRandom, {100}, {93}), Verdict::kOutOfClass);
  EXPECT_EQ(verdict(Class::kShape, {100, 200}, {114, 171}), Verdict::kInClass);
  EXPECT_EQ(verdict(Class::kFormula, {100}, {100}), Verdict::kInClass);
  EXPECT_EQ(verdict(Class::kFormula, {100}, {100.1}), Verdict::kOutOfClass);
  EXPECT_EQ(verdict(Class::kExact, {}, {1}), Verdict::kNoData);
  EXPECT_EQ(verdict(Class::kExact, {std::nan(""), 500}, {1, 500}), Verdict::kInClass);
  EXPECT_EQ(verdict(Class::kExact, {std::nan(""), 500}, {500, 1}), Verdict::kOutOfClass);
  EXPECT_EQ(verdict(Class::kExact, {500}, {std::nan("")}), Verdict::kInvalid);
  EXPECT_EQ(verdict(Class::kExact, {}, {std::nan("")}), Verdict::kInvalid);
}

TEST(Verdict, of_series_with_rules_of_their_own) {
  Experiment e;
  e.judged_as = Class::kShape;
  e.measure = "mops";
  Series series;
  series.expected = {100};
  EXPECT_EQ(judge(e, series, {120}).verdict, Verdict::kOutOfClass);
  EXPECT_NEAR(judge(e, series, {120}).worst, 20.0 / 15, 1e-12);
  series.explanation = "queues";
  EXPECT_EQ(judge(e, series, {120}).verdict, Verdict::kExplained);
  e.judged_as = Class::kExact;  // is not explained away
  EXPECT_EQ(judge(e, series, {102}).verdict, Verdict::kOutOfClass);
  series.within = 2;
  EXPECT_EQ(judge(e, series, {102}).verdict, Verdict::kInClass);
  series.within.reset();
  series.within_percent = 30;
  EXPECT_EQ(judge(e, series, {129}).verdict, Verdict::kInClass);
  series.beside = "other";
  EXPECT_EQ(judge(e, series, {1000}).verdict, Verdict::kBeside);
}

}  // namespace
}  // namespace ub::emu
