// SPDX-License-Identifier: Apache-2.0
//
// What it costs to put work requests in order before they leave.
#pragma once

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class OrderGate {
 public:
  OrderGate(Kernel& kernel, const Parameters& p, Fidelity f) : kernel_(kernel), parameters_(p), fidelity_(f) {}

  // UB asks for an order with single requests.
  Charge pass_ub(Operation& op) const {
    return {kernel_, op, "order.gate", op.is_strict ? fidelity_.delay(parameters_.ub_so_gating) : Span{}};
  }
  // RoCE has no request without an order.
  Charge pass_roce(Operation& op) const {
    return {kernel_, op, "order.gate", fidelity_.delay(parameters_.roce_so_overhead)};
  }

 private:
  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
};

}  // namespace ub::emu
