// SPDX-License-Identifier: Apache-2.0
//
// What is around the data of a plot: its title, a legend, and two axes with ticks, grid and titles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emu_hw/report/scale.h"
#include "emu_hw/report/svg.h"

namespace ub::emu {

struct LegendEntry {
  std::string name;
  std::string classes;                                  // of its sample
  std::function<void(Svg&, Svg::Point middle)> sample;  // draws it, as wide as kSampleWidth
};
constexpr double kSampleWidth = 26;

class Frame {
 public:
  struct Texts {
    std::string title, x, y;
  };
  Frame(const Texts&, const std::vector<LegendEntry>&, Scale x, Scale y);

  Svg& svg() { return svg_; }
  const Scale& x() const { return x_; }
  Svg::Point at(double x, double y) const { return {x_of(x), y_of(y)}; }
  double x_of(double value) const { return left_ + x_.part_of(value) * (right_ - left_); }
  double y_of(double value) const { return bottom_ - y_.part_of(value) * (bottom_ - top_); }
  double width() const { return right_ - left_; }
  double x_end() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }

 private:
  void draw_legend(const std::vector<LegendEntry>&, double y);
  void draw_x_axis(const std::string& title);
  void draw_y_axis(const std::string& title);

  const Scale x_, y_;
  Svg svg_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

// How tall a legend is, in a picture of that width; and where each of its entries begins.
std::vector<Svg::Point> legend_places(const std::vector<std::string>& names, double width, double* height);

}  // namespace ub::emu
