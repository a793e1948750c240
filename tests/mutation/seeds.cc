// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/seeds.h"

#include "tests/sim/order_programs.h"
#include "tests/sim/scenario.h"

namespace ub::mut {

std::string run_seed(uint64_t seed) {
  const std::string failure = sim::run_scenario(sim::Options::draw(seed)).failure;
  return failure.empty() ? sim::run_order_programs(seed).failure : failure;
}

}  // namespace ub::mut
