// SPDX-License-Identifier: Apache-2.0
//
// The end of a channel: closing, silence, links that go down (docs/wire.md), and what it leaves behind: nothing.
#include "tests/unit/setup/instance.h"
#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/test_host.h"

namespace ub::setup {
namespace {

// ---- timers of set-up ------------------------------------------------------------------------------------------

TEST(SetupTimer, that_fires_early_waits_for_its_time) {
  const auto check = [](Instance& i, uint32_t channel) {
    i.sent();
    const Instant due = i.ch(channel).setup_at;
    i.s->timers.cancel(channel);
    i.s->now = due - nanoseconds(1);
    on_channel_timer(*i.s, channel);
    EXPECT_TRUE(i.sent().empty());
    EXPECT_EQ(i.s->timers.earliest(), due);
    i.timer(channel);
    EXPECT_EQ(i.sent().size(), 1u);
  };
  Instance asking, answering, closing;
  check(asking, asking.connect());
  check(answering, answering.half_open(answering.request_of_peer()));
  const uint32_t channel = closing.open_as_initiator();
  close_all(*closing.s);
  check(closing, channel);
}

TEST(SetupTimer, a_reply_is_repeated_at_doubling_pauses) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer());
  Duration pause = i.s->config.setup_retry_min;
  for (int n = 0; n < 4; ++n) {
    const Instant before = i.s->now;
    i.timer(channel);
    EXPECT_EQ(i.s->now - before, pause);
    EXPECT_EQ(i.only().record.type, RecordType::kRep);
    pause = pause * 2;
  }
}

TEST(SetupTimer, a_close_is_repeated_at_doubling_pauses) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  i.s->now += seconds(1);
  close_all(*i.s);
  i.sent();
  i.s->timers.cancel(channel);
  i.s->timers.arm(channel, i.ch(channel).setup_at);
  Duration pause = i.s->config.setup_retry_min;
  for (int n = 0; n < 4; ++n) {
    const Instant before = i.s->now;
    i.timer(channel);
    EXPECT_EQ(i.s->now - before, pause);
    EXPECT_EQ(i.only().record.type, RecordType::kClose);
    pause = pause * 2;
  }
}

// The peer asked and fell silent; what we want of it is tried on our own account.
TEST(SetupTimer, an_unproven_channel_that_requests_wait_for_asks_itself) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer());
  i.queue_waiting_for(channel);
  const uint32_t attempt = i.ch(channel).attempt;
  while (i.ch(channel).state == ChannelState::kHalfOpen) {
    i.sent();
    i.timer(channel);
  }
  const OutRecord req = i.only();
  EXPECT_EQ(req.record.type, RecordType::kReq);
  EXPECT_EQ(req.record.receiver_tpn, 0u);
  EXPECT_EQ(req.record.wanted_uasid, i.peer_id.uasid);
  EXPECT_NE(req.record.attempt, attempt);
  EXPECT_EQ(req.pad_to_mtu, 4096u) << "the offers begin anew";
  EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
  EXPECT_EQ(i.ch(channel).created_at, i.s->now);
  EXPECT_TRUE(i.ch(channel).initiator);
  EXPECT_EQ(i.peer_of(channel).lanes[0].accepted[0], 0u);
  EXPECT_EQ(i.peer_of(channel).lanes[0].channels[0], channel);
}

TEST(SetupTimer, what_the_peer_wanted_before_does_not_bind_the_new_attempt) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.selective = false;
  req.flags = 0;
  const uint32_t channel = i.half_open(req);
  ASSERT_TRUE(i.ch(channel).go_back_n);
  i.queue_waiting_for(channel);
  while (i.ch(channel).state == ChannelState::kHalfOpen) {
    i.sent();
    i.timer(channel);
  }
  const OutRecord ours = i.only();
  EXPECT_TRUE(ours.record.selective);
  EXPECT_EQ(ours.record.flags, i.request_of_peer().flags);
}

TEST(SetupTimer, so_it_is_on_the_bulk_lane) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.flags |= wire::kRecordBulk;
  const uint32_t channel = i.half_open(req);
  i.queue_waiting_for(channel);
  while (i.ch(channel).state == ChannelState::kHalfOpen) i.timer(channel);
  EXPECT_EQ(i.peer_of(channel).lanes[1].accepted[0], 0u);
  EXPECT_EQ(i.peer_of(channel).lanes[1].channels[0], channel);
}

