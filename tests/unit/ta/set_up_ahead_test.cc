// SPDX-License-Identifier: Apache-2.0
//
// While a queue waits for a channel that is not up, the channels that its further requests need are set up.
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

TEST(Ahead, while_the_first_channel_is_not_up_those_that_come_next_are_begun) {
  Requests r({.lanes = 2});
  r.ch().state = tp::ChannelState::kReqSent;
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u);
  r.post(WrOp::kNop, 20 * kMtu);
  r.write(WrOp::kWrite, 20 * kMtu).target = 0;
  r.ring_bell();
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u) << "these need none";
  r.post(WrOp::kWrite, 20 * kMtu);
  EXPECT_NE(r.peer().lanes[1].channels[0], 0u) << "behind what needs none";
}

TEST(Ahead, none_is_begun_for_a_target_of_another_owner) {
  Requests r({.lanes = 2});
  r.ch().state = tp::ChannelState::kReqSent;
  TargetConfig others = r.target_config(3);
  others.owner = 6;
  const uint32_t target = r.add(others);
  r.post(WrOp::kWrite);
  const uint32_t before = r.s->channels.in_use();
  r.write(WrOp::kWrite, 20 * kMtu).target = target;
  r.ring_bell();
  EXPECT_EQ(r.s->channels.in_use(), before);
}

TEST(Ahead, all_of_it_is_looked_at_once) {
  for (const uint32_t first : {0u, 5u, UINT32_MAX / 2, UINT32_MAX}) {
    Requests r({.lanes = 2});
    r.indices.produced.store(first);
    r.q().next_slot = r.q().produced = r.q().posted = first;
    r.ch().state = tp::ChannelState::kReqSent;
    r.post(WrOp::kWrite);
    r.post(WrOp::kWrite);
    EXPECT_EQ(r.q().looked_ahead, first + 2);
    r.ring[(first + 1) % r.ring.size()].length = 20 * kMtu;
    r.ring_bell();
    r.post(WrOp::kWrite);
    EXPECT_EQ(r.q().looked_ahead, first + 3);
    EXPECT_EQ(r.peer().lanes[1].channels[0], 0u) << "what was looked at is not looked at again, from " << first;
  }
}

TEST(Ahead, no_more_than_64_at_one_time) {
  Requests r({.lanes = 2});
  r.ch().state = tp::ChannelState::kReqSent;
  for (int i = 0; i < 63; ++i) r.write(WrOp::kNop).op = WrOp::kWrite;
  r.write(WrOp::kWrite, 8);
  r.write(WrOp::kWrite, 20 * kMtu);
  r.ring_bell();
  EXPECT_EQ(r.q().looked_ahead, 64u);
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u);
  r.ring_bell();
  EXPECT_NE(r.peer().lanes[1].channels[0], 0u);
}

TEST(Ahead, what_is_behind_the_front_is_forgotten) {
  Requests r({.lanes = 2});
  r.ch().state = tp::ChannelState::kReqSent;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  EXPECT_EQ(r.q().looked_ahead, 3u);
  r.ch().state = tp::ChannelState::kOpen;
  EXPECT_EQ(r.sent().size(), 3u);
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  EXPECT_EQ(r.sent().size(), 2u);
  r.ch().state = tp::ChannelState::kReqSent;
  r.write(WrOp::kWrite, 20 * kMtu);
  r.ring_bell();  // for a channel that is not there yet
  EXPECT_NE(r.peer().lanes[1].channels[0], 0u);
  EXPECT_EQ(r.q().looked_ahead, 6u);
}

TEST(Ahead, the_look_begins_at_the_front_however_much_was_sent_since_the_last_one) {
  Requests r({.lanes = 2});
  r.ch().state = tp::ChannelState::kReqSent;
  r.post(WrOp::kWrite);
  r.ch().state = tp::ChannelState::kOpen;
  for (uint32_t tassn = 0; tassn < 100; ++tassn) {
    r.post(WrOp::kWrite);
    r.sent();
    r.answer(tassn);
  }
  r.ch().state = tp::ChannelState::kReqSent;
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite, 20 * kMtu);
  EXPECT_NE(r.peer().lanes[1].channels[0], 0u);
}

TEST(Ahead, an_element_that_cannot_be_ends_the_look) {
  Requests r({.lanes = 2});
  r.ch().state = tp::ChannelState::kReqSent;
  r.write(WrOp::kWrite);
  r.write(WrOp::kWrite).slots = 0;
  r.write(WrOp::kWrite, 20 * kMtu);
  r.ring_bell();
  EXPECT_EQ(r.q().looked_ahead, 1u);
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u);
}

TEST(Ahead, nothing_is_begun_ahead_of_a_channel_that_is_up) {
  Requests r({.lanes = 2});
  r.write(WrOp::kWrite);
  r.write(WrOp::kWrite, 20 * kMtu);
  r.ring_bell();
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u);
  r.ring_bell();
  EXPECT_EQ(r.peer().lanes[1].channels[0], 0u);
}

}  // namespace
}  // namespace ub::ta
