// SPDX-License-Identifier: Apache-2.0
//
// Short programs for the rules of order (order_model.h): one to four requests of one queue, in RM, RC or RC with ROT,
// over all operations, tags and fences. What a program leaves open (sizes, forms of an operation, when receives come,
// what the network and memory do) is its schedule, and is drawn.
//
// The programs are numbered. A seed stands for a batch of them in one world; neighbours differ much, and kOrderSeeds
// seeds from 1 on run each program at least once.
#pragma once

#include <cstdint>

#include "tests/sim/scenario.h"

namespace ub::sim {

constexpr uint32_t kOrderSymbols = 4 * 3 * 2;  // WRITE, READ, atomic or SEND; NO, RO or SO; with or without a fence
constexpr uint32_t kLongestProgram = 4;
constexpr uint64_t programs_up_to(uint32_t length) {
  return length == 0 ? 0 : kOrderSymbols * (1 + programs_up_to(length - 1));
}
constexpr uint32_t kOrderModes = 3;  // RM; RC, in ROL where the instances make channels of that; RC in ROT
constexpr uint64_t kOrderPrograms = kOrderModes * programs_up_to(kLongestProgram);
constexpr uint32_t kProgramsPerSeed = 64;
constexpr uint64_t kOrderSeeds = (kOrderPrograms + kProgramsPerSeed - 1) / kProgramsPerSeed;

RunResult run_order_programs(uint64_t seed, RunWishes = {});

}  // namespace ub::sim
