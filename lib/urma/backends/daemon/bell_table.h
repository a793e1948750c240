// SPDX-License-Identifier: Apache-2.0
// bell_table.h - the doorbell of each queue, by its id: one load on the way of every post.
// Thread: any; an object's entry is written before anybody knows its id.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/urma/backends/private_memory.h"

namespace ub::urma {

class BellTable {
 public:
  // False: out of memory. Four MiB of addresses, touched where there are ids.
  bool open() {
    memory_ = private_memory(kIds * sizeof(uint32_t));
    return memory_ != nullptr;
  }
  void set(uint32_t id, uint32_t bell) {
    if (id < kIds) __atomic_store_n(&table()[id], bell, __ATOMIC_RELAXED);
  }
  // Unknown ids have bell 0, which is nobody's.
  uint32_t operator[](uint32_t id) const { return id < kIds ? __atomic_load_n(&table()[id], __ATOMIC_RELAXED) : 0; }

 private:
  static constexpr uint32_t kIds = 1 << 20;  // of jettys and JFSs, and more than there are JFCs

  uint32_t* table() const { return reinterpret_cast<uint32_t*>(memory_.get()); }

  std::shared_ptr<std::byte> memory_;
};

}  // namespace ub::urma
