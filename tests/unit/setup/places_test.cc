// SPDX-License-Identifier: Apache-2.0
//
// Several channels in a lane: each has a place of its own, where set-up finds it, and nothing that happens at one place
// touches the others.
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

constexpr uint32_t kPlace = 5, kNext = 6;

/// One lane of a peer, with several channels.
struct Places : Instance {
  explicit Places(bool is_bulk) : bulk(is_bulk) {}
  ControlRecord request_for(uint8_t place, uint32_t attempt = 9) const {
    ControlRecord r = request_of_peer(attempt);
    r.place = place;
    if (bulk) r.flags |= wire::kRecordBulk;
    return r;
  }
  /// We begin the channels of both places; they are not up yet.
  void begin() {
    peer = ch(connect()).peer;
    at_place = channel_to(*s, peer, bulk, kPlace);
    at_next = channel_to(*s, peer, bulk, kNext);
    sent();
  }
  void open() {
    begin();
    for (uint32_t each : {at_place, at_next}) on_record(*s, from, reply_of_peer(each, RecordType::kRep));
    sent();
  }
  Lane& lane() { return s->peers[peer].lanes[bulk ? 1 : 0]; }

  const bool bulk;
  uint32_t peer = 0, at_place = 0, at_next = 0;
};

TEST(Place, each_has_a_channel_whose_request_names_it) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.peer = p.ch(p.connect()).peer;
    p.sent();
    for (const uint32_t place : {kPlace, kNext}) {
      const uint32_t channel = channel_to(*p.s, p.peer, bulk, place);
      EXPECT_EQ(p.only().record.place, place);
      EXPECT_EQ(p.ch(channel).place(), place);
      EXPECT_EQ(p.lane().channels[place], channel);
      EXPECT_EQ(channel_to(*p.s, p.peer, bulk, place), channel) << "once";
    }
    EXPECT_NE(p.lane().channels[kPlace], p.lane().channels[kNext]);
  }
}

TEST(Place, a_request_of_the_peer_makes_a_channel_there) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.at_place = p.half_open(p.request_for(kPlace));
    p.at_next = p.half_open(p.request_for(kNext));
    ASSERT_NE(p.at_place, p.at_next) << "the same attempt, but another place";
    p.peer = p.ch(p.at_place).peer;
    Lane wanted{};
    wanted.channels[kPlace] = wanted.accepted[kPlace] = p.at_place;
    wanted.channels[kNext] = wanted.accepted[kNext] = p.at_next;
    EXPECT_EQ(p.lane(), wanted);
    EXPECT_EQ(p.half_open(p.request_for(kPlace)), p.at_place) << "the same once more";
    EXPECT_EQ(p.half_open(p.request_for(kNext, 10)), p.at_next) << "a newer attempt";
    EXPECT_EQ(p.lane(), wanted);
  }
}

TEST(Place, glare_at_one_is_none_at_the_other) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.begin();
    ControlRecord r = p.request_for(kPlace);
    r.sender_incarnation = kOurIncarnation - 1;
    EXPECT_EQ(p.half_open(r), p.at_place);
    EXPECT_EQ(p.lane().accepted[kPlace], p.at_place);
    EXPECT_EQ(p.lane().accepted[kNext], 0u);
    EXPECT_EQ(p.ch(p.at_next).state, ChannelState::kReqSent);
  }
}

TEST(Place, a_channel_that_is_proven_takes_over_that_of_its_place_alone) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.open();
    ControlRecord r = p.request_for(kPlace);
    ++r.sender_incarnation;
    const uint32_t fresh = p.open_as_target(r);
    EXPECT_EQ(p.lane().channels[kPlace], fresh);
    EXPECT_FALSE(alive(p.ch(p.at_place)));
    EXPECT_EQ(p.lane().channels[kNext], p.at_next);
    EXPECT_TRUE(p.ch(p.at_next).is_up());
  }
}

TEST(Place, the_death_of_a_channel_clears_its_own_alone) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.at_place = p.open_as_target(p.request_for(kPlace));
    p.at_next = p.open_as_target(p.request_for(kNext));
    p.peer = p.ch(p.at_place).peer;
    kill_channel(*p.s, p.at_place);
    Lane wanted{};
    wanted.channels[kNext] = wanted.accepted[kNext] = p.at_next;
    EXPECT_EQ(p.lane(), wanted);
  }
}

TEST(Place, an_unproven_channel_that_requests_wait_for_asks_itself_for_the_same_one) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.at_place = p.half_open(p.request_for(kPlace));
    p.queue_waiting_for(p.at_place);
    p.peer = p.ch(p.at_place).peer;
    while (p.ch(p.at_place).state == ChannelState::kHalfOpen) {
      p.sent();
      p.timer(p.at_place);
    }
    EXPECT_EQ(p.only().record.place, kPlace);
    Lane wanted{};
    wanted.channels[kPlace] = p.at_place;
    EXPECT_EQ(p.lane(), wanted);
  }
}

TEST(Place, silence_at_one_ends_those_of_the_lane_that_were_not_heard_either) {
  for (const bool bulk : {false, true}) {
    for (const bool heard : {false, true}) {
      Places p(bulk);
      p.open();
      p.s->now += p.s->config.channel_timeout;
      if (heard) p.ch(p.at_next).heard_at = p.s->now;
      kill_silent(*p.s, p.at_place);
      EXPECT_FALSE(alive(p.ch(p.at_place)));
      EXPECT_EQ(alive(p.ch(p.at_next)), heard);
    }
  }
}

// The next application with the number of this one makes channels of its own, at every place.
TEST(Place, the_end_of_an_application_clears_all) {
  for (const bool bulk : {false, true}) {
    Places p(bulk);
    p.open();
    close_owner(*p.s, 0);
    EXPECT_EQ(p.lane(), Lane{});
    for (uint32_t each : {p.at_place, p.at_next}) EXPECT_EQ(p.ch(each).state, ChannelState::kClosing);
  }
}

}  // namespace
}  // namespace ub::setup
