// SPDX-License-Identifier: Apache-2.0
//
// What the lumped fidelities do differently. Everything else is the same code.
#pragma once

#include "emu_hw/kernel/clock_domain.h"

namespace ub::emu {

struct Fidelity {
  bool cuts_delays;        // each delay to whole nanoseconds
  bool charges_more_flits;  // of a packet beyond its first flit

  constexpr Span delay(Span exact) const { return cuts_delays ? cut_to_nanoseconds(exact) : exact; }
};

inline constexpr Fidelity kTwoNode{true, true};

}  // namespace ub::emu
