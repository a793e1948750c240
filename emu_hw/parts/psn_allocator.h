// SPDX-License-Identifier: Apache-2.0
//
// Packet numbers of a channel that several jettys share. By a rule of the reference (rule.psn_sharing) each of the
// other jettys is served before, whether it sends or not.
#pragma once

#include "emu_hw/parts/part.h"

namespace ub::emu {

class PsnAllocator : public Part {
 public:
  using Part::Part;

  Charge allocate(Operation& op) const {
    const Span each = fidelity_.delay(parameters_.tp_psn_service);
    return wait(op, "psn", each * (parameters_.jetties_per_tp - 1));
  }
};

}  // namespace ub::emu
