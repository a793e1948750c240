// SPDX-License-Identifier: Apache-2.0
//
// The store as its server sees it: the memory that clients reach, which units of it are whose, and the keys in order.
// It knows nothing of NICs and connections.
//
// Whoever changes a key: the record is written to a place that nobody uses, the old record is marked as stale, then the
// slot is exchanged. Old records are not given back one by one. When there is no room, a sweep keeps what slots name
// and what clients were granted, and frees the rest.
//
// Thread: one. Clients touch the memory at the same time, as layout.h says; what they write there is checked before it
// is believed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/kv_store/heap.h"
#include "apps/kv_store/index.h"
#include "apps/kv_store/layout.h"
#include "apps/kv_store/messages.h"

namespace ub::kv {

class Store {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // Of what clients replaced the server hears late. So it looks for that when there is no room, but not all the time.
  static constexpr std::chrono::milliseconds kBetweenSweeps{100};

  // `memory`: geometry.bytes() zeroed bytes, aligned to a unit. It must stay.
  Store(std::byte* memory, const Geometry& geometry);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  struct Result {
    Status status = Status::kOk;
    uint64_t slot = 0;  // of the key, in bytes from the first one
    Word word;          // what it says
  };
  Result put(std::string_view key, std::string_view value, Instant now);
  Result insert(std::string_view key, std::string_view value, Instant now);
  Result remove(std::string_view key);
  // The slot of a key, and its word. kNotFound.
  Result find(std::string_view key) const;

  // Calls visit(key, slot, word) for keys from `first` on, in their order, until it returns false.
  template <class Visit>
  void scan(std::string_view first, Visit visit) const {
    for (auto at = keys_.lower_bound(first); at != keys_.end(); ++at) {
      if (!visit(std::string_view(at->first), at->second, Word(index_.word(at->second).load()))) return;
    }
  }

  // Room for records that a client writes itself, each of them at most once, with the epoch in their names.
  struct Grant {
    uint64_t number = 0;
    uint32_t owner = 0, epoch = 0;
    std::vector<Extent> extents;
  };
  // Each extent has room for a record of so many units. nullptr: the heap is full. It is valid until the next call.
  const Grant* grant(uint32_t owner, uint32_t units, Instant now);
  // The owner writes there no more: slots name all that counts. False: it has no such grant.
  bool release(uint32_t owner, uint64_t number);
  // The owner is gone, and none of its requests can reach the memory any more.
  void forget(uint32_t owner);

  struct Stat {
    uint64_t keys, heap_units, free_units, granted_units, sweeps;
  };
  Stat stat() const;

 private:
  Status check(std::string_view key, std::string_view value) const;
  std::optional<uint64_t> slot_of(const KeyHash&, std::string_view key) const;
  Result replace(uint64_t slot, const KeyHash&, std::string_view key, std::string_view value, Instant now);
  Result add(const KeyHash&, std::string_view key, std::string_view value, Instant now);
  Word exchange(uint64_t slot, Word to);
  Word write(const KeyHash&, std::string_view key, std::string_view value, Instant now);
  std::optional<Extent> take(uint32_t units, Instant now);
  std::optional<Extent> take_for_grant(uint32_t units, uint32_t wanted);
  bool sweep_if_useful(Instant now);  // false: it would find nothing new
  void sweep(Instant now);
  bool lies_in_heap(Word) const;
  std::byte* record(Word word) const { return memory_ + geometry_.unit_at(word.unit()); }

  std::byte* memory_;
  Geometry geometry_;
  Index index_;
  Heap heap_;
  std::map<std::string, uint64_t, std::less<>> keys_;  // to slots
  std::vector<Grant> grants_;
  uint64_t grants_made_ = 0;
  uint64_t sweeps_ = 0;
  Instant swept_{};
  bool garbage_ = false;  // since the last sweep the server replaced or removed something, or a grant came back
};

}  // namespace ub::kv
