// SPDX-License-Identifier: Apache-2.0
//
// Which channel carries what, where both sides ask, ask again, or were restarted (docs/wire.md; UB Base Specification
// Rev 2.0, 6.3, leaves it open); and what becomes of the other one.
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

// ---- opening ---------------------------------------------------------------------------------------------------

TEST(Opening, is_told_and_watched) {
  Instance i;
  i.connect();
  i.events();
  const uint32_t channel = 1;
  i.s->timers.cancel(channel);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  const std::vector<Event> events = i.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kChannelUp);
  EXPECT_EQ(events[0].object, i.ch(channel).tpn);
  EXPECT_EQ(i.s->timers.earliest(), i.s->now + i.s->config.keepalive_idle);
  EXPECT_FALSE(i.ch(channel).on_active_list) << "nobody has something to send";
}

TEST(Opening, gives_a_turn_to_queues_that_waited_for_it) {
  Instance i;
  const uint32_t channel = i.connect();
  i.queue_waiting_for(channel);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  EXPECT_TRUE(i.ch(channel).on_active_list);
}

// ---- which of two ----------------------------------------------------------------------------------------------

TEST(TakingOver, a_channel_that_the_peer_asked_for_carries_our_requests_if_there_is_no_other) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer());
  EXPECT_EQ(i.peer_of(channel).lanes[0].channels[0], channel);
  EXPECT_EQ(i.peer_of(channel).lanes[0].accepted[0], channel);
  EXPECT_TRUE(i.ch(channel).carries_requests);
}

// The peer was restarted: its new channel takes the place of the old one when it is proven, not before.
TEST(TakingOver, when_the_peer_asks_anew_its_channel_takes_the_place_of_the_old_one) {
  Instance i;
  const uint32_t old = i.open_as_initiator();
  ControlRecord req = i.request_of_peer();
  ++req.sender_incarnation;
  const uint32_t fresh = i.half_open(req);
  ASSERT_NE(fresh, old);
  EXPECT_EQ(i.peer_of(fresh).lanes[0].channels[0], old);
  EXPECT_FALSE(i.ch(fresh).carries_requests);
  ControlRecord conf = i.reply_of_peer(fresh, RecordType::kConf);
  on_record(*i.s, i.from, conf);
  EXPECT_EQ(i.peer_of(fresh).lanes[0].channels[0], fresh);
  EXPECT_TRUE(i.ch(fresh).carries_requests);
  EXPECT_FALSE(alive(i.ch(old)));
  EXPECT_EQ(i.peer_of(fresh).users, 2u) << "the target and this one";
}

// Requests of an application behind the peer that has channels of its own; ours go another way.
TEST(TakingOver, a_channel_for_an_application_of_the_peer_carries_none_of_our_requests) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.application = 3;
  const uint32_t channel = i.open_as_target(req);
  ASSERT_TRUE(i.ch(channel).is_up());
  EXPECT_EQ(i.peer_of(channel).visitor, 3u);
  EXPECT_EQ(i.peer_of(channel).lanes[0].channels[0], 0u);
  EXPECT_FALSE(i.ch(channel).carries_requests);
  EXPECT_NE(i.ch(i.connect()).peer, i.ch(channel).peer);
}

// Who speaks to itself has both ends.
TEST(TakingOver, towards_ourselves_both_ends_live) {
  Instance i;
  i.peer_id = i.s->config.self;
  const uint32_t ours = i.connect();
  i.sent();
  ControlRecord req = i.request_of_peer();
  req.sender_incarnation = kOurIncarnation;
  const uint32_t theirs = i.half_open(req);
  ASSERT_NE(theirs, ours) << "no glare";
  EXPECT_EQ(i.peer_of(ours).lanes[0].channels[0], ours);
  EXPECT_EQ(i.peer_of(ours).lanes[0].accepted[0], theirs);
  on_record(*i.s, i.from, i.reply_of_peer(theirs, RecordType::kConf));
  EXPECT_EQ(i.peer_of(ours).lanes[0].channels[0], ours);
  EXPECT_TRUE(alive(i.ch(ours)) && i.ch(theirs).is_up());
  EXPECT_FALSE(i.ch(theirs).carries_requests);
}

