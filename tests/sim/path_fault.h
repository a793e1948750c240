// SPDX-License-Identifier: Apache-2.0
//
// A fault of one of several paths between two nodes.
#pragma once

#include "lib/base/prng.h"

namespace ub::sim {

class World;

// A path is cut, loses much or is slow for up to 50 ms, in one direction or both.
void fault_path_of(World&, Prng&);

}  // namespace ub::sim
