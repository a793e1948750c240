// SPDX-License-Identifier: Apache-2.0
//
// What the files of paths.h share: the numbers of packets on a path, departures by PSN, and the terms of a flow.
#pragma once

#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/paths.h"
#include "lib/transport/tp/recovery.h"

namespace ub::tp {

inline Psn psn_of_number(uint32_t number) { return Psn(number & (Psn::kHalf * 2 - 1)); }
inline uint32_t number_of(const Path& p, const Departure& d) {
  return p.newest - static_cast<uint16_t>(static_cast<uint16_t>(p.newest) - d.number);
}
inline Departure& departure_of(State& s, const Channel& ch, Psn psn) {
  return block_of(s, ch).departures[recovery_index(psn)];
}
inline cc::Path terms_of(const State& s, const Channel& ch, const Path& p) { return terms_of_flow(s, ch, p.in_flight); }
inline Psn next_on(const Path& p) { return psn_of_number(p.newest + 1); }

}  // namespace ub::tp