TEST(SetupTimer, what_is_not_confirmed_ends_exactly_after_two_seconds) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer());
  i.ch(channel).setup_at = i.s->now + seconds(3);
  i.s->now += seconds(2) - nanoseconds(1);
  on_channel_timer(*i.s, channel);
  EXPECT_TRUE(alive(i.ch(channel)));
  i.s->now += nanoseconds(1);
  on_channel_timer(*i.s, channel);
  EXPECT_FALSE(alive(i.ch(channel)));
}

TEST(SetupTimer, a_peer_that_never_answers_is_given_up_exactly_in_time) {
  Instance i;
  const uint32_t channel = i.connect();
  i.ch(channel).setup_at = i.s->now + seconds(60);
  i.s->now += i.s->config.channel_timeout - nanoseconds(1);
  on_channel_timer(*i.s, channel);
  EXPECT_TRUE(alive(i.ch(channel)));
  i.s->now += nanoseconds(1);
  on_channel_timer(*i.s, channel);
  EXPECT_FALSE(alive(i.ch(channel)));
}

TEST(SetupTimer, a_close_that_nobody_answers_ends_exactly_after_a_second) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  close_all(*i.s);
  i.ch(channel).setup_at = i.s->now + seconds(60);
  i.s->now += seconds(1) - nanoseconds(1);
  on_channel_timer(*i.s, channel);
  EXPECT_TRUE(alive(i.ch(channel)));
  i.s->now += nanoseconds(1);
  on_channel_timer(*i.s, channel);
  EXPECT_FALSE(alive(i.ch(channel)));
}

// ---- an open channel -------------------------------------------------------------------------------------------

struct Open : Instance {
  Open() : channel(open_as_initiator()) { s->timers.cancel(channel); }
  Channel& it() { return ch(channel); }
  // As if so many packets were in flight.
  void in_flight(uint32_t packets) {
    for (uint32_t n = 0; n < packets; ++n) {
      tp::packet_sent(*s, channel, *tp::begin_message(*s, it()), s->now);
      it().in_flight.back(s->messages).complete = true;
    }
  }
  void fire_at(Instant at) {
    s->now = at;
    s->timers.cancel(channel);
    on_channel_timer(*s, channel);
  }
  uint32_t channel;
};

TEST(OpenTimer, a_timeout_comes_when_its_time_has_come) {
  Open i;
  i.in_flight(1);
  const Instant due = i.it().rto_at;
  i.fire_at(due - nanoseconds(1));
  EXPECT_EQ(i.count(Counter::kTpTimeout), 0u);
  EXPECT_EQ(i.s->timers.earliest(), due);
  i.fire_at(due);
  EXPECT_EQ(i.count(Counter::kTpTimeout), 1u);
  EXPECT_EQ(i.s->timers.earliest(), i.it().rto_at);
}

// 6.4.2.1: no progress for so long, and the peer is dead.
TEST(OpenTimer, silence_ends_it_exactly_in_time) {
  for (Duration late : {nanoseconds(-1), nanoseconds(0)}) {
    Open i;
    i.in_flight(1);
    const Instant end = i.it().progress_at + i.it().give_up_after;
    i.it().rto_at = i.s->now;
    i.fire_at(end + late);
    EXPECT_EQ(alive(i.it()), late.ns != 0);
  }
}

TEST(OpenTimer, who_waits_for_its_own_memory_hears_no_silence) {
  Open i;
  i.in_flight(1);
  HeldFrame& h = tp::take_held(*i.s, i.channel);
  h.pending = 1;
  tp::append_held(*i.s, i.channel, h, i.s->now);
  i.fire_at(i.it().progress_at + i.it().give_up_after * 2);
  EXPECT_TRUE(alive(i.it()));
}

TEST(OpenTimer, an_idle_channel_asks_whether_the_peer_lives_exactly_in_time) {
  Open i;
  const Instant idle_at = i.it().heard_at + i.s->config.keepalive_idle;
  i.fire_at(idle_at - nanoseconds(1));
  EXPECT_FALSE(i.it().keepalive_due);
  EXPECT_EQ(i.s->timers.earliest(), idle_at);
  i.fire_at(idle_at);
  EXPECT_TRUE(i.it().keepalive_due);
  EXPECT_TRUE(i.it().on_active_list);
  EXPECT_EQ(i.s->timers.earliest(), idle_at + i.s->config.keepalive_idle);
}

