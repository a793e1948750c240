// SPDX-License-Identifier: Apache-2.0
//
// What all parts of a host have: the kernel, the parameters of the run, and how a time of theirs is charged.
#pragma once

#include <string_view>

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class Part {
 public:
  Part(Kernel& kernel, const Parameters& p, Fidelity f) : kernel_(kernel), parameters_(p), fidelity_(f) {}

 protected:
  ~Part() = default;

  // `line`: a literal, the name in the ledger.
  Charge take(Operation& op, std::string_view line, Span span) const {
    return {kernel_, op, line, fidelity_.delay(span)};
  }

  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
};

}  // namespace ub::emu
