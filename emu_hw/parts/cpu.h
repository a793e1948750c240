// SPDX-License-Identifier: Apache-2.0
//
// The CPU of a host: the user library, and building and finding of work requests and completions.
#pragma once

#include "emu_hw/parts/part.h"

namespace ub::emu {

class Cpu : public Part {
 public:
  using Part::Part;

  Charge post_lib(Operation& op) const { return take(op, "cpu.post_lib", parameters_.verb_post_lib); }
  Charge build(Operation& op) const { return take(op, "cpu.build", parameters_.wqe_construct); }
  Charge poll_onchip(Operation& op) const { return take(op, "cpu.poll", parameters_.cqe_poll_onchip); }
  Charge poll_host(Operation& op) const { return take(op, "cpu.poll", parameters_.cqe_poll_host); }
  Charge poll_lib(Operation& op) const { return take(op, "cpu.poll_lib", parameters_.verb_poll_lib); }
  // RoCE: the receiving program finds out which of its endpoints a message is for, if there are several.
  Charge dispatch(Operation& op) const {
    return take(op, "cpu.dispatch", parameters_.remote_jetties > 1 ? parameters_.roce_target_dispatch : Span{});
  }
  // The kernel's part of a page fault.
  Charge take_fault(Operation& op, Span kernel) const { return take(op, "cpu.fault", kernel); }
};

}  // namespace ub::emu
