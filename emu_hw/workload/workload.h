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
  uint32_t peer = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;
  // The operation with that number, from 0.
  virtual Step next(uint64_t number) = 0;
};

// pointer_chase, bulk_read, bulk_write, send, fetch_add, compare_swap, lock, graph_walk, hash_probe, mixed_order,
// zipf_read, ycsb_a, scan. Null: there is none of that name. `loads`: it reads and stores by loads and stores where the
// others have READ and WRITE (has_loads()).
std::unique_ptr<Workload> make_workload(std::string_view name, const Parameters&, bool loads);

}  // namespace ub::emu
