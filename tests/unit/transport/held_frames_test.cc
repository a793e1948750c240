// SPDX-License-Identifier: Apache-2.0
//
// Frames that wait for memory: numbers and shares, gathers, lines, and what the host hears of frames that were given
// up.
#include "lib/transport/held_frames.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/transport/test_host.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub {
namespace {

constexpr uint32_t kBytes = 64;

struct Held : HeldFrames {
  Held() : memory_(bytes()) {
    homes = numbers.take(4);
    Arena arena(memory_.get());
    lay_out(arena, kBytes);
  }
  // The next frame of the sender with this home, which waits for so many gathers.
  HeldFrame& hold_one(HeldLine& held_line, uint32_t sender = 1, uint32_t gathers = 1) {
    HeldFrame& h = take(homes.of(sender));
    h.pending = gathers;
    append(held_line, h);
    return h;
  }

  NumberRange homes;
  HeldLine line;

 private:
  static size_t bytes() {
    HeldFrames measured;
    measured.numbers.take(4);
    Arena arena(nullptr);
    measured.lay_out(arena, kBytes);
    return arena.used_bytes();
  }
  ZeroedMemory memory_;
};

// ---- numbers ---------------------------------------------------------------------------------------------------

TEST(HeldFrames, the_first_frame_of_a_sender_has_its_home_and_others_are_from_the_pool) {
  Held s;
  HeldFrame &first = s.hold_one(s.line), &second = s.hold_one(s.line);
  EXPECT_EQ(s.number_of(first), s.homes.of(1));
  EXPECT_TRUE(s.more().numbers.contains(s.number_of(second)));
  EXPECT_EQ(second.home, s.homes.of(1));
  EXPECT_EQ(s.in_use_count(), 2u);
  s.give_up_all(s.line);
  EXPECT_EQ(s.in_use_count(), 0u);
  EXPECT_EQ(s.more().places.in_use(), 0u);
}

TEST(HeldFrames, a_sender_may_hold_so_many_and_no_more) {
  Held s;
  for (uint32_t i = 0; i < kHeldOfSender; ++i) {
    ASSERT_TRUE(s.has_room(s.line.count)) << i;
    s.hold_one(s.line);
  }
  EXPECT_FALSE(s.has_room(s.line.count));
  s.drop_first(s.line);
  EXPECT_TRUE(s.has_room(s.line.count));
}

TEST(HeldFrames, when_the_pool_is_short_a_sender_has_one_and_its_share) {
  Held s;
  HeldLine others;
  for (uint32_t i = 0; i < kMoreHeld + 1 - 2; ++i) s.hold_one(others, 2);
  s.hold_one(s.line);
  EXPECT_TRUE(s.has_room(1)) << "two are free";
  s.hold_one(s.line);
  EXPECT_FALSE(s.has_room(2)) << "one is free";
  EXPECT_TRUE(s.has_room(0));
}

// ---- gathers ---------------------------------------------------------------------------------------------------

TEST(HeldFrames, are_there_with_the_last_piece_and_fail_with_any) {
  Held s;
  HeldFrame& h = s.hold_one(s.line, 1, 3);
  const CopyTag tag = s.tag_of(h);
  EXPECT_TRUE(HeldFrames::is_tag(tag));
  EXPECT_EQ(s.on_gather_done(tag, true), 0u);
  EXPECT_EQ(s.on_gather_done(tag, false), 0u);
  EXPECT_EQ(s.on_gather_done(tag, true), s.number_of(h));
  EXPECT_TRUE(h.failed);
  EXPECT_EQ(s.on_gather_done(tag, true), 0u) << "nothing of it is pending";
}

TEST(HeldFrames, an_answer_for_an_earlier_use_finds_nobody) {
  Held s;
  const CopyTag late = s.tag_of(s.hold_one(s.line));
  s.give_up_all(s.line);
  EXPECT_EQ(s.on_gather_done(late, true), 0u) << "nobody has the record";
  HeldFrame& h = s.hold_one(s.line);
  ASSERT_EQ(s.number_of(h), s.homes.of(1));
  EXPECT_EQ(s.on_gather_done(late, false), 0u);
  EXPECT_EQ(h.pending, 1u);
  EXPECT_FALSE(h.failed);
}

// Memory may answer long after: its tag has as many bits as there are uses.
TEST(HeldFrames, no_number_of_further_uses_brings_an_earlier_one_back) {
  Held s;
  const CopyTag late = s.tag_of(s.hold_one(s.line));
  s.give_up_all(s.line);
  for (uint32_t use = 0; use < 0x10001; ++use) {
    HeldFrame& h = s.hold_one(s.line);
    ASSERT_EQ(s.number_of(h), s.homes.of(1));
    ASSERT_EQ(s.on_gather_done(late, false), 0u) << use;
    ASSERT_EQ(h.pending, 1u);
    s.on_gather_done(s.tag_of(h), true);
    s.drop_first(s.line);
  }
}

TEST(HeldFrames, an_answer_for_no_number_finds_nobody) {
  Held s;
  const CopyTag tag = s.tag_of(s.hold_one(s.line));
  EXPECT_EQ(s.on_gather_done(tag + (uint64_t{s.numbers.end()} << 32), true), 0u);
  EXPECT_EQ(HeldFrames{}.on_gather_done(tag, true), 0u) << "without slow memory there are none";
}

// ---- lines -----------------------------------------------------------------------------------------------------

TEST(HeldFrames, stand_in_the_order_in_which_they_were_built) {
  Held s;
  std::vector<const HeldFrame*> built, seen;
  for (int i = 0; i < 3; ++i) built.push_back(&s.hold_one(s.line));
  s.each(s.line, [&](const HeldFrame& h) { seen.push_back(&h); });
  EXPECT_EQ(seen, built);
  EXPECT_EQ(&s.newest(s.line), built[2]);
  for (const HeldFrame* h : built) {
    ASSERT_EQ(&s.first(s.line), h);
    EXPECT_TRUE(s.first_waits(s.line));
    s.on_gather_done(s.tag_of(*h), true);
    EXPECT_FALSE(s.first_waits(s.line));
    s.drop_first(s.line);
  }
  EXPECT_TRUE(s.line.empty());
  EXPECT_FALSE(s.first_waits(s.line));
  s.each(s.line, [](const HeldFrame&) { ADD_FAILURE(); });
}

TEST(HeldFrames, only_those_with_pending_gathers_are_orphans) {
  Held s;
  const HeldFrame& there = s.hold_one(s.line, 1, 0);
  const HeldFrame& awaited = s.hold_one(s.line);
  const uint32_t of_there = s.number_of(there), of_awaited = s.number_of(awaited);
  s.give_up_all(s.line);
  EXPECT_EQ(s.orphan_count(), 1u);
  EXPECT_TRUE(s.is_orphan(of_awaited));
  EXPECT_FALSE(s.is_orphan(of_there));
}

// ---- frames ----------------------------------------------------------------------------------------------------

struct Frames : Held {
  // A frame of these bytes, whose last one is gathered, is held.
  HeldFrame& hold_frame(std::byte first_byte) {
    std::byte* frame = host.tx_begin(1, kBytes);
    frame[0] = first_byte;
    HeldFrame& h = take(homes.of(1));
    h.link = 1;
    h.bytes = kBytes;
    if (host.gather(frame + kBytes - 1, &payload, 1, tag_of(h)) == CopyResult::kPending) ++h.pending;
    hold(host, h, frame);
    append(line, h);
    return h;
  }
  // What the Core is for the host, when a copy is done.
  void on_copy_done(Instant, CopyTag tag, bool ok) { on_gather_done(tag, ok); }

