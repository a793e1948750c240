// SPDX-License-Identifier: Apache-2.0
//
// A link as the lumped fidelities see it: propagation, and the time that the bytes take. It is never busy with another
// packet.
#pragma once

#include <cstdint>

#include "emu_hw/parts/part.h"

namespace ub::emu {

inline Span time_of_bytes(const Parameters& p, uint32_t bytes) {
  return {uint64_t{bytes} * 8 * 1000 / p.link_bw};  // bits at Gb/s, in ps
}
inline Span time_on_wire(const Parameters& p, uint32_t bytes) { return p.link_delay + time_of_bytes(p, bytes); }

class Link : public Part {
 public:
  using Part::Part;

  Charge wire(Operation& op, uint32_t bytes) const {
    return take(op, "link", time_on_wire(parameters_, bytes));
  }
};

}  // namespace ub::emu
