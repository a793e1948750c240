// SPDX-License-Identifier: Apache-2.0
// shared_heap.h - memory that this process and the daemon both map, in blocks: rings, and what softub_alloc gives.
//
// Blocks come from areas: sealed memory of the daemon, few and large, since each costs it a mapping and us a
// descriptor. A new area is at least half as large as all others together, so their number grows with the logarithm
// of the memory. Free memory is zero at all times: it is cleared when it comes back, large pieces by giving their
// pages back. Neighbouring free blocks of an area are one.
//
// Memory that others may map, too (allocate_shareable), has an area for itself. Where they may write, the daemon
// reaches it through this process only.
//
// A block lives as long as a shared_ptr to it, the heap as long as any block: the back end may be long gone.
// Thread: any. No lock is held while the daemon is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "lib/ipc/app_call.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub::urma {

// Where areas come from: the daemon, or a test.
class AreaSource {
 public:
  virtual ~AreaSource() = default;
  // Memory of exactly that size, all zero. Empty: refused; a person is told why if that is the `last_word`.
  virtual ipc::Fd add_area(size_t bytes, ipc::AreaUse, bool last_word, uint32_t* id) = 0;
  // It is mapped and sealed: the source may use it now. Not for AreaUse::kWrite.
  virtual bool area_mapped(uint32_t id) = 0;
  virtual void drop_area(uint32_t id) = 0;
};

class SharedHeap : public std::enable_shared_from_this<SharedHeap> {
 public:
  static std::shared_ptr<SharedHeap> create(std::shared_ptr<AreaSource> source);

  // Zeroed; aligned to a page from 4096 bytes on, else to 64 bytes. Null: there is no more.
  std::shared_ptr<std::byte> allocate(size_t bytes);
  // Whole pages that hold nothing else, in an area of this use, which is not kBoth.
  std::shared_ptr<std::byte> allocate_shareable(size_t bytes, ipc::AreaUse);
  // The area of a shareable block that begins there; 0: there is none.
  uint32_t shareable_area(const void* block) const;

  // How the daemon finds a range. `block` keeps the memory from serving somebody else.
  struct Place {
    uint32_t area;
    uint64_t offset;
    bool mapped;  // by the daemon
    std::shared_ptr<std::byte> block;
  };
  // Nothing: the range does not lie in one block.
  std::optional<Place> find(const void* at, size_t bytes);

  // Takes the memory away from a daemon that is held for dead but may live: once we have written to a page, nothing
  // that others write shows in it any more. No write of ours is lost, whenever it happens.
  void detach();

  size_t area_count() const;

 private:
  struct Block {
    size_t bytes;
    uint32_t users;  // 0: free
  };
  struct Area {
    uint32_t id = 0;
    ipc::AreaUse use = ipc::AreaUse::kBoth;
    ipc::Fd memory;
    ipc::Mapping mapping;
    std::map<std::byte*, Block> blocks;  // by address, without gaps
  };
  using Areas = std::map<std::byte*, Area>;  // by address

  explicit SharedHeap(std::shared_ptr<AreaSource> source) : source_(std::move(source)) {}

  bool grow(size_t bytes);
  bool add_area(size_t bytes, bool last_word);
  bool map_area(size_t bytes, ipc::AreaUse, bool last_word, Area* out);
  std::byte* carve(size_t bytes);
  std::shared_ptr<std::byte> share(std::byte* block);
  void let_go(std::byte* block);
  Areas::node_type take_back(std::byte* block);
  Area* area_of(const void* at);

  const std::shared_ptr<AreaSource> source_;
  mutable std::mutex mutex_;  // guards what follows
  Areas areas_;
  // Size first: the best fit is the first that is large enough. Where memory for an entry is missing, a free block is
  // not in here and rests until a neighbour is freed.
  std::set<std::pair<size_t, std::byte*>> free_;
  size_t total_bytes_ = 0;
};

}  // namespace ub::urma
