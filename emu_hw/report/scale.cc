// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/scale.h"

#include <algorithm>
#include <cmath>

#include "emu_hw/report/number_text.h"

namespace ub::emu {
namespace {

constexpr size_t kTicks = 6;
constexpr double kNear = 1e-9;         // of a step, for what is lost by rounding
constexpr double kFarApart = 15;       // values of a result so far apart are on a logarithmic axis
constexpr double kSweepFarApart = 30;  // and those of a sweep
constexpr size_t kSweepIsLong = 4;     // values; fewer are categories

double step_of(double width, size_t count) {
  const double least = width / static_cast<double>(count);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - kNear)) return factor * power;
  return 10 * power;
}

// 1, 2 or 5 times a power of ten, not more than that.
double one_two_five_below(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  return value >= 5 * power ? 5 * power : value >= 2 * power ? 2 * power : power;
}
double one_two_five_above(double value) { return 1 / one_two_five_below(1 / value); }

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

double ratio_of(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most / *least;
}

}  // namespace

std::vector<double> linear_ticks(double least, double most, size_t count) {
  if (!(most > least)) return {least};
  const double step = step_of(most - least, count);
  std::vector<double> ticks;
  const double first = std::ceil(least / step - kNear);
  for (size_t i = 0; i <= 2 * count; ++i) {  // a step of numbers so large that adding 1 changes nothing ends, too
    const double tick = (first + static_cast<double>(i)) * step;
    if (tick <= most + step * kNear) ticks.push_back(tick);
  }
  return ticks;
}

std::vector<double> logarithmic_ticks(double least, double most, size_t count) {
  const int first = static_cast<int>(std::floor(std::log10(least) + kNear));
  const int last = static_cast<int>(std::ceil(std::log10(most) - kNear));
  const bool is_near = std::log10(most / least) < 3;
  const int stride = std::max(1, (last - first + static_cast<int>(count) - 1) / static_cast<int>(count));
  std::vector<double> ticks;
  for (int power = first; power <= last; power += stride)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      const bool is_between = tick >= least * (1 - kNear) && tick <= most * (1 + kNear);
      if (is_between && (factor == 1 || is_near)) ticks.push_back(tick);
    }
  return ticks;
}

void Scale::set_ticks(const std::vector<double>& values) {
  for (const double value : values) ticks_.push_back({value, tick_text(value)});
}

Scale Scale::linear(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = std::min(0.0, *low), most = *high > least ? *high : least + 1;
  const double step = step_of((most - least) * 1.02, kTicks);
  Scale scale(Kind::kLinear, std::floor(least / step + kNear) * step, std::ceil(most * 1.02 / step - kNear) * step);
  scale.set_ticks(linear_ticks(scale.least_, scale.most_, kTicks + 2));
  return scale;
}

Scale Scale::logarithmic(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = one_two_five_below(*low * 0.97), most = one_two_five_above(*high * 1.03);
  Scale scale(Kind::kLogarithmic, std::log10(least), std::log10(most));
  scale.set_ticks(logarithmic_ticks(least, most, kTicks));
  return scale;
}

Scale Scale::in_steps(const std::vector<double>& values) {
  Scale scale(Kind::kInSteps, 0, static_cast<double>(values.size()));
  scale.steps_ = values;
  scale.set_ticks(values);
  return scale;
}

namespace {

bool is_far_apart(const std::vector<double>& values) {
  return !values.empty() && all_positive(values) && ratio_of(values) >= kSweepFarApart;
}

// Zero beside values that are far apart.
bool is_spread_with_zero(std::vector<double> values) {
  const size_t zeros = std::erase(values, 0.0);
  return zeros > 0 && is_far_apart(values);
}

}  // namespace

Scale Scale::sweep(const std::vector<double>& values) {
  if (values.size() < kSweepIsLong || is_spread_with_zero(values)) return in_steps(values);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const bool is_logarithmic = is_far_apart(values);
  const double least = is_logarithmic ? std::log10(*low) : *low, most = is_logarithmic ? std::log10(*high) : *high;
  const double margin = 0.03 * (most - least);
  Scale scale(is_logarithmic ? Kind::kLogarithmic : Kind::kLinear, least - margin, most + margin);
  scale.set_ticks(is_logarithmic || values.size() <= kTicks + 2 ? values : linear_ticks(*low, *high, kTicks + 2));
  return scale;
}

Scale Scale::course(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Scale scale(Kind::kLinear, *low, *high > *low ? *high : *low + 1);
  scale.set_ticks(linear_ticks(scale.least_, scale.most_, kTicks + 2));
  return scale;
}

Scale Scale::result(const std::vector<double>& values) {
  if (values.empty()) return linear({0, 1});
  return all_positive(values) && ratio_of(values) >= kFarApart ? logarithmic(values) : linear(values);
}

double Scale::part_of(double value) const {
  if (kind_ == Kind::kInSteps) {
    const auto found = std::find(steps_.begin(), steps_.end(), value);
    return (static_cast<double>(found - steps_.begin()) + 0.5) / most_;
  }
  const double place = kind_ == Kind::kLogarithmic ? std::log10(value) : value;
  return (place - least_) / (most_ - least_);
}

}  // namespace ub::emu
