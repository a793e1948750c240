// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/verdict.h"

#include <algorithm>
#include <cmath>

namespace ub::emu {

double allowed_difference(Class judged_as, double expected) {
  switch (judged_as) {
    case Class::kExact:
      return std::max(3.0, 0.01 * expected);
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
    case Verdict::kOutOfClass:
      return "OUT OF CLASS";
    case Verdict::kNoData:
      return "no data";
    case Verdict::kInvalid:
      return "INVALID";
  }
  return "?";
}

Verdict judge(Class judged_as, const std::vector<double>& expected, const std::vector<double>& measured) {
  if (expected.empty()) return Verdict::kNoData;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(measured[i] - expected[i]);
    if (!(difference <= allowed_difference(judged_as, expected[i]))) return Verdict::kOutOfClass;  // or it is no number
  }
  return Verdict::kInClass;
}

}  // namespace ub::emu