TEST(OpenTimer, who_was_heard_or_got_on_is_not_idle) {
  Open i;
  const Instant idle_at = i.it().heard_at + i.s->config.keepalive_idle;
  i.it().progress_at = i.it().heard_at + milliseconds(5);
  i.fire_at(idle_at);
  EXPECT_FALSE(i.it().keepalive_due);
  i.it().heard_at += milliseconds(7);
  i.fire_at(idle_at + milliseconds(6));
  EXPECT_FALSE(i.it().keepalive_due);
  EXPECT_EQ(i.s->timers.earliest(), idle_at + milliseconds(7));
}

TEST(OpenTimer, with_packets_in_flight_nobody_needs_to_ask) {
  Open i;
  i.in_flight(1);
  i.it().rto_at = i.it().heard_at + seconds(60);
  i.it().give_up_after = seconds(100);
  i.fire_at(i.it().heard_at + i.s->config.keepalive_idle);
  EXPECT_FALSE(i.it().keepalive_due);
  EXPECT_EQ(i.s->timers.earliest(), i.s->now + i.s->config.keepalive_idle);
}

// ---- silence ---------------------------------------------------------------------------------------------------

TEST(Silence, on_one_lane_is_silence_on_the_other_unless_that_was_heard) {
  for (Duration heard_before : {seconds(4), seconds(4) - nanoseconds(1)}) {
    Open i;
    const uint32_t bulk = channel_to(*i.s, i.it().peer, true);
    on_record(*i.s, i.from, i.reply_of_peer(bulk, RecordType::kRep));
    i.in_flight(1);
    const Instant end = i.it().progress_at + i.it().give_up_after;
    i.it().rto_at = end;
    i.ch(bulk).heard_at = end - heard_before;
    i.fire_at(end);
    EXPECT_FALSE(alive(i.it()));
    EXPECT_EQ(alive(i.ch(bulk)), heard_before != i.s->config.channel_timeout);
  }
}

TEST(Silence, ends_a_set_up_on_the_other_lane) {
  Open i;
  const uint32_t bulk = channel_to(*i.s, i.it().peer, true);
  i.in_flight(1);
  i.it().rto_at = i.s->now;
  i.fire_at(i.it().progress_at + i.it().give_up_after);
  EXPECT_FALSE(alive(i.ch(bulk)));
  EXPECT_EQ(i.s->peers.in_use(), 1u) << "a target names it";
}

TEST(Silence, does_not_end_what_closes_on_the_other_lane) {
  Open i;
  const uint32_t bulk = channel_to(*i.s, i.it().peer, true);
  on_record(*i.s, i.from, i.reply_of_peer(bulk, RecordType::kRep));
  i.ch(bulk).state = ChannelState::kClosing;
  i.in_flight(1);
  i.it().rto_at = i.s->now;
  i.fire_at(i.it().progress_at + i.it().give_up_after);
  EXPECT_TRUE(alive(i.ch(bulk))) << "it has a time of its own";
}

TEST(Silence, of_a_peer_that_never_answered_ends_both_lanes_and_forgets_it) {
  Instance i;
  const uint32_t small = i.connect();
  const uint32_t peer = i.ch(small).peer;
  const uint32_t bulk = channel_to(*i.s, peer, true);
  EXPECT_EQ(remove_target(*i.s, 1), Status::kOk);
  i.s->now += i.s->config.channel_timeout;
  on_channel_timer(*i.s, bulk);
  EXPECT_EQ(i.channels_alive(), 0u);
  EXPECT_EQ(i.s->peers.in_use(), 0u);
}

// It has asked nobody yet: a queue wants it in place of one that has just died.
TEST(Silence, of_one_channel_ends_none_that_has_just_begun) {
  Instance i;
  const uint32_t small = i.connect();
  i.s->now += i.s->config.channel_timeout;
  const uint32_t bulk = channel_to(*i.s, i.ch(small).peer, kBulkLane);
  on_channel_timer(*i.s, small);
  EXPECT_FALSE(alive(i.ch(small)));
  EXPECT_TRUE(alive(i.ch(bulk)));
}