TEST(TakingOver, towards_ourselves_the_answering_end_alone_carries_no_requests) {
  Instance i;
  i.peer_id = i.s->config.self;
  const uint32_t channel = i.half_open(i.request_of_peer());
  EXPECT_EQ(i.peer_of(channel).lanes[0].channels[0], 0u);
  EXPECT_FALSE(i.ch(channel).carries_requests);
}

TEST(TakingOver, another_instance_with_our_eid_is_not_ourselves) {
  Instance i;
  i.peer_id.eid = i.s->config.self.eid;
  const uint32_t channel = i.half_open(i.request_of_peer());
  EXPECT_EQ(i.peer_of(channel).lanes[0].channels[0], channel);
}

TEST(TakingOver, another_eid_with_our_uasid_is_not_ourselves) {
  Instance i;
  i.peer_id.uasid = i.s->config.self.uasid;
  const uint32_t channel = i.half_open(i.request_of_peer());
  EXPECT_EQ(i.peer_of(channel).lanes[0].channels[0], channel);
}

// ---- glare -----------------------------------------------------------------------------------------------------

// With equal incarnations the one who is asked gives way, so that somebody does.
TEST(Glare, ours_is_given_up_for_a_smaller_or_equal_incarnation) {
  for (uint64_t incarnation : {kOurIncarnation - 1, kOurIncarnation, kOurIncarnation + 1}) {
    Instance i;
    const uint32_t channel = i.connect();
    i.sent();
    ControlRecord req = i.request_of_peer();
    req.sender_incarnation = incarnation;
    on_record(*i.s, i.from, req);
    const bool ours_wins = incarnation > kOurIncarnation;
    EXPECT_EQ(i.only().record.type, ours_wins ? RecordType::kRej : RecordType::kRep);
    EXPECT_EQ(i.ch(channel).initiator, ours_wins);
    EXPECT_EQ(i.peer_of(channel).lanes[0].accepted[0], ours_wins ? 0 : channel);
    EXPECT_EQ(i.count(Counter::kTpChannelRejected), ours_wins ? 1u : 0u);
    EXPECT_EQ(i.channels_alive(), 1u);
  }
}

TEST(Glare, the_one_that_gave_way_answers_as_if_it_had_never_asked) {
  Instance i({.mtu = 2048});
  const uint32_t channel = i.connect();
  i.timer(channel);
  i.timer(channel);
  i.sent();
  i.s->now += milliseconds(1);
  ControlRecord req = i.request_of_peer();
  req.sender_incarnation = kOurIncarnation - 1;
  i.s->links[i.s->links.alloc()] = LinkRecord{.up = true, .config = {.mtu = 2048}};
  i.from = {2, {i.from.local.ip, 4444}, {i.from.remote.ip, 5555}};
  ASSERT_EQ(i.half_open(req), channel);
  const Channel& ch = i.ch(channel);
  EXPECT_EQ(ch.attempt, 9u);
  EXPECT_EQ(ch.created_at, i.s->now);
  EXPECT_EQ(ch.setup_tries, 0);
  EXPECT_EQ(ch.offered_mtu, 2048);
  EXPECT_EQ(ch.link, 2u);
  EXPECT_EQ(ch.local_endpoint.port, 4444);
  EXPECT_EQ(ch.remote_endpoint.port, 5555);
  EXPECT_EQ(ch.peer_tpn, kPeerTpn);
  EXPECT_EQ(ch.setup_at, i.s->now + i.s->config.setup_retry_min);
}

// ---- repeated and newer requests -------------------------------------------------------------------------------

TEST(Again, a_repeated_request_for_an_open_channel_is_answered_and_changes_nothing) {
  Instance i;
  const uint32_t channel = i.open_as_target();
  ControlRecord req = i.request_of_peer();
  req.mtu = 1024;
  on_record(*i.s, i.from, req);
  const OutRecord rep = i.only();
  EXPECT_EQ(rep.record.sender_tpn, i.ch(channel).tpn);
  EXPECT_EQ(rep.record.mtu, 4096) << "what was agreed";
  EXPECT_FALSE(i.ch(channel).several_mtus);
  EXPECT_EQ(i.channels_alive(), 1u);
}

