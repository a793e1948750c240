// SPDX-License-Identifier: Apache-2.0
//
// A link as the lumped fidelities see it: propagation, and the time that the bytes take. It is never busy with another
// packet.
#pragma once

#include <cstdint>

#include "emu_hw/parts/part.h"

namespace ub::emu {

class Link : public Part {
 public:
  using Part::Part;

  Charge wire(Operation& op, uint32_t bytes) const {
    const Span serialization{uint64_t{bytes} * 8 * 1000 / parameters_.link_bw};  // bits at Gb/s, in ps
    return take(op, "link", parameters_.link_delay + serialization);
  }
};

}  // namespace ub::emu
