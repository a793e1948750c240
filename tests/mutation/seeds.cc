// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/seeds.h"

#include "tests/sim/scenario.h"

namespace ub::mut {

std::string run_seed(uint64_t seed) { return sim::run_scenario(sim::Options::draw(seed)).failure; }

}  // namespace ub::mut