TEST(Again, the_same_attempt_of_another_life_is_not_the_same) {
  Instance i;
  const uint32_t first = i.open_as_target();
  ControlRecord req = i.request_of_peer();
  ++req.sender_incarnation;
  EXPECT_NE(i.half_open(req), first);
}

TEST(Again, a_newer_attempt_begins_an_unproven_one_anew) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer(9));
  ControlRecord smaller = i.request_of_peer(9);
  smaller.mtu = 1024;
  on_record(*i.s, i.from, smaller);
  i.sent();
  ASSERT_TRUE(i.ch(channel).several_mtus);
  ControlRecord req = i.request_of_peer(10);
  req.initial_psn = Psn(4711);
  EXPECT_EQ(i.half_open(req), channel);
  EXPECT_EQ(i.ch(channel).expected, Psn(4711));
  EXPECT_EQ(i.ch(channel).attempt, 10u);
  EXPECT_FALSE(i.ch(channel).several_mtus);
}

TEST(Again, an_attempt_on_the_other_lane_is_another_channel) {
  Instance i;
  const uint32_t small = i.half_open(i.request_of_peer(9));
  ControlRecord req = i.request_of_peer(9);
  req.flags |= wire::kRecordBulk;
  EXPECT_NE(i.half_open(req), small);
  EXPECT_EQ(i.channels_alive(), 2u);
}

// ---- a new instance at a known address -------------------------------------------------------------------------

TEST(FormerInstance, at_the_same_address_is_asked_whether_it_still_lives) {
  Instance i;
  i.open_as_initiator();
  i.peer_id.uasid = 3;
  on_record(*i.s, i.from, i.request_of_peer());
  const std::vector<OutRecord> out = i.sent();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].record.type, RecordType::kPing);
  EXPECT_EQ(out[0].record.wanted_uasid, 2u);
  EXPECT_EQ(out[1].record.type, RecordType::kRep);
}

TEST(FormerInstance, on_the_last_channel_is_asked_too) {
  Instance i;
  kill_channel(*i.s, i.open_as_initiator());
  i.peer_id.uasid = 3;
  ASSERT_EQ(i.open_as_initiator(), 2u);
  i.s->now += std::max(i.s->config.id_rest, i.s->config.rto_max);
  i.peer_id.uasid = 4;
  on_record(*i.s, i.from, i.request_of_peer());
  ASSERT_EQ(i.sent().size(), 2u);
  EXPECT_EQ(i.ch(1).state, ChannelState::kHalfOpen);
}

// A clock may begin at 0.
TEST(FormerInstance, is_asked_at_any_time_of_day_and_not_at_once_again) {
  for (uint64_t now : {1, 1000000}) {
    Instance i;
    const uint32_t channel = i.open_as_initiator();
    i.s->now = Instant{now};
    on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kReset));
    EXPECT_EQ(i.sent().size(), 1u) << now;
    i.s->now += nanoseconds(1);
    on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kReset));
    EXPECT_TRUE(i.sent().empty()) << now;
  }
}

TEST(FormerInstance, of_another_address_or_eid_or_not_open_is_left_in_peace) {
  const auto pings = [](void (*change)(Instance&), bool open = true) {
    Instance i;
    open ? i.open_as_initiator() : i.connect();
    i.sent();
    i.peer_id.uasid = 3;
    change(i);
    on_record(*i.s, i.from, i.request_of_peer());
    const std::vector<OutRecord> out = i.sent();
    return std::count_if(out.begin(), out.end(), [](const OutRecord& r) { return r.record.type == RecordType::kPing; });
  };
  EXPECT_EQ(pings([](Instance&) {}), 1);
  EXPECT_EQ(pings([](Instance& i) { i.from.remote.port = 5555; }), 0);
  EXPECT_EQ(pings([](Instance& i) { i.peer_id.eid.bytes[15] = 9; }), 0);
  EXPECT_EQ(pings([](Instance& i) { i.peer_id.uasid = 2; }), 0);
  EXPECT_EQ(pings([](Instance&) {}, false), 0);
}

// ---- refusals --------------------------------------------------------------------------------------------------

