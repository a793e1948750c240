// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/marks.h"

namespace ub::emu {

void draw_mark(Svg& svg, Shape shape, Svg::Point middle, double radius, std::string_view classes,
               std::string_view tip) {
  const auto [x, y] = middle;
  const double side = radius * 0.9, tall = radius * 1.25;
  switch (shape) {
    case Shape::kCircle:
      return svg.circle(middle, radius, classes, tip);
    case Shape::kSquare:
      return svg.rectangle({x - side, y - side}, 2 * side, 2 * side, classes, tip);
    case Shape::kTriangle:
      return svg.polygon({{x - tall, y + side}, {x + tall, y + side}, {x, y - tall}}, classes, tip);
    case Shape::kDiamond:
      return svg.polygon({{x - tall, y}, {x, y - tall}, {x + tall, y}, {x, y + tall}}, classes, tip);
    case Shape::kFlippedTriangle:
      return svg.polygon({{x - tall, y - side}, {x + tall, y - side}, {x, y + tall}}, classes, tip);
  }
}

void draw_cross(Svg& svg, Svg::Point middle, double radius) {
  const auto [x, y] = middle;
  svg.line({x - radius, y - radius}, {x + radius, y + radius}, "cross");
  svg.line({x - radius, y + radius}, {x + radius, y - radius}, "cross");
}

}  // namespace ub::emu