// A request ended for lack of an answer. The channel is about to end of the same silence: it ends now.
TEST(Silence, shortly_before_the_end_is_enough_when_a_request_timed_out) {
  for (Duration before : {nanoseconds(1), nanoseconds(0)}) {
    Open i;
    i.in_flight(1);
    const Duration limit = i.it().give_up_after - i.it().give_up_after / 8;
    i.s->now = i.it().progress_at + limit - before;
    end_if_silent(*i.s, i.channel);
    EXPECT_EQ(alive(i.it()), before.ns != 0);
  }
}

TEST(Silence, with_nothing_in_flight_is_none) {
  Open i;
  i.s->now += seconds(100);
  end_if_silent(*i.s, i.channel);
  EXPECT_TRUE(alive(i.it()));
}

TEST(Silence, of_a_channel_that_is_closing_is_not_looked_at) {
  Open i;
  i.in_flight(1);
  close_all(*i.s);
  i.s->now += seconds(100);
  end_if_silent(*i.s, i.channel);
  EXPECT_TRUE(alive(i.it()));
}

// ---- death -----------------------------------------------------------------------------------------------------

TEST(Death, of_an_open_channel_is_told_and_its_peer_forgets_it) {
  Open i;
  i.events();
  Peer& peer = i.peer_of(i.channel);
  peer.lanes[0].accepted[0] = i.channel;
  peer.lanes[1].channels[0] = peer.lanes[1].accepted[0] = 7;
  kill_channel(*i.s, i.channel);
  const std::vector<Event> events = i.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kChannelDead);
  EXPECT_EQ(events[0].object, i.it().tpn);
  EXPECT_EQ(peer.lanes[0].channels[0], 0u);
  EXPECT_EQ(peer.lanes[0].accepted[0], 0u);
  EXPECT_EQ(peer.lanes[1].channels[0], 7u);
  EXPECT_EQ(peer.lanes[1].accepted[0], 7u);
  EXPECT_EQ(peer.users, 1u);
}

TEST(Death, of_a_channel_that_others_replaced_leaves_them_alone) {
  Open i;
  Peer& peer = i.peer_of(i.channel);
  peer.lanes[0].channels[0] = peer.lanes[0].accepted[0] = 7;
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(peer.lanes[0].channels[0], 7u);
  EXPECT_EQ(peer.lanes[0].accepted[0], 7u);
}

TEST(Death, of_a_channel_that_was_never_up_is_nobodys_loss) {
  Instance i;
  kill_channel(*i.s, i.connect());
  EXPECT_TRUE(i.events().empty());
  EXPECT_EQ(i.count(Counter::kTpChannelDead), 0u);
}

TEST(Death, while_closing_is_told_too) {
  Open i;
  close_all(*i.s);
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.count(Counter::kTpChannelDead), 1u);
}

struct Receiving : Open {
  Receiving() {
    ch(channel).open.receive = receive = s->receives.alloc();
    s->jfcs[s->jfcs.alloc()].reserved = 1;
    s->receives[receive].jfr = s->jfrs.alloc();
    s->receives[receive].jfc = 1;
    s->receives[receive].counted = true;
  }
  uint32_t receive;
};

TEST(Death, gives_back_the_receive_of_an_open_message) {
  Receiving i;
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.s->jfrs[1].returned.back(), i.receive);
  EXPECT_EQ(i.it().open.receive, 0u);
  EXPECT_TRUE(i.s->receives_with_late_copies.empty());
}

TEST(Death, gives_back_a_receive_when_nothing_writes_into_it_any_more) {
  Receiving i;
  i.it().open.copies = 2;
  kill_channel(*i.s, i.channel);
  EXPECT_TRUE(i.s->jfrs[1].returned.empty());
  EXPECT_EQ(i.it().open.receive, 0u);
  EXPECT_EQ(i.s->receives_with_late_copies.back(), i.receive);
  EXPECT_EQ(i.s->receives[i.receive].copies, 2u);
  EXPECT_EQ(i.s->receives[i.receive].dead_tpn, i.it().tpn);
}

TEST(Death, gives_back_the_frames_that_wait_for_memory) {
  Open i;
  for (int n = 0; n < 2; ++n) {
    HeldFrame& h = tp::take_held(*i.s, i.channel);
    h.pending = 1;
    tp::append_held(*i.s, i.channel, h, i.s->now);
  }
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.it().held.count, 0u);
  EXPECT_EQ(i.s->held.in_use_count(), 0u);
  EXPECT_EQ(i.s->held.orphan_count(), 2u);
  Open without;
  kill_channel(*without.s, without.channel);
  EXPECT_EQ(without.s->held.orphan_count(), 0u);
}

