// SPDX-License-Identifier: Apache-2.0
//
// A point of a model, and what is measured there.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "emu_hw/models/model.h"

namespace ub::emu {

inline Point point_of(const std::string& stack, const Settings& set, const std::string& workload) {
  Point point{stack, workload, {}};
  for (const auto& [name, text] : set) EXPECT_EQ(set_parameter(point.parameters, name, text), "");
  return point;
}

inline double value(const std::string& model, const std::string& measure, const std::string& stack,
                    const Settings& set = {}, const std::string& workload = "") {
  const PointResult result = find_model(model)->run(point_of(stack, set, workload));
  EXPECT_EQ(result.invalid, "");
  return result.values.at(measure);
}

// Why the model does not run it; "none": it does.
inline std::string refusal_of(const std::string& model, const std::string& stack, const Settings& set = {},
                              const std::string& workload = "") {
  try {
    find_model(model)->run(point_of(stack, set, workload));
  } catch (const BadPoint& error) {
    return error.what();
  }
  return "none";
}

}  // namespace ub::emu
