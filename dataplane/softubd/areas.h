// SPDX-License-Identifier: Apache-2.0
//
// Memory that the daemon shares with one application: sealed memfds that both map. Rings and segments lie in them at
// places that the application chose, so every place is checked here; what lies there is the application's word.
//
// Others may map an area, too, if the application wants that (ipc::AreaUse). Where they may write, the daemon does not
// map it: a thread that touches a page waits while somebody makes a hole there.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/ipc/app_call.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub {

class Areas {
 public:
  // A new area of that size and the descriptor to pass on; 0 and `*error`: none.
  uint32_t add(uint64_t bytes, ipc::AreaUse, ipc::Fd* fd, std::string* error);
  // The application has mapped and sealed it: no hole can be made from now on. False: there is none, or it is not.
  bool begin_use(uint32_t area, std::string* error);
  // False: there is none, or it is in use.
  bool drop(uint32_t area);

  // [offset, offset + bytes) of a sealed area, or null. Marks the area as in use until release().
  std::byte* use(uint32_t area, uint64_t offset, uint64_t bytes);
  // The same for an area that the daemon does not map. False: there is none.
  bool use_unmapped(uint32_t area);
  void release(uint32_t area);

  // What others may map if a segment of [offset, offset + bytes) permits it: all of the area, so the segment must be
  // all of it but for the rest of the last page.
  struct Share {
    int memory;
    bool writable;
  };
  std::optional<Share> share_of(uint32_t area, uint64_t offset, uint64_t bytes) const;
  // The memory of an area that others may map; -1: there is none.
  int shared_memory(uint32_t area) const;

  uint64_t bytes() const { return bytes_; }  // of all areas

 private:
  static constexpr size_t kMostAreas = 256;    // each is a mapping, of which a process may have 65 530
  static constexpr size_t kMostUnsealed = 16;  // each holds a descriptor
  static constexpr size_t kMostShared = 64;    // the same

  struct Area {
    ipc::Mapping memory;  // unless others may write
    ipc::Fd descriptor;   // until it is sealed; that of a shared one stays
    ipc::AreaUse use = ipc::AreaUse::kBoth;
    bool sealed = false;
    uint64_t bytes = 0;
    uint32_t users = 0;
    bool is_shared() const { return use != ipc::AreaUse::kBoth; }
    bool waits_for_seal() const { return use != ipc::AreaUse::kWrite && !sealed; }
  };
  bool has_room(ipc::AreaUse, std::string* error) const;
  std::map<uint32_t, Area> areas_;
  uint32_t next_ = 1;
  size_t unsealed_ = 0;
  size_t shared_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ub