TEST(Death, of_a_channel_that_was_held_back_holds_nothing_back) {
  Open i;
  set_held_back(*i.s, &i.it().held_back, true);
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.s->held_back, 0u);
  EXPECT_FALSE(i.it().held_back);
}

TEST(Death, takes_waiting_queues_off_its_list) {
  Open i;
  const uint32_t queue = i.queue_waiting_for(i.channel);
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.s->queues[queue].waits_for, 0u);
  EXPECT_TRUE(i.it().queues.empty());
}

TEST(Death, ends_reads_that_it_served) {
  Open i;
  ReadJob job{};
  job.channel = i.channel;
  ta::start_read_job(*i.s, i.channel, job);
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.s->jobs.in_use(), 0u);
  EXPECT_EQ(i.s->messages.in_use(), 0u);
}

// ---- closing ---------------------------------------------------------------------------------------------------

TEST(Closing, begins_its_own_time) {
  Open i;
  i.it().setup_tries = 5;
  i.s->now += seconds(2);
  close_all(*i.s);
  EXPECT_EQ(i.only().record.type, RecordType::kClose);
  EXPECT_EQ(i.it().created_at, i.s->now);
  EXPECT_EQ(i.it().setup_tries, 0);
  EXPECT_EQ(i.it().setup_at, i.s->now + i.s->config.setup_retry_min);
}

TEST(Closing, ends_channels_at_once_that_the_peer_does_not_count_on) {
  Instance i;
  const uint32_t asking = i.connect();
  i.sent();
  close_all(*i.s);
  EXPECT_FALSE(alive(i.ch(asking)));
  EXPECT_TRUE(i.sent().empty());
}

TEST(Ended, a_channel_leaves_no_counts_to_the_next_one_with_its_record) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  i.s->count(channel, ChannelCount::kDuplicate, 5);
  kill_channel(*i.s, channel);
  i.s->now += std::max(i.s->config.id_rest, i.s->config.rto_max);
  ASSERT_EQ(i.open_as_initiator(), channel);
  EXPECT_EQ(i.s->channel_counts[channel], ChannelCounts{});
}

TEST(Closing, takes_every_channel_that_lives) {
  Instance i;
  std::vector<uint32_t> channels;
  for (uint32_t uasid : {2u, 3u, 4u}) {
    i.peer_id.uasid = uasid;
    channels.push_back(i.open_as_initiator());
  }
  kill_channel(*i.s, channels[1]);
  close_all(*i.s);
  EXPECT_EQ(i.sent().size(), 2u);
  EXPECT_EQ(i.ch(channels[0]).state, ChannelState::kClosing);
  EXPECT_EQ(i.ch(channels[2]).state, ChannelState::kClosing);
}

TEST(Closing, of_one_application_leaves_those_of_others) {
  Instance i;
  std::vector<uint32_t> of;
  for (Owner owner : {Owner{1}, Owner{2}}) {
    of.push_back(i.connect(owner));
    on_record(*i.s, i.from, i.reply_of_peer(of.back(), RecordType::kRep));
  }
  i.sent();
  const uint32_t peer = i.ch(of[0]).peer;
  close_owner(*i.s, 1);
  EXPECT_EQ(i.only().record.sender_tpn, i.ch(of[0]).tpn);
  EXPECT_EQ(i.s->peers[peer].lanes[0].channels[0], 0u) << "the next one to get its number makes its own";
  EXPECT_EQ(i.ch(of[1]).state, ChannelState::kOpen);
  EXPECT_NE(i.peer_of(of[1]).lanes[0].channels[0], 0u);
  close_owner(*i.s, 1);
  EXPECT_TRUE(i.sent().empty()) << "it is closing already";
  EXPECT_EQ(i.ch(of[0]).state, ChannelState::kClosing);
}

TEST(Closing, of_one_application_takes_both_lanes) {
  Open i;
  const uint32_t peer = i.it().peer, bulk = channel_to(*i.s, peer, true);
  on_record(*i.s, i.from, i.reply_of_peer(bulk, RecordType::kRep));
  close_owner(*i.s, 0);
  EXPECT_EQ(i.ch(bulk).state, ChannelState::kClosing);
  EXPECT_EQ(i.s->peers[peer].lanes[1].channels[0], 0u);
}

