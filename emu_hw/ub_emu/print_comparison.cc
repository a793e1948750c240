// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/ub_emu/print_comparison.h"

#include <cmath>
#include <cstdio>

namespace ub::emu {
namespace {

// Where the experiment says nothing else.
constexpr const char* kByDefault = "core, with the costs of the parts, but for formulas and what has no NIC";

void print_difference(const Experiment& e, const Series& series, const SeriesResult& result) {
  const Furthest furthest = furthest_of(e, series, result);
  if (furthest.measured == furthest.expected) return std::printf("  equal"), void();
  if (result.judgement.verdict == Verdict::kInClass && std::abs(furthest.percent()) < 0.005)
    return std::printf("  less than 0.01 %%"), void();
  std::printf("  %+.2f %% at %s = %g (%g, not %g)", furthest.percent(), e.sweep.c_str(), furthest.at, furthest.measured,
              furthest.expected);
  if (result.judgement.verdict != Verdict::kInClass)
    std::printf(", %s", in_parts_of_allowed(result.judgement).c_str());
}

void print_series(const Experiment& e, const Series& series, const SeriesResult& result) {
  const Verdict verdict = result.judgement.verdict;
  std::printf("%-10s %-12s %c  %-12s", e.id.c_str(), series.name.c_str(), static_cast<char>(e.judged_as),
              std::string(name_of(verdict)).c_str());
  if (verdict == Verdict::kInvalid) {
    for (const PointResult& point : result.points)
      if (!point.invalid.empty()) return std::printf("  %s\n", point.invalid.c_str()), void();
  }
  print_difference(e, series, result);
  std::printf("\n");
  if (verdict != Verdict::kInClass && !series.explanation.empty()) std::printf("  %s\n", series.explanation.c_str());
}

}  // namespace

std::string in_parts_of_allowed(const Judgement& judgement) {
  if (std::isinf(judgement.worst)) return "the class allows no difference";
  char text[64];
  std::snprintf(text, sizeof text, "%.3g times what the class allows", judgement.worst);
  return text;
}

void print_counts(const Counts& counts) {
  std::printf("verdict       series\n");
  for (Verdict each : {Verdict::kInClass, Verdict::kExplained, Verdict::kBeside, Verdict::kOutOfClass,
                       Verdict::kInvalid, Verdict::kNoData, Verdict::kNotReproducible}) {
    const auto found = counts.find(each);
    std::printf("%-12s %7zu%s\n", std::string(name_of(each)).c_str(), found == counts.end() ? 0 : found->second,
                each == Verdict::kNotReproducible ? " (experiments)" : "");
  }
}

namespace {

void print_deciders(const std::vector<Experiment>& experiments) {
  std::printf("\ndecided by\n");
  for (const auto& [decider, names] : deciders_of(experiments)) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    std::printf("  %s: %s\n", decider.c_str(), all.c_str());
  }
  std::printf("  %s: all others\n", kByDefault);
}

}  // namespace

void print_comparison(const std::vector<Experiment>& experiments, const std::vector<ExperimentResult>& results) {
  for (size_t e = 0; e < experiments.size(); ++e)
    for (size_t s = 0; s < experiments[e].series.size(); ++s)
      if (!experiments[e].series[s].expected.empty())
        print_series(experiments[e], experiments[e].series[s], results[e].series[s]);
  std::printf("\n");
  print_counts(counts_of(experiments, results));
  print_deciders(experiments);
}

}  // namespace ub::emu
