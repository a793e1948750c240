// SPDX-License-Identifier: Apache-2.0
//
// The CPU of a host: the user library, and building and finding of work requests and completions.
#pragma once

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class Cpu {
 public:
  Cpu(Kernel& kernel, const Parameters& p, Fidelity f) : kernel_(kernel), parameters_(p), fidelity_(f) {}

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

 private:
  Charge take(Operation& op, std::string_view part, Span span) const {
    return {kernel_, op, part, fidelity_.delay(span)};
  }

  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
};

}  // namespace ub::emu
