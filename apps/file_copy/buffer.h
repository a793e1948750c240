// SPDX-License-Identifier: Apache-2.0
//
// Anonymous memory, known to the NIC.
#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/file_copy/nic.h"

namespace ub::apps {

class Buffer {
 public:
  Buffer(Nic&, uint64_t bytes);

  std::byte* data() const { return map_.base; }
  uint64_t bytes() const { return map_.bytes; }
  const SharedMemory& memory() const { return memory_; }

 private:
  struct Map {
    explicit Map(uint64_t size);
    ~Map();
    Map(const Map&) = delete;
    Map& operator=(const Map&) = delete;
    std::byte* base;
    uint64_t bytes;
  };

  Map map_;  // goes after memory_
  SharedMemory memory_;
};

}  // namespace ub::apps
