// SPDX-License-Identifier: Apache-2.0
// read_slots.h - the READs and atomics of one QP that its peer may ask for again, because an answer was lost: as many
// as the QP promised to serve at a time. A READ is read again from memory, an atomic has its old value kept: it must not
// run twice. InfiniBand Architecture Specification volume 1, 9.7 (duplicate requests).
//
// The slots of a QP lie side by side in a pool of the engine; the ring says where in them the next one goes.
#pragma once

#include <cstdint>
#include <span>

#include "lib/transport/roce/wire/packet.h"

namespace ub::roce {

inline constexpr uint8_t kMaxReadSlots = 16;  // of a QP; peers are told so

struct ReadSlot {
  Psn first_psn;
  uint32_t packets : 24 = 0;  // PSNs that the answer takes; 0: never used
  bool atomic : 1 = false;
  bool serving : 1 = false;  // its answer has not left yet
  bool again : 1 = false;    // it left before, and was asked for once more
  uint32_t rkey = 0;         // READ
  uint32_t length = 0;       // READ
  uint64_t address = 0;      // READ
  union {
    uint64_t original = 0;  // atomic: what was there before
    struct {
      uint32_t skipped;  // READ: packets of the answer that the peer did not ask for once more,
      uint32_t asked;    // and bytes that it did
    } part;
  };
};
static_assert(sizeof(ReadSlot) == 32);

struct ReadRing {
  uint8_t slots = 0;  // at most kMaxReadSlots
  uint8_t next = 0;   // the oldest, unless it was never used
};

/// A slot for a request that is executed for the first time, marked as serving. Null: as many as the QP has are being
/// served for the first time, so the peer asked for more than it may.
[[nodiscard]] ReadSlot* add_slot(std::span<ReadSlot> slots, ReadRing& ring, const Packet& packet, uint32_t mtu);

/// Would add_slot() have one?
[[nodiscard]] bool has_slot(std::span<const ReadSlot> slots, const ReadRing& ring);

/// The oldest slot whose answer has not left, or null.
[[nodiscard]] ReadSlot* next_to_serve(std::span<ReadSlot> slots, const ReadRing& ring);
/// The same, of those that are newer than slot `behind`.
[[nodiscard]] ReadSlot* next_to_serve(std::span<ReadSlot> slots, const ReadRing& ring, uint32_t behind);

/// The slot of a READ that comes again, if it asks for nothing but what is left of the same READ from its PSN on.
[[nodiscard]] ReadSlot* find_read(std::span<ReadSlot> slots, const ReadRing& ring, const Packet& packet, uint32_t mtu);
/// The slot of an atomic that comes again.
[[nodiscard]] ReadSlot* find_atomic(std::span<ReadSlot> slots, const ReadRing& ring, const Packet& packet);

}  // namespace ub::roce
