// SPDX-License-Identifier: Apache-2.0
// ring.h - the application's ends of the rings of lib/base/work_queue.h: memory, producing, consuming.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/base/work_queue.h"

namespace ub::urma {

// Indices and slots of one queue, in memory that the back end reaches.
class RingMemory {
 public:
  // False: out of memory.
  bool allocate(uint32_t slot_count);
  void release() { memory_.reset(); }

  QueueIndices* indices() const { return reinterpret_cast<QueueIndices*>(memory_.get()); }
  template <class Slot>
  Slot* slots() const {
    static_assert(sizeof(Slot) == kSlotBytes);
    return reinterpret_cast<Slot*>(memory_.get() + sizeof(QueueIndices));
  }

 private:
  std::shared_ptr<std::byte> memory_;
};

constexpr uint32_t round_up_pow2(uint32_t n) {
  uint32_t power = 1;
  while (power < n) power <<= 1;
  return power;
}

// Producer of a ring. Indices of the consumer are read again only when the remembered ones say "full".
template <class Slot>
struct RingProducer {
  Slot* slots = nullptr;
  QueueIndices* indices = nullptr;
  uint32_t mask = 0;      // slot count - 1
  uint32_t produced = 0;  // ahead of indices->produced until publish()
  uint32_t consumed_seen = 0;

  bool has_room(uint32_t wanted) {
    if (produced + wanted - consumed_seen <= mask + 1) [[likely]]
      return true;
    consumed_seen = indices->consumed.load(std::memory_order_acquire);
    return produced + wanted - consumed_seen <= mask + 1;
  }
  // Slots that must be skipped so that an element of `count` slots does not wrap.
  uint32_t skip_before(uint32_t count) const {
    uint32_t to_end = mask + 1 - (produced & mask);
    return count > to_end ? to_end : 0;
  }
  Slot& at(uint32_t index) const { return slots[index & mask]; }
  void publish() { indices->produced.store(produced, std::memory_order_release); }
};

// Room for one send element of `count` contiguous slots, or null: full. The caller fills it, then adds
// `count` to `produced`.
inline Wqe* reserve(RingProducer<Wqe>& ring, uint32_t count) {
  uint32_t skip = ring.skip_before(count);
  if (!ring.has_room(skip + count)) return nullptr;
  if (skip != 0) [[unlikely]] {
    Wqe& filler = ring.at(ring.produced);
    filler.op = WrOp::kSkip;
    filler.flags = 0;
    filler.slots = static_cast<uint8_t>(skip);
    ring.produced += skip;
  }
  return &ring.at(ring.produced);
}

// Slots of a send ring: every request of `depth` may take `largest`, and a skip may waste one more of them.
constexpr uint64_t send_ring_slots(uint32_t depth, uint32_t largest) {
  return static_cast<uint64_t>(depth) * largest + largest;
}

}  // namespace ub::urma
