// SPDX-License-Identifier: Apache-2.0
//
// What the runner of mutants knows of the simulator.
#pragma once

#include <cstdint>
#include <string>

namespace ub::mut {

/// Runs one seed of the swarm, and that of the short programs about order; what failed, empty: nothing.
std::string run_seed(uint64_t seed);

}  // namespace ub::mut
