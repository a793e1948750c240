// SPDX-License-Identifier: Apache-2.0
//
// Where on an axis a value is, and which values are written there.
#pragma once

#include <string>
#include <vector>

namespace ub::emu {

struct Tick {
  double value;
  std::string text;
};

// 1, 2 or 5 times a power of ten apart, at most so many, between the two.
std::vector<double> linear_ticks(double least, double most, size_t count);
// Powers of ten between the two; with 2 and 5 times those if the two are near each other, and thinned if they are far.
std::vector<double> logarithmic_ticks(double least, double most, size_t count);

class Scale {
 public:
  enum class Kind {
    kLinear,
    kLogarithmic,
    kInSteps,  // the values in their order, all as far apart
  };

  // From zero to a tick beyond the values, or from a little below them to beyond if all are negative.
  static Scale linear(const std::vector<double>& values);
  // Whole steps of ticks around the values, which are positive.
  static Scale logarithmic(const std::vector<double>& values);
  // With a tick for each value.
  static Scale in_steps(const std::vector<double>& values);
  // Of what is swept: in steps if the values are few, or spread over decades and zero; else by how far apart they are.
  static Scale sweep(const std::vector<double>& values);
  // Of what is measured: logarithmic if the values are far apart.
  static Scale result(const std::vector<double>& values);
  // Of a course in time: from the first value to the last.
  static Scale course(const std::vector<double>& values);

  Kind kind() const { return kind_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  // 0 at the beginning of the axis, 1 at its end.
  double part_of(double value) const;

 private:
  Scale(Kind kind, double least, double most) : kind_(kind), least_(least), most_(most) {}
  void set_ticks(const std::vector<double>& values);

  Kind kind_;
  double least_, most_;  // of values; their logarithms if it is logarithmic
  std::vector<double> steps_;
  std::vector<Tick> ticks_;
};

}  // namespace ub::emu
