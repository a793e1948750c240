// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ub::emu {

double allowed_difference(const Experiment& e, const Series& series, double expected) {
  if (series.within) return *series.within;
  if (series.within_percent) return *series.within_percent / 100 * std::abs(expected);
  switch (e.judged_as) {
    case Class::kExact:
      return std::max(e.measure.ends_with("_ns") ? 3.0 : 0.0, 0.01 * expected);
    case Class::kRandom:
      return 0.06 * expected;
    case Class::kShape:
      return 0.15 * expected;
    case Class::kFormula:
      return 0;
  }
  return 0;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInClass:
      return "in class";
    case Verdict::kExplained:
      return "explained";
    case Verdict::kOutOfClass:
      return "OUT OF CLASS";
    case Verdict::kNoData:
      return "no data";
    case Verdict::kBeside:
      return "beside";
    case Verdict::kNotReproducible:
      return "not here";
    case Verdict::kInvalid:
      return "INVALID";
  }
  return "?";
}

double part_of_allowed(const Experiment& e, const Series& series, double measured, double expected) {
  const double difference = std::abs(measured - expected);
  return std::isnan(expected) || difference == 0 ? 0 : difference / allowed_difference(e, series, expected);
}

namespace {

double worst_of(const Experiment& e, const Series& series, const std::vector<double>& measured) {
  double worst = 0;
  for (size_t i = 0; i < series.expected.size(); ++i)
    worst = std::max(worst, part_of_allowed(e, series, measured[i], series.expected[i]));
  return worst;
}

}  // namespace

Judgement judge(const Experiment& e, const Series& series, const std::vector<double>& measured) {
  if (std::any_of(measured.begin(), measured.end(), [](double each) { return std::isnan(each); }))
    return {Verdict::kInvalid};
  if (!series.beside.empty()) return {Verdict::kBeside};
  if (series.expected.empty()) return {Verdict::kNoData};
  const double worst = worst_of(e, series, measured);
  if (worst <= 1) return {Verdict::kInClass, worst};
  const bool may_be_explained = e.judged_as == Class::kRandom || e.judged_as == Class::kShape;
  return {may_be_explained && !series.explanation.empty() ? Verdict::kExplained : Verdict::kOutOfClass, worst};
}

}  // namespace ub::emu
