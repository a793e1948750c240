// SPDX-License-Identifier: Apache-2.0
//
// Marks of points: each series has a shape of its own.
#pragma once

#include <cstdint>

#include "emu_hw/report/svg.h"

namespace ub::emu {

enum class Shape : uint8_t { kCircle, kSquare, kTriangle, kDiamond, kFlippedTriangle };

// Of the series with that number.
constexpr Shape shape_of(size_t series) { return static_cast<Shape>(series % 5); }

// As large as a circle of that radius.
void draw_mark(Svg&, Shape, Svg::Point middle, double radius, std::string_view classes, std::string_view tip = "");
void draw_cross(Svg&, Svg::Point middle, double radius);

}  // namespace ub::emu
