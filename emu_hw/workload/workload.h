// SPDX-License-Identifier: Apache-2.0
//
// What a program does: one operation after the other, with the places and the mix of the reference's generators.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

struct Step {
  Verb verb;
  uint32_t bytes;
  uint64_t place = 0;
  bool is_strict = false;
  uint32_t receiver = 0;
};

struct WorkloadOptions {
  uint32_t payload = 64;  // bytes
  bool loads = false;     // by loads and stores where the stack has them, else by READ and WRITE
  double locality = 0;    // pointer chase: how many of 100 hops go to a hot line
  uint32_t strict = 0;    // mixed order: how many of 100 operations are strict
  uint64_t zipf_keys = 65536;
  double zipf_alpha = 0.99;
  uint64_t seed = 1;
};

class Workload {
 public:
  virtual ~Workload() = default;
  // The operation with that number, from 0.
  virtual Step next(uint64_t number) = 0;
};

// pointer_chase, bulk_read, bulk_write, send, fetch_add, compare_swap, graph_walk, mixed_order, zipf_read, scan. Null:
// there is none of that name.
std::unique_ptr<Workload> make_workload(std::string_view name, const Parameters&, const WorkloadOptions&);

}  // namespace ub::emu