  TestHost host;
  std::byte payload{0x77};
};

TEST(HeldFrames, a_frame_leaves_its_port_and_comes_back_with_its_payload) {
  Frames s;
  s.host.slow = true;
  HeldFrame& h = s.hold_frame(std::byte{1});
  EXPECT_EQ(s.host.open_frames(), 0u);
  s.host.finish_copies(s, {});
  EXPECT_EQ(h.pending, 0u);
  s.host.full = true;
  EXPECT_EQ(s.resume(s.host, h), nullptr);
  s.host.full = false;
  const std::byte* frame = s.resume(s.host, h);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame[0], std::byte{1});
  EXPECT_EQ(frame[kBytes - 1], s.payload);
}

// Both have the same place: what was pending for the first one does not write into the second one.
TEST(HeldFrames, the_bytes_of_one_that_was_given_up_do_not_reach_the_next_one_in_its_place) {
  Frames s;
  s.host.slow = true;
  const uint32_t number = s.number_of(s.hold_frame(std::byte{1}));
  s.give_up_all(s.line);
  s.host.slow = false;
  s.payload = std::byte{0x55};
  HeldFrame& next = s.hold_frame(std::byte{2});
  ASSERT_EQ(s.number_of(next), number);
  EXPECT_EQ(s.orphan_count(), 0u) << "the host has heard of the first one";
  s.payload = std::byte{0x66};
  s.host.finish_copies(s, {});
  const std::byte* frame = s.resume(s.host, next);
  EXPECT_EQ(frame[0], std::byte{2});
  EXPECT_EQ(frame[kBytes - 1], std::byte{0x55});
}

}  // namespace
}  // namespace ub
