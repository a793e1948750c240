// SPDX-License-Identifier: Apache-2.0
// read_slots.h - the READs and atomics of one QP that its peer may ask for again, because an answer was lost: as many
// as the QP promised to serve at a time. A READ is read from memory once more. An atomic must not run twice, so its old
// value is kept. InfiniBand Architecture Specification volume 1, 9.7 (duplicate requests).
//
// The slots of a QP lie side by side in a pool of the engine. The ring says which of them is used next.
#pragma once

#include <cstdint>
#include <span>

#include "lib/transport/roce/wire/packet.h"

namespace ub::roce {

inline constexpr uint8_t kMaxReadSlots = 16;  // most slots of a QP; peers are told this limit

struct ReadSlot {
  Psn first_psn;
  uint32_t packets : 24 = 0;  // how many PSNs the answer takes; 0: the slot was never used
  bool atomic : 1 = false;
  bool serving : 1 = false;  // its answer has not left yet
  bool again : 1 = false;    // the answer has left before, and was asked for once more
  uint32_t rkey = 0;         // of a READ
  uint32_t length = 0;       // of a READ
  uint64_t address = 0;      // of a READ
  union {
    uint64_t original = 0;  // of an atomic: the value that was there before
    struct {
      uint32_t skipped;  // of a READ that comes again: packets of the answer that the peer did not ask for again,
      uint32_t asked;    // and bytes that it did ask for
    } part;
  };
};
static_assert(sizeof(ReadSlot) == 32);

struct ReadRing {
  uint8_t slots = 0;  // at most kMaxReadSlots
  uint8_t next = 0;   // the oldest slot, unless it was never used
};

/// Takes a slot for a request that is executed for the first time, and marks it as serving. Null: all slots of the QP
/// are serving such requests, so the peer asked for more than it may.
[[nodiscard]] ReadSlot* add_slot(std::span<ReadSlot> slots, ReadRing& ring, const Packet& packet, uint32_t mtu);

/// Would add_slot() find a slot?
[[nodiscard]] bool has_slot(std::span<const ReadSlot> slots, const ReadRing& ring);

/// The oldest slot whose answer has not left, or null.
[[nodiscard]] ReadSlot* next_to_serve(std::span<ReadSlot> slots, const ReadRing& ring);
/// The same, of those that are newer than slot `behind`.
[[nodiscard]] ReadSlot* next_to_serve(std::span<ReadSlot> slots, const ReadRing& ring, uint32_t behind);

/// The slot of a READ that comes again. It may ask only for the rest of that READ from its PSN on.
[[nodiscard]] ReadSlot* find_read(std::span<ReadSlot> slots, const ReadRing& ring, const Packet& packet, uint32_t mtu);
/// The slot of an atomic that comes again.
[[nodiscard]] ReadSlot* find_atomic(std::span<ReadSlot> slots, const ReadRing& ring, const Packet& packet);

}  // namespace ub::roce