TEST(Refusal, is_told_with_its_reason_and_by_whom) {
  Instance i;
  const uint32_t channel = i.connect();
  ControlRecord rej = i.reply_of_peer(channel, RecordType::kRej);
  rej.reason = RecordReason::kUnknownEntity;
  rej.version = 3;
  const uint32_t tpn = i.ch(channel).tpn;
  on_record(*i.s, i.from, rej);
  const std::vector<Event> events = i.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kChannelRejected);
  EXPECT_EQ(events[0].object, tpn);
  EXPECT_EQ(events[0].owner, 0) << "channels have none";
  EXPECT_EQ(events[0].reason, static_cast<uint8_t>(RecordReason::kUnknownEntity));
  EXPECT_EQ(events[0].version, 3);
  EXPECT_EQ(events[0].peer, i.peer_id.eid);
  EXPECT_EQ(i.count(Counter::kTpChannelRejected), 1u);
  EXPECT_EQ(i.count(Counter::kTpChannelDeferred), 0u);
}

TEST(Refusal, after_which_we_go_on_is_counted_apart) {
  for (RecordReason reason : {RecordReason::kGlare, RecordReason::kNoResources}) {
    Instance i;
    ControlRecord rej = i.reply_of_peer(i.connect(), RecordType::kRej);
    rej.reason = reason;
    on_record(*i.s, i.from, rej);
    EXPECT_EQ(i.count(Counter::kTpChannelDeferred), 1u);
    EXPECT_EQ(i.count(Counter::kTpChannelRejected), 0u);
    EXPECT_TRUE(i.events().empty());
  }
}

// Only the attempt is known to be in a record of another version.
TEST(Refusal, by_another_version_is_found_by_its_attempt) {
  Instance i;
  i.open_as_initiator();
  i.peer_id.uasid = 3;
  const uint32_t channel = i.connect();
  ControlRecord prefix;
  prefix.type = RecordType::kRej;
  prefix.reason = RecordReason::kParameter;
  prefix.attempt = i.ch(1).attempt;
  refuse_version(*i.s, i.from, prefix);
  EXPECT_EQ(i.channels_alive(), 2u) << "that one is open";
  EXPECT_EQ(i.count(Counter::kRxDropRecordStale), 1u);
  prefix.attempt = i.ch(channel).attempt;
  refuse_version(*i.s, i.from, prefix);
  EXPECT_FALSE(alive(i.ch(channel)));
  EXPECT_TRUE(alive(i.ch(1)));
}

TEST(Refusal, of_another_version_answers_requests_alone) {
  Instance i;
  ControlRecord prefix;
  prefix.attempt = 9;
  refuse_version(*i.s, i.from, prefix);
  const OutRecord rej = i.only();
  EXPECT_EQ(rej.record.type, RecordType::kRej);
  EXPECT_EQ(rej.record.reason, RecordReason::kParameter);
  EXPECT_EQ(rej.record.attempt, 9u);
  prefix.type = RecordType::kPing;
  refuse_version(*i.s, i.from, prefix);
  EXPECT_TRUE(i.sent().empty());
  EXPECT_EQ(i.count(Counter::kTpChannelRejected), 2u);
}

TEST(Refusal, of_a_request_is_counted) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.wanted_uasid = 9;
  on_record(*i.s, i.from, req);
  EXPECT_EQ(i.count(Counter::kTpChannelRejected), 1u);
  req = i.request_of_peer();
  req.mtu = 512;
  on_record(*i.s, i.from, req);
  EXPECT_EQ(i.count(Counter::kTpChannelRejected), 2u);
  EXPECT_EQ(i.sent().size(), 2u);
}

TEST(Refusal, without_room_for_a_peer) {
  Instance i;
  while (i.s->peers.alloc() != 0) {
  }
  on_record(*i.s, i.from, i.request_of_peer());
  const OutRecord rej = i.only();
  EXPECT_EQ(rej.record.type, RecordType::kRej);
  EXPECT_EQ(rej.record.reason, RecordReason::kNoResources);
  EXPECT_EQ(i.channels_alive(), 0u);
}

}  // namespace
}  // namespace ub::setup
