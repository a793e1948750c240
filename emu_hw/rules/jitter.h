// SPDX-License-Identifier: Apache-2.0
//
// Jitter as the reference has it (rule.jitter): a step takes longer by an exponentially distributed time, whose mean is
// a part of what the step takes. Stretched are the ways over the link, the fetch of a request, the target's transfer to
// or from memory (not of a SEND), the write of the completion, and the landing of data; nothing else is.
#pragma once

#include <string>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/parts/link.h"
#include "emu_hw/parts/part.h"

namespace ub::emu {

class JitterRule : public Part {
 public:
  // Of the operations of one node.
  explicit JitterRule(const Site& site)
      : Part(site), random_(site.parameters.seed, "node " + std::to_string(site.host), "jitter") {}

  // Behind a step that takes so long.
  Charge stretch(Operation& op, Span step) {
    const double mean = parameters_.jitter_factor * static_cast<double>(step.ps);
    const Span more = mean == 0 ? Span{} : cut_to_picoseconds(random_.exponential(mean), "rule.jitter");
    return take(op, "rule.jitter", more);
  }
  Charge stretch_wire(Operation& op, uint32_t bytes) { return stretch(op, time_on_wire(parameters_, bytes)); }

 private:
  RandomStream random_;
};

}  // namespace ub::emu
