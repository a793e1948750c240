// SPDX-License-Identifier: Apache-2.0
// Nothing is hard-wired, seen from the files of the experiments: when one cost is raised by 10 ns, exactly the points
// whose ledgers pass through its component become slower, by 10 ns for each passage.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "emu_hw/experiment/run_point.h"

namespace ub::emu {
namespace {

constexpr double kMoreNs = 10;

struct Cost {
  const char* parameter;
  std::map<std::string_view, int> passages;  // how often a line of the ledger pays it
  std::map<std::string_view, int> ub, roce;  // the same, of lines that mean something else there
};
const Cost kCosts[] = {
    {"link_delay", {{"link", 1}}, {}, {}},
    {"membus", {{"bus", 1}}, {{"contexts", 1}}, {}},
    {"remote_dram", {{"dram", 1}}, {}, {}},
    {"local_dram", {{"cache.miss", 1}, {"dram.local", 1}}, {{"contexts", 1}}, {}},
    {"verb_post_lib", {{"cpu.post_lib", 1}}, {}, {}},
    {"pcie_mmio_write", {{"pcie.doorbell", 1}, {"pcie.hand_over", 1}}, {}, {}},
    {"pcie_dma_read",
     {{"pcie.fetch", 1}, {"pcie.read", 1}, {"pcie.hand_over", 1}, {"pcie.reach_memory", 1}},
     {},
     {{"contexts", 1}}},
    {"pcie_dma_write",
     {{"pcie.write", 1}, {"pcie.land", 1}, {"pcie.completion", 1}, {"pcie.complete", 2}},
     {},
     {}},
    {"ub_so_gating", {}, {{"order.gate", 1}}, {}},
    {"roce_so_overhead", {}, {}, {{"order.gate", 1}}},
    {"roce_target_dispatch", {{"cpu.dispatch", 1}}, {}, {}},
};

// One operation of a point, in flight alone.
struct Outcome {
  double ns = 0;
  PointResult result;
};

class Points : public testing::Test {
 protected:
  static Outcome run(const Experiment& e, const Series& series, double value) {
    Experiment one = e;
    one.measure = "mean_ns";
    one.repeats = 1;
    Settings overrides;
    if (e.sweep != "operations") overrides["operations"] = "1";
    Outcome outcome{0, run_point(one, series, value, overrides)};
    outcome.ns = measured(one, outcome.result);
    return outcome;
  }
  static std::string text(const Series& series, const std::string& parameter) {
    const auto own = series.set.find(parameter);
    if (own != series.set.end()) return own->second;
    for (const ParameterInfo& each : all_parameters())
      if (each.name == parameter) return each.default_text;
    ADD_FAILURE() << parameter;
    return "";
  }
  static double number(const Experiment& e, const Series& series, double value, const std::string& parameter) {
    return e.sweep == parameter ? value : std::stod(text(series, parameter));
  }
  // More than one operation at a time, or time that is drawn from random numbers.
  static bool is_simple(const Experiment& e, const Series& series, double value) {
    const bool is_alone = number(e, series, value, "in_flight") == 1 && number(e, series, value, "offered_rate") == 0;
    return is_alone && number(e, series, value, "loss_rate") == 0 && number(e, series, value, "jitter_factor") == 0 &&
           (e.sweep != "operations" || value == 1);
  }
  static Outcome dearer(const Experiment& e, Series series, double value, const std::string& parameter) {
    const double raised = number(e, series, value, parameter) + kMoreNs;
    if (e.sweep == parameter) return run(e, series, raised);
    series.set[parameter] = text_of(raised);
    return run(e, series, value);
  }
  // A sample of a lock is several operations, and the ledger is of one of them.
  static double operations_of(const Outcome& outcome) {
    const std::vector<Ledger::Line>& lines = outcome.result.ledger;
    return lines.empty() ? 1 : std::round(outcome.ns / (lines.back().until - outcome.result.begin).ns());
  }
  // Has it contexts and an order like those of RoCE?
  static int passages(const Cost& cost, const Series& series, const Outcome& outcome) {
    const bool is_ub = series.stack == "urma" || series.stack == "ldst";
    const bool has_roce_contexts = !is_ub || text(series, "ub_state") == "pairs";
    const bool has_roce_order = !is_ub || text(series, "ub_order") == "always";
    int sum = 0;
    for (const Ledger::Line& line : outcome.result.ledger) {
      const std::string_view name = line.name.part;
      const bool is_like_roce = name == "contexts" ? has_roce_contexts : has_roce_order;
      const auto& others = is_like_roce ? cost.roce : cost.ub;
      for (const auto* each : {&cost.passages, &others})
        if (const auto found = each->find(name); found != each->end()) sum += found->second;
    }
    return sum;
  }
};

TEST_F(Points, pay_a_cost_as_often_as_they_pass_its_component) {
  const std::string root = UB_EMU_DIRECTORY;
  std::map<std::string, int> slower, same;
  for (const Experiment& e : read_experiments(root + "/experiments", read_profiles(root + "/profiles"))) {
    if (!e.not_reproducible.empty() || e.model != "two_node") continue;
    for (const Series& series : e.series) {
      for (const double value : {e.values.front(), e.values.back()}) {
        if (!is_simple(e, series, value)) continue;
        const Outcome before = run(e, series, value);
        ASSERT_EQ(before.result.invalid, "") << e.id;
        for (const Cost& cost : kCosts) {
          const Outcome after = dearer(e, series, value, cost.parameter);
          const int passed = passages(cost, series, after);
          EXPECT_NEAR(after.ns - before.ns, kMoreNs * passed * operations_of(after), 1e-6)
              << e.id << " " << series.name << ", " << e.sweep << " = " << value << ": " << cost.parameter << "\n"
              << Ledger::text_of(after.result.begin, after.result.ledger);
          ++(passed == 0 ? same : slower)[cost.parameter];
        }
      }
    }
  }
  int that_some_pass = 0;
  for (const Cost& cost : kCosts) {
    EXPECT_GT(slower[cost.parameter], 0) << cost.parameter;
    that_some_pass += same[cost.parameter] > 0;
  }
  EXPECT_EQ(that_some_pass, 9) << "all pass links and memory";
}

}  // namespace
}  // namespace ub::emu