TEST(Closing, of_one_application_leaves_those_that_visitors_asked_for) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.application = 3;
  const uint32_t channel = i.open_as_target(req);
  close_owner(*i.s, 0);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kOpen);
}

TEST(Closing, of_one_application_leaves_a_lane_that_another_channel_has) {
  Open i;
  Peer& peer = i.peer_of(i.channel);
  peer.lanes[0].channels[0] = 7;
  close_owner(*i.s, 0);
  EXPECT_EQ(peer.lanes[0].channels[0], 7u);
  EXPECT_EQ(i.it().state, ChannelState::kClosing);
}

TEST(Closing, of_one_application_ends_its_requests_at_once) {
  ta::Requests r;
  r.post(WrOp::kWrite);
  ASSERT_EQ(r.sent().size(), 1u);
  close_owner(*r.s, 5);
  EXPECT_EQ(r.outcomes(), ta::Outcomes{CrStatus::kAckTimeout});
  EXPECT_EQ(r.ch().state, ChannelState::kClosing);
}

// The number of the application may be that of another one by now.
TEST(Closing, that_ends_leaves_the_requests_on_the_channel_that_took_its_place) {
  ta::Requests r;
  close_owner(*r.s, 5);
  const uint32_t fresh = channel_to(*r.s, r.ch().peer, false);
  ASSERT_NE(fresh, r.channel);
  r.open(fresh);
  r.post(WrOp::kWrite);
  ASSERT_EQ(r.sent(fresh).size(), 1u);
  kill_channel(*r.s, r.channel);
  EXPECT_TRUE(r.outcomes().empty());
}

TEST(Closing, is_noted_like_every_other_state_of_a_channel) {
  Instance i;
  TestHost host;
  i.s->looker.begin(host);
  const uint32_t channel = i.open_as_initiator();
  close_all(*i.s);
  kill_channel(*i.s, channel);
  std::vector<Note> all;
  for (auto state : {ChannelState::kReqSent, ChannelState::kOpen, ChannelState::kClosing, ChannelState::kDead}) {
    all.push_back({Stage::kChannelState, channel, static_cast<uint32_t>(state)});
  }
  EXPECT_EQ(host.noted(Stage::kChannelState), all);
}

TEST(Closing, that_is_asked_for_by_the_peer_is_counted) {
  Open i;
  on_record(*i.s, i.from, i.reply_of_peer(i.channel, RecordType::kClose));
  EXPECT_FALSE(alive(i.it()));
  EXPECT_EQ(i.count(Counter::kTpChannelClosed), 1u);
}

// ---- PONG ------------------------------------------------------------------------------------------------------

TEST(Pong, that_says_restarted_ends_the_channel) {
  Open i;
  ControlRecord pong = i.reply_of_peer(i.channel, RecordType::kPong);
  pong.reason = RecordReason::kRestarted;
  on_record(*i.s, i.from, pong);
  EXPECT_FALSE(alive(i.it()));
}

TEST(Ping, names_the_life_that_is_meant_or_none) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  ControlRecord ping = i.reply_of_peer(channel, RecordType::kPing);
  ping.receiver_incarnation = 0;
  on_record(*i.s, i.from, ping);
  EXPECT_EQ(i.only().record.reason, RecordReason::kNone) << "it does not know";
}

// ---- RESET -----------------------------------------------------------------------------------------------------

TEST(Reset, a_second_begins_anew_when_it_is_over) {
  Instance i;
  i.s->now += seconds(10);
  for (int n = 0; n < 100; ++n) on_unknown_tpn(*i.s, i.from, 5, 6);
  EXPECT_EQ(i.sent().size(), 100u);
  EXPECT_EQ(i.count(Counter::kTpTxReset), 100u);
  i.s->now += seconds(1) - nanoseconds(1);
  on_unknown_tpn(*i.s, i.from, 5, 6);
  EXPECT_TRUE(i.sent().empty());
  i.s->now += nanoseconds(1);
  for (int n = 0; n < 101; ++n) on_unknown_tpn(*i.s, i.from, 5, 6);
  EXPECT_EQ(i.sent().size(), 100u);
}

}  // namespace
}  // namespace ub::setup
