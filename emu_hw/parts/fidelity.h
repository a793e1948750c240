// SPDX-License-Identifier: Apache-2.0
//
// What the lumped fidelities do differently. Everything else is the same code.
#pragma once

#include "emu_hw/kernel/clock_domain.h"

namespace ub::emu {

struct Fidelity {
  bool cuts_delays;          // each delay to whole nanoseconds
  bool charges_more_flits;   // of a packet beyond its first flit
  bool charges_misses;       // of the CPU's caches, before the operation goes on
  bool charges_gates;        // of order
  bool has_blue_flame;       // a RoCE NIC takes short requests out of the doorbell
  bool has_two_node_spills;  // UB: endpoints are contexts, too, and a context is fetched from local memory

  constexpr Span delay(Span exact) const { return cuts_delays ? cut_to_nanoseconds(exact) : exact; }
};

inline constexpr Fidelity kTwoNode{true, true, true, true, true, true};
inline constexpr Fidelity kCluster{false, false, false, false, false, false};

}  // namespace ub::emu
