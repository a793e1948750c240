// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/ub_emu/print_results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "emu_hw/ub_emu/print_comparison.h"

namespace ub::emu {
namespace {

void print_values(const Experiment& e, const Series& series, const std::vector<double>& values) {
  const Series* shown = &series;  // whose data stand behind the values
  for (const Series& each : e.series)
    if (each.name == series.beside) shown = &each;
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("  %g", values[i]);
    const bool is_published = !shown->expected.empty() && !std::isnan(shown->expected[i]);
    if (is_published && values[i] != shown->expected[i]) std::printf(" (%g)", shown->expected[i]);
  }
}

void print_series(const Experiment& e, const Series& series, const SeriesResult& result) {
  std::printf("%-8s %-10s %c  %-12s", e.id.c_str(), series.name.c_str(), static_cast<char>(e.judged_as),
              std::string(name_of(result.judgement.verdict)).c_str());
  const auto is_invalid = [](const PointResult& point) { return !point.invalid.empty(); };
  const auto invalid = std::find_if(result.points.begin(), result.points.end(), is_invalid);
  if (invalid != result.points.end()) {
    std::printf("  %s\n", invalid->invalid.c_str());
    return;
  }
  print_values(e, series, measured(e, result));
  std::printf("\n");
  if (result.judgement.verdict == Verdict::kOutOfClass)
    std::printf("  off: %s\n", in_parts_of_allowed(result.judgement).c_str());
  const bool is_explained = result.judgement.verdict == Verdict::kExplained || !series.beside.empty();
  if (is_explained) std::printf("  %s\n", series.explanation.c_str());
}

}  // namespace

void print_results(const Experiment& e, const ExperimentResult& result, bool ledgers) {
  if (!e.not_reproducible.empty()) {
    std::printf("# %s: %s\n%-8s not here: %s\n", e.id.c_str(), e.title.c_str(), e.id.c_str(),
                e.not_reproducible.c_str());
    return;
  }
  std::printf("# %s: %s; %s by %s:", e.id.c_str(), e.title.c_str(), e.measure.c_str(), e.sweep.c_str());
  for (const double value : e.values) std::printf(" %g", value);
  std::printf("\n");
  for (size_t i = 0; i < e.series.size(); ++i) {
    print_series(e, e.series[i], result.series[i]);
    const PointResult& first = result.series[i].points.front();
    if (ledgers && !first.ledger.empty())
      std::printf("  %s = %g: %s\n", e.sweep.c_str(), e.values.front(),
                  Ledger::text_of(first.begin, first.ledger).c_str());
  }
}

}  // namespace ub::emu
