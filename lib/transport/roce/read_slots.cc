// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/read_slots.h"

#include "lib/base/assert.h"
#include "lib/transport/roce/responder.h"

namespace ub::roce {
namespace {

/// The slot whose answer has that PSN, or null. If an old one has the same PSN, it is the newest of them.
ReadSlot* slot_at(std::span<ReadSlot> slots, const ReadRing& ring, Psn psn) {
  for (uint32_t age = 1; age <= ring.slots; ++age) {
    ReadSlot& slot = slots[(ring.next + ring.slots - age) % ring.slots];
    if (psn.distance(slot.first_psn) < slot.packets) return &slot;
  }
  return nullptr;
}

/// The oldest slot that is being served, but for the `passed` oldest ones; or null.
ReadSlot* first_serving(std::span<ReadSlot> slots, const ReadRing& ring, uint32_t passed) {
  for (uint32_t i = passed; i < ring.slots; ++i) {
    ReadSlot& slot = slots[(ring.next + i) % ring.slots];
    if (slot.serving) return &slot;
  }
  return nullptr;
}

}  // namespace

bool has_slot(std::span<const ReadSlot> slots, const ReadRing& ring) {
  return ring.slots != 0 && (!slots[ring.next].serving || slots[ring.next].again);
}

ReadSlot* next_to_serve(std::span<ReadSlot> slots, const ReadRing& ring) { return first_serving(slots, ring, 0); }

ReadSlot* next_to_serve(std::span<ReadSlot> slots, const ReadRing& ring, uint32_t behind) {
  return first_serving(slots, ring, (behind + ring.slots - ring.next) % ring.slots + 1);
}

ReadSlot* add_slot(std::span<ReadSlot> slots, ReadRing& ring, const Packet& packet, uint32_t mtu) {
  UB_DCHECK(ring.slots <= kMaxReadSlots && ring.slots <= slots.size());
  if (!has_slot(slots, ring)) return nullptr;
  ReadSlot& slot = slots[ring.next];
  slot = {};
  slot.first_psn = packet.bth.psn;
  slot.packets = psns_of(packet, mtu) & 0xFFFFFF;
  slot.serving = true;
  if (packet.has(kShapeAtomicEth)) {
    slot.atomic = true;
  } else {
    slot.rkey = packet.reth.rkey;
    slot.length = packet.reth.length;
    slot.address = packet.reth.address;
    slot.part = {0, packet.reth.length};
  }
  ring.next = static_cast<uint8_t>((ring.next + 1) % ring.slots);
  return &slot;
}

ReadSlot* find_read(std::span<ReadSlot> slots, const ReadRing& ring, const Packet& packet, uint32_t mtu) {
  ReadSlot* slot = slot_at(slots, ring, packet.bth.psn);
  if (slot == nullptr || slot->atomic || slot->rkey != packet.reth.rkey) return nullptr;
  const uint64_t skipped = uint64_t{packet.bth.psn.distance(slot->first_psn)} * mtu;
  const bool same_range =
      packet.reth.address == slot->address + skipped && packet.reth.length <= slot->length - skipped;
  return same_range ? slot : nullptr;
}

ReadSlot* find_atomic(std::span<ReadSlot> slots, const ReadRing& ring, const Packet& packet) {
  ReadSlot* slot = slot_at(slots, ring, packet.bth.psn);
  return slot != nullptr && slot->atomic ? slot : nullptr;
}

}  // namespace ub::roce
