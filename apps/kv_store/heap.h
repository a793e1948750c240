// SPDX-License-Identifier: Apache-2.0
//
// Which units of the heap are free, as the server knows it. Places are taken one by one and never given back: a sweep
// keeps what its caller names and frees all else. Each sweep begins an epoch.
//
// Thread: one. It touches no memory of the heap.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/kv_store/layout.h"
#include "apps/kv_store/messages.h"

namespace ub::kv {

class Heap {
 public:
  explicit Heap(uint64_t units);

  uint32_t epoch() const { return epoch_; }
  uint64_t free_units() const { return free_; }

  // At least so many units in a row, at most `most`; in a fragmented heap not many more than are needed. Nothing: there
  // is no such place before the next sweep.
  std::optional<Extent> take(uint32_t units, uint32_t most);

  // begin_sweep(), then keep() for all that is in use, then end_sweep().
  void begin_sweep();
  void keep(Extent);
  void end_sweep();

 private:
  // Places of 2^n units and more, and less than twice as many.
  using Holes = std::vector<Extent>;

  void add(Extent);
  std::optional<Extent> take_hole(uint32_t units);
  static std::optional<Extent> search(Holes&, uint32_t units, size_t looks);

  uint64_t units_, free_ = 0;
  uint32_t epoch_ = 0;
  std::array<Holes, Word::kUnitBits + 1> holes_;
  std::vector<uint64_t> kept_;  // a bit for each unit, while a sweep runs
};

}  // namespace ub::kv
