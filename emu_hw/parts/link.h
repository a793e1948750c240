// SPDX-License-Identifier: Apache-2.0
//
// A link as the lumped fidelities see it: propagation, and the time that the bytes take. It is never busy with another
// packet.
#pragma once

#include <cstdint>

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class Link {
 public:
  Link(Kernel& kernel, const Parameters& p, Fidelity f) : kernel_(kernel), parameters_(p), fidelity_(f) {}

  Charge wire(Operation& op, uint32_t bytes) const {
    const Span serialization{uint64_t{bytes} * 8 * 1000 / parameters_.link_bw};  // bits at Gb/s, in ps
    return {kernel_, op, "link", fidelity_.delay(parameters_.link_delay + serialization)};
  }

 private:
  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
};

}  // namespace ub::emu
