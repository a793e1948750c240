// SPDX-License-Identifier: Apache-2.0
//
// Memory that the daemon shares with one application: sealed memfds that both map. Rings and segments lie in them at
// places that the application chose, so every place is checked here; what lies there is the application's word.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub {

class Areas {
 public:
  // A new area of that size and the descriptor to pass on; 0 and `*error`: none.
  uint32_t add(uint64_t bytes, ipc::Fd* fd, std::string* error);
  // The application has mapped and sealed it: no hole can be made from now on. False: there is none, or it is not.
  bool begin_use(uint32_t area, std::string* error);
  // False: there is none, or it is in use.
  bool drop(uint32_t area);

  // [offset, offset + bytes) of a sealed area, or null. Marks the area as in use until release().
  std::byte* use(uint32_t area, uint64_t offset, uint64_t bytes);
  void release(uint32_t area);

  uint64_t bytes() const { return bytes_; }  // of all areas

 private:
  static constexpr size_t kMostAreas = 256;    // each is a mapping, of which a process may have 65 530
  static constexpr size_t kMostUnsealed = 16;  // each holds a descriptor

  struct Area {
    ipc::Mapping memory;
    ipc::Fd unsealed;  // until it is sealed
    uint32_t users = 0;
  };
  std::map<uint32_t, Area> areas_;
  uint32_t next_ = 1;
  size_t unsealed_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ub
