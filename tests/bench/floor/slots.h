// SPDX-License-Identifier: Apache-2.0
//
// Rings of 64-byte slots for one writer and one reader: payload and sequence in one cache line, which is what the
// shared-memory wire can at best reach. The benches keep less under way than a ring holds, so nobody asks for room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ub::floor {

constexpr size_t kSlots = 512;
constexpr uint64_t kStop = ~uint64_t{0};

struct alignas(64) Slot {
  char payload[56];
  std::atomic<uint64_t> sequence;  // n + 1 when message n is in it, written last
};
static_assert(sizeof(Slot) == 64);

using Ring = Slot[kSlots];
using Payload = char[sizeof(Slot::payload)];

// One end of a ring.
class RingWriter {
 public:
  explicit RingWriter(Ring& ring) : ring_(ring) {}
  void put(const Payload& payload) {
    Slot& slot = ring_[n_++ % kSlots];
    memcpy(slot.payload, payload, sizeof(payload));
    slot.sequence.store(n_, std::memory_order_release);
  }

 private:
  Ring& ring_;
  uint64_t n_ = 0;
};

class RingReader {
 public:
  explicit RingReader(Ring& ring) : ring_(ring) {}
  bool take(Payload& payload) {
    Slot& slot = ring_[n_ % kSlots];
    if (slot.sequence.load(std::memory_order_acquire) != n_ + 1) return false;
    memcpy(payload, slot.payload, sizeof(payload));
    ++n_;
    return true;
  }

 private:
  Ring& ring_;
  uint64_t n_ = 0;
};

}  // namespace ub::floor
