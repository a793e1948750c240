// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/read_slots.h"

#include <gtest/gtest.h>

#include <array>

namespace ub::roce {
namespace {

constexpr uint32_t kMtu = 1024;

Packet read_of(uint32_t psn, uint64_t address, uint32_t length, uint32_t rkey = 7) {
  Packet p{};
  p.bth = {.opcode = Opcode::kRcReadRequest, .psn = Psn(psn)};
  p.shape = packet_shape(p.bth.opcode);
  p.reth = {address, rkey, length};
  return p;
}

Packet atomic_at(uint32_t psn) {
  Packet p{};
  p.bth = {.opcode = Opcode::kRcFetchAdd, .psn = Psn(psn)};
  p.shape = packet_shape(p.bth.opcode);
  p.atomic = {0x8000, 7, 1, 0};
  return p;
}

struct Slots {
  explicit Slots(uint8_t n) { ring.slots = n; }
  ReadSlot* add(const Packet& p, bool served = true) {
    ReadSlot* slot = add_slot(all, ring, p, kMtu);
    if (slot != nullptr && served) slot->serving = false;
    return slot;
  }
  ReadSlot* find(const Packet& p) {
    return p.has(kShapeAtomicEth) ? find_atomic(all, ring, p) : find_read(all, ring, p, kMtu);
  }

  std::array<ReadSlot, kMaxReadSlots> all{};
  ReadRing ring;
};

TEST(ReadSlots, a_read_comes_again_as_a_whole_or_from_any_packet_on) {
  Slots s(4);
  ReadSlot* slot = s.add(read_of(100, 0x1000, 3 * kMtu + 5));
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->packets, 4u);
  EXPECT_EQ(s.find(read_of(100, 0x1000, 3 * kMtu + 5)), slot);
  EXPECT_EQ(s.find(read_of(101, 0x1000 + kMtu, 2 * kMtu + 5)), slot);
  EXPECT_EQ(s.find(read_of(103, 0x1000 + 3 * kMtu, 5)), slot);
  EXPECT_EQ(s.find(read_of(102, 0x1000 + 2 * kMtu, 1)), slot);  // less than what is left
}

TEST(ReadSlots, a_read_that_is_not_the_same_is_not_found) {
  Slots s(4);
  s.add(read_of(100, 0x1000, 3 * kMtu + 5));
  EXPECT_EQ(s.find(read_of(99, 0x1000, 5)), nullptr);
  EXPECT_EQ(s.find(read_of(104, 0x1000, 5)), nullptr);
  EXPECT_EQ(s.find(read_of(100, 0x1001, 5)), nullptr);
  EXPECT_EQ(s.find(read_of(101, 0x1000, 5)), nullptr);
  EXPECT_EQ(s.find(read_of(100, 0x1000, 3 * kMtu + 6)), nullptr);
  EXPECT_EQ(s.find(read_of(103, 0x1000 + 3 * kMtu, 6)), nullptr);
  EXPECT_EQ(s.find(read_of(100, 0x1000, 5, 8)), nullptr);
  EXPECT_EQ(s.find(atomic_at(100)), nullptr);
}

TEST(ReadSlots, an_atomic_keeps_its_answer) {
  Slots s(1);
  ReadSlot* slot = s.add(atomic_at(0xFFFFFF));
  ASSERT_NE(slot, nullptr);
  slot->original = 42;
  ASSERT_EQ(s.find(atomic_at(0xFFFFFF)), slot);
  EXPECT_EQ(s.find(atomic_at(0xFFFFFF))->original, 42u);
  EXPECT_EQ(s.find(atomic_at(0)), nullptr);
  EXPECT_EQ(s.find(read_of(0xFFFFFF, 0x8000, 8)), nullptr);
}

TEST(ReadSlots, numbers_wrap) {
  Slots s(2);
  ReadSlot* slot = s.add(read_of(0xFFFFFF, 0, 2 * kMtu));
  EXPECT_EQ(s.find(read_of(0, kMtu, kMtu)), slot);
}

TEST(ReadSlots, the_oldest_gives_way) {
  Slots s(3);
  for (uint32_t psn = 0; psn < 4; ++psn) ASSERT_NE(s.add(atomic_at(psn)), nullptr);
  EXPECT_EQ(s.find(atomic_at(0)), nullptr);
  for (uint32_t psn = 1; psn < 4; ++psn) EXPECT_NE(s.find(atomic_at(psn)), nullptr) << psn;
}

TEST(ReadSlots, more_than_promised_is_refused) {
  Slots s(2);
  ReadSlot* first = s.add(read_of(0, 0, 8), false);
  s.add(read_of(1, 0, 8), false);
  EXPECT_EQ(s.add(read_of(2, 0, 8)), nullptr);
  first->serving = false;
  EXPECT_EQ(s.add(read_of(2, 0, 8)), first);
  Slots none(0);
  EXPECT_EQ(none.add(read_of(0, 0, 8)), nullptr);
  EXPECT_EQ(none.find(read_of(0, 0, 8)), nullptr);
}

TEST(ReadSlots, an_old_slot_with_the_same_number_is_not_preferred) {
  Slots s(4);
  s.add(read_of(100, 0, 2 * kMtu));
  ReadSlot* newer = s.add(atomic_at(101));  // 2^24 packets later
  EXPECT_EQ(s.find(atomic_at(101)), newer);
}

TEST(ReadSlots, empty_reads) {
  Slots s(2);
  ReadSlot* slot = s.add(read_of(9, 0x1000, 0));
  EXPECT_EQ(slot->packets, 1u);
  EXPECT_EQ(s.find(read_of(9, 0x1000, 0)), slot);
  EXPECT_EQ(s.find(read_of(9, 0x1000, 1)), nullptr);
}

TEST(ReadSlots, are_served_from_the_oldest_on_and_behind_any_of_them_the_next_newer_one) {
  Slots s(4);
  ReadSlot* slot[6];
  for (uint32_t i = 0; i < 6; ++i) slot[i] = s.add(read_of(i, 0x1000, 8), i < 3);  // the two oldest are used again
  const auto number = [&](const ReadSlot* at) { return static_cast<uint32_t>(at - s.all.data()); };
  const auto behind = [&](const ReadSlot* at) { return next_to_serve(s.all, s.ring, number(at)); };
  EXPECT_EQ(next_to_serve(s.all, s.ring), slot[3]);
  EXPECT_EQ(behind(slot[2]), slot[3]) << "the oldest one was served";
  EXPECT_EQ(behind(slot[3]), slot[4]);
  EXPECT_EQ(behind(slot[4]), slot[5]);
  EXPECT_EQ(behind(slot[5]), nullptr);
  slot[4]->serving = false;
  EXPECT_EQ(behind(slot[3]), slot[5]);
}

}  // namespace
}  // namespace ub::roce
