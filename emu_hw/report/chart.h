// SPDX-License-Identifier: Apache-2.0
//
// Plots: lines over a sweep, or bars if it has few values, with what was published beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/report/svg.h"

namespace ub::emu {

struct ChartPoint {
  double x, y;            // y: NaN if it is invalid
  double published;       // NaN: nothing is
  bool is_off = false;    // further from it than is allowed
  std::string note = {};  // written beside it
  std::string tip = {};   // shown when a pointer rests on it
};

struct ChartSeries {
  std::string name;
  size_t colour = 0;
  size_t dash = 0;  // how many before it have the same colour
  std::vector<ChartPoint> points;
};

struct Chart {
  std::string title;
  std::string x, y;  // titles of the axes, with units
  std::vector<ChartSeries> series;
};

// At least one series with a point.
Svg drawn(const Chart&);

// Lines without marks: courses in time, distributions. Nothing is published of them.
Svg drawn_as_curves(const Chart&);

}  // namespace ub::emu
