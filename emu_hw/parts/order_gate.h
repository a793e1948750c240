// SPDX-License-Identifier: Apache-2.0
//
// What it costs to put work requests in order before they leave.
#pragma once

#include "emu_hw/parts/part.h"

namespace ub::emu {

class OrderGate : public Part {
 public:
  using Part::Part;

  // UB asks for an order with single requests, unless all have one.
  Charge pass_ub(Operation& op) const {
    if (parameters_.ub_order == UbOrder::kAlways) return pass_roce(op);
    return pass(op, op.is_strict ? parameters_.ub_so_gating : Span{});
  }
  // RoCE has no request without an order.
  Charge pass_roce(Operation& op) const { return pass(op, parameters_.roce_so_overhead); }

 private:
  Charge pass(Operation& op, Span cost) const {
    return take(op, "order.gate", fidelity_.charges_gates ? cost : Span{});
  }
};

}  // namespace ub::emu
