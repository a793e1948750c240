// SPDX-License-Identifier: Apache-2.0
//
// The rings that a recorded Core has instead of those of applications (docs/recording-design.md). A recorder copies
// between the two around each turn of the Core; a replay has the shadows alone, and puts into them what was recorded.
//
// Thread: the owner of the Core.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/work_queue.h"
#include "lib/ipc/placed_memory.h"
#include "lib/record/digest.h"
#include "lib/transport/core_types.h"
#include "lib/transport/resource/owner_limits.h"

namespace ub::record {

enum class RingKind : uint8_t { kNone, kSend, kReceive, kCompletion };

// One ring, in memory of its own (`slots` and so on), and that of the application (`real_...`, which a replay does not
// have). Plain data: the rings are part of an image.
struct Ring {
  RingKind kind = RingKind::kNone;
  bool completes_early = false;  // SendQueueConfig::completes_early
  uint32_t id = 0;               // of the jetty, JFS, queue pair or JFR; the number of the JFC
  uint32_t slot_count = 0;

  std::byte* slots = nullptr;
  std::byte* source = nullptr;  // SendQueueConfig::source
  QueueIndices* indices = nullptr;
  std::byte* work = nullptr;
  size_t work_bytes = 0;
  OwnerLimits* limits = nullptr;

  std::byte* real_slots = nullptr;
  std::byte* real_source = nullptr;
  QueueIndices* real_indices = nullptr;
  std::byte* real_work = nullptr;
  OwnerLimits* real_limits = nullptr;

  // What applications had done, and what they have been told of, when it was last looked at.
  uint32_t produced = 0, consumed = 0, armed = 0, armed_at = 0;
  uint32_t told_produced = 0, told_consumed = 0, told_retired = 0;
  uint32_t digested_consumed = 0, digested_retired = 0;  // of a send queue: what is part of a digest
  uint64_t rate = 0;

  // How elements are written: as differences to `like`, the last one. Of those that are as they should be all is left
  // out that no Core reads but as payload; `is_raw`: one was not, so nobody knows where those behind it begin.
  alignas(8) std::byte like[kSlotBytes] = {};
  bool is_raw = false;

  // The slots that the Core has not given back. A hostile application may have posted impossible ones.
  uint32_t slots_in_use() const {
    const uint32_t used = produced - indices->consumed.load(std::memory_order_relaxed);
    return used <= slot_count ? used : 0;
  }
  // What an application writes elements into.
  std::byte* elements() const { return source != nullptr ? source : slots; }
  const std::byte* real_elements() const { return real_source != nullptr ? real_source : real_slots; }
  std::byte* element(uint32_t slot) const { return elements() + size_t{slot & (slot_count - 1)} * kSlotBytes; }
};

class Shadows {
 public:
  static constexpr size_t kBytes = size_t{1} << 34;  // of addresses; pages are touched as they are used

  // False: there is no memory.
  bool begin() { return memory_.take(kBytes); }
  bool begin_at(uint64_t address) { return memory_.take_at(address, kBytes); }
  const ipc::PlacedMemory& memory() const { return memory_; }
  std::span<const std::byte> used() const { return {memory_.data(), used_}; }

  // Rings for a new object, zeroed; their number. 0: there is no memory. `real` has the application's.
  uint32_t lend(const Ring& real);
  void give_back(uint32_t ring);
  // The application's rings get what the Core has done in ours, besides what tell() tells.
  void return_contents(const Ring&);
  // Between two turns: of elements that no Core will read any more nothing stays, as they may have inline payload.
  void forget_retired();
  // The ring is what a replay was told.
  void put(uint32_t ring, const Ring&);
  // The same, and its memory becomes zero. False: that is not ours.
  bool put_zeroed(uint32_t ring, const Ring&);
  Ring& operator[](uint32_t ring) { return rings_[ring]; }
  uint32_t size() const { return static_cast<uint32_t>(rings_.size()); }
  // The numbers of the rings of a kind, in order.
  std::span<const uint32_t> of(RingKind kind) const { return by_kind_[static_cast<size_t>(kind)]; }
  // The ring belongs to that object from now on.
  void name(uint32_t ring, uint32_t id);
  // The ring of an object; 0: none.
  uint32_t find(RingKind, uint32_t id) const;

  // Tells applications what the Core has done to their rings, in the order that they rely on: if the process is killed
  // within it, whoever takes over a ring finds it as a Core leaves it. (Of requests that complete early those of one
  // turn are marked together.) Returns the digest.
  Digest tell();

  // Has an application posted a receive to a JFR while that went to ERROR, and not seen it? Then somebody has to take
  // another turn.
  bool take_look_again() { return std::exchange(look_again_, false); }

  // The bytes of the application's memory that these bytes of a shadow stand for; others are as they are. What the Core
  // has fetched is put there first.
  const std::byte* real_of(const std::byte* p, size_t bytes) const;

  std::vector<Ring>& all() { return rings_; }

 private:
  std::byte* allocate(size_t bytes);
  void set(uint32_t number, const Ring&);
  std::vector<uint32_t>& numbers_of(RingKind kind) { return kind == RingKind::kCompletion ? by_jfc_ : by_queue_; }
  void tell_completion(Ring& jfc, std::span<const std::byte> completion);
  void tell_sent(Ring&, Digest&);
  void tell_completions(Ring&, Digest&);
  void tell_received(Ring&, Digest&);
  void tell_reported(const Ring&);

  ipc::PlacedMemory memory_;
  size_t used_ = 0;
  bool look_again_ = false;
  std::vector<Ring> rings_{1};  // number 0 is none
  std::vector<uint32_t> by_kind_[4];
  std::vector<uint32_t> free_rings_;
  std::vector<uint32_t> by_queue_, by_jfc_;  // numbers of rings, by the ids of send queues and JFRs, and by JFC
  std::map<size_t, std::vector<std::byte*>> free_;  // by size
  std::map<OwnerLimits*, std::pair<OwnerLimits*, uint32_t>> limits_;  // by the application's: ours, and its users
};

}  // namespace ub::record
