// SPDX-License-Identifier: Apache-2.0
//
// Several channels in a lane: what goes where, whose answers count, and what the end of one takes with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lib/transport/ta/request_state.h"
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

/// A jetty whose peer has a lane of two channels or more, all open.
struct Places : Requests {
  explicit Places(const Options& o) : Requests(o) {
    for (uint32_t i = 0; i < o.channels_per_lane; ++i) {
      in_turn.push_back(
          setup::channel_to(*s, peer_index(), false, (place_of(*s, q(), kSmallLane) + i) % o.channels_per_lane));
      if (!s->channels[in_turn[i]].is_up()) open(in_turn[i]);
    }
    own = in_turn[0];
    other = in_turn[1];
  }
  Places() : Places(Options{.channels_per_lane = 2}) {}

  uint32_t peer_index() { return s->targets[target].peer; }
  uint32_t unanswered() { return peer().lanes[0].unanswered; }
  /// All that the channels have to send now: the channel of each segment.
  std::map<uint32_t, uint32_t> sent_on() {
    std::map<uint32_t, uint32_t> all;
    for (bool any = true; any;) {
      any = false;
      for (uint32_t by : in_turn) {
        for (const tp::TxMessage& m : sent(by)) {
          all[m.segment] = by;
          any = true;
        }
      }
    }
    return all;
  }
  void answer_on(uint32_t by, uint32_t tassn) { on_answer(*s, by, answer_of(tassn)); }

  std::vector<uint32_t> in_turn;  // from that on which its requests begin
  uint32_t own = 0, other = 0;
};

using SentOn = std::map<uint32_t, uint32_t>;

TEST(Place, what_is_one_segment_stays_with_its_queue) {
  Places p;
  for (WrOp op : {WrOp::kSend, WrOp::kWrite, WrOp::kRead, WrOp::kFetchAdd}) {
    p.post(op);
    EXPECT_EQ(p.sent_on(), (SentOn{{0, p.own}})) << static_cast<int>(op);
  }
}

TEST(Place, segments_of_a_read_go_round) {
  Places p;
  p.post(WrOp::kRead, 4 * kSegment);
  EXPECT_EQ(p.sent_on(), (SentOn{{0, p.own}, {1, p.other}, {2, p.own}, {3, p.other}}));
  EXPECT_EQ(p.unanswered(), 4u);
}

TEST(Place, segments_go_through_all_channels_in_turn) {
  Places p(Requests::Options{.channels_per_lane = 4});
  const std::vector<uint32_t>& c = p.in_turn;
  p.post(WrOp::kRead, 5 * kSegment);
  EXPECT_EQ(p.sent_on(), (SentOn{{0, c[0]}, {1, c[1]}, {2, c[2]}, {3, c[3]}, {4, c[0]}}));
}

TEST(Place, a_write_that_notifies_stays_with_its_queue) {
  Places p;
  p.post(WrOp::kWriteNotify, 2 * kSegment + kMtu);
  EXPECT_EQ(p.sent_on(), (SentOn{{0, p.own}, {1, p.own}}));
}

TEST(Place, the_last_segment_of_a_write_waits_for_the_answers_to_the_others) {
  Places p;
  p.post(WrOp::kWrite, 3 * kSegment);
  EXPECT_EQ(p.sent_on(), (SentOn{{0, p.own}, {1, p.other}}));
  p.answer_on(p.other, 1);
  EXPECT_EQ(p.sent_on(), SentOn{});
  p.answer_on(p.own, 0);
  EXPECT_EQ(p.sent_on(), (SentOn{{2, p.own}}));
}

TEST(Place, what_asks_for_an_order_stays_with_its_queue) {
  for (const bool pinned : {false, true}) {
    Places p(Requests::Options{.pinned = pinned, .channels_per_lane = 2});
    p.post(WrOp::kWrite, 2 * kSegment, pinned ? 0 : 1);
    EXPECT_EQ(p.sent_on(), (SentOn{{0, p.own}, {1, p.own}})) << pinned;
  }
}

TEST(Place, a_channel_that_is_not_up_is_begun_and_passed_over) {
  Places p;
  setup::kill_channel(*p.s, p.other);
  p.post(WrOp::kRead, 2 * kSegment);
  EXPECT_EQ(p.sent_on(), (SentOn{{0, p.own}, {1, p.own}}));
  EXPECT_NE(p.peer().lanes[0].channels[place_of(*p.s, p.q(), kSmallLane) ^ 1], 0u);
}

TEST(Place, an_answer_counts_whichever_channel_of_the_peer_it_came_by) {
  Places p;
  p.post(WrOp::kRead, 2 * kSegment);
  p.sent_on();
  p.answer_on(p.own, 1);
  p.answer_on(p.other, 0);
  EXPECT_EQ(p.outcomes(), Outcomes{kOk});
  EXPECT_EQ(p.unanswered(), 0u);
}

