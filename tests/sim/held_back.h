// SPDX-License-Identifier: Apache-2.0
//
// Whether a Core knows who waits for its peers' answers, found out from its tables and the rings of the applications
// once it has driven until nothing was left: a sleeper that thinks that nobody does is not rung for them.
#pragma once

#include <string>

#include "lib/transport/core_state.h"

namespace ub::sim {

// What it takes for held back or not and should not; empty: nothing.
std::string held_back_fault(const CoreState&);

}  // namespace ub::sim
