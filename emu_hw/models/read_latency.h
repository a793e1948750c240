// SPDX-License-Identifier: Apache-2.0
//
// What one load (stack ldst) or READ takes between two hosts that do nothing else: the base that formulas add to.
#pragma once

#include "emu_hw/models/model.h"

namespace ub::emu {

inline double read_latency_ns(const std::string& stack, Parameters p) {
  p.operations = p.in_flight = p.active_connections = 1;
  const PointResult result = run_two_node({stack, "pointer_chase", p});
  if (!result.invalid.empty()) throw BadPoint(stack + ": " + result.invalid);
  return result.values.at("mean_ns");
}

}  // namespace ub::emu