TEST(Place, an_answer_of_another_peer_does_not_count) {
  Places p;
  p.post(WrOp::kRead, 8);
  p.sent_on();
  TargetConfig elsewhere = p.target_config();
  elsewhere.instance.uasid += 1;
  const uint32_t stranger = p.s->peers[p.s->targets[p.add(elsewhere)].peer].lanes[0].channels[0];
  ASSERT_NE(stranger, 0u);
  p.answer_on(stranger, 0);
  EXPECT_EQ(p.outcomes(), Outcomes{});
  EXPECT_EQ(p.unanswered(), 1u);
}

TEST(Place, the_end_of_either_channel_ends_a_request_that_both_carried) {
  for (const bool own_dies : {true, false}) {
    Places p;
    p.post(WrOp::kRead, 2 * kSegment);
    p.sent_on();
    setup::kill_channel(*p.s, own_dies ? p.own : p.other);
    EXPECT_EQ(p.outcomes(), Outcomes{CrStatus::kAckTimeout}) << own_dies;
    EXPECT_EQ(p.unanswered(), 0u);
  }
}

TEST(Place, giving_up_ends_what_is_half_sent_on_every_channel) {
  Places p(Requests::Options{.channels_per_lane = 4});
  std::vector<uint32_t> channels;
  for (uint32_t place = 0; place < 4; ++place) {
    channels.push_back(setup::channel_to(*p.s, p.peer_index(), false, place));
    if (!p.s->channels[channels.back()].is_up()) p.open(channels.back());
  }
  p.post(WrOp::kRead, 4 * kSegment);
  uint32_t begun = 0;
  for (bool any = true; any;) {
    any = false;
    for (uint32_t by : channels) {
      for (const tp::TxMessage& m : p.sent(by)) {
        tp::Channel& ch = p.s->channels[by];
        tp::packet_sent(*p.s, by, *tp::begin_message(*p.s, ch, m), p.s->now);
        ch.mid_message = any = true;
        ++begun;
      }
    }
  }
  ASSERT_EQ(begun, 4u);
  give_up(*p.s, p.queue_index, 0, CrStatus::kAckTimeout);
  for (uint32_t by : channels) {
    tp::Channel& ch = p.s->channels[by];
    ASSERT_FALSE(ch.in_flight.empty()) << by;
    EXPECT_TRUE(ch.in_flight.back(p.s->messages).vanished) << by;
  }
}

TEST(Place, the_end_of_a_channel_leaves_what_it_did_not_carry) {
  Places p;
  p.post(WrOp::kRead, kSegment);
  p.sent_on();
  setup::kill_channel(*p.s, p.other);
  EXPECT_EQ(p.outcomes(), Outcomes{});
  p.answer_on(p.own, 0);
  EXPECT_EQ(p.outcomes(), Outcomes{kOk});
}

// What is posted begins on one channel of its lane. The others may die.
TEST(Place, the_end_of_a_channel_ends_only_what_would_have_begun_on_it) {
  for (const bool bulk_dies : {false, true}) {
    for (const uint32_t away : {0u, 1u}) {
      Places p(Requests::Options{.lanes = 2, .channels_per_lane = 2});
      for (const uint32_t place : {0u, 1u}) p.open(setup::channel_to(*p.s, p.peer_index(), true, place));
      p.q().state = QueueState::kReset;  // nothing starts
      const Wqe& small = p.write(WrOp::kWrite, 8);
      const Wqe& large = p.write(WrOp::kWrite, 20 * kMtu);
      const uint32_t place = place_of(*p.s, p.q(), kSmallLane) ^ away;
      setup::kill_channel(*p.s, p.peer().lanes[bulk_dies ? 1 : 0].channels[place]);
      EXPECT_EQ((small.flags & kWrDead) != 0, !bulk_dies && away == 0) << bulk_dies << away;
      EXPECT_EQ((large.flags & kWrDead) != 0, bulk_dies && away == 0) << bulk_dies << away;
    }
  }
}

// The limit is the lane's: the answer on one channel lets another go on.
TEST(Place, room_in_a_full_lane_is_told_to_all_its_channels) {
  Places p;
  p.post(WrOp::kRead, 8);
  ASSERT_EQ(p.sent_on().size(), 1u);
  p.peer().lanes[0].unanswered = kLaneSegmentsInFlight;
  p.post(WrOp::kRead, 2 * kSegment);
  EXPECT_EQ(p.sent_on(), SentOn{});
  while (!p.s->active.empty()) tp::take_active(*p.s);
  p.answer_on(p.other, 0);
  std::vector<uint32_t> active;
  while (!p.s->active.empty()) active.push_back(tp::take_active(*p.s));
  std::sort(active.begin(), active.end());
  EXPECT_EQ(active, (std::vector<uint32_t>{std::min(p.own, p.other), std::max(p.own, p.other)}));
}

}  // namespace
}  // namespace ub::ta
