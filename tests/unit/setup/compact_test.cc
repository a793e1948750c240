// SPDX-License-Identifier: Apache-2.0
//
// Channels of CTP in set-up (UB Base Specification Rev 2.0, 6.2.1; docs/compact-design.md): who has one, what happens
// where there is none, and how an end learns that its peer is gone, although nothing is acknowledged.
#include "lib/transport/setup/compact_life.h"
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

ControlRecord of_ctp(ControlRecord r) {
  r.compact = true;
  return r;
}

struct Compact : Instance {
  Compact() : Instance({.mtu = 4096, .lossless = true, .compact = true}) { s->config.slow_memory = false; }
  // We want one: REQ goes out.
  uint32_t ask() {
    connect();
    return lane().channels[0];
  }
  uint32_t open_by_rtp(uint16_t mtu) {
    const uint32_t channel = channel_to(*s, s->targets[1].peer, kSmallLane);
    ControlRecord rep = reply_of_peer(channel, RecordType::kRep);
    rep.mtu = mtu;
    on_record(*s, from, rep);
    sent();
    return channel;
  }
  void refuse(uint32_t channel, RecordReason reason) {
    ControlRecord rej = of_ctp(reply_of_peer(channel, RecordType::kRej));
    rej.reason = reason;
    on_record(*s, from, rej);
  }
  Peer& peer() { return s->peers[s->targets[1].peer]; }
  Lane& lane() { return peer().lanes[kCompactLane]; }
};

// ---- who has one -----------------------------------------------------------------------------------------------

TEST(CompactChannel, needs_a_wire_that_carries_it_memory_that_answers_at_once_and_two_lanes) {
  const auto asks = [](void (*change)(CoreConfig&, LinkConfig&)) {
    Compact i;
    change(i.s->config, i.s->links[1].config);
    i.connect();
    return i.only().record.compact;
  };
  EXPECT_TRUE(asks([](CoreConfig&, LinkConfig&) {}));
  EXPECT_FALSE(asks([](CoreConfig& c, LinkConfig&) { c.compact = false; }));
  EXPECT_FALSE(asks([](CoreConfig&, LinkConfig& l) { l.compact = false; }));
  EXPECT_FALSE(asks([](CoreConfig& c, LinkConfig&) { c.slow_memory = true; }));
  EXPECT_FALSE(asks([](CoreConfig& c, LinkConfig&) { c.lanes = 1; }));
}

TEST(CompactChannel, there_is_but_one) {
  Compact i;
  ControlRecord second = of_ctp(i.request_of_peer());
  second.place = 1;
  on_record(*i.s, i.from, second);
  EXPECT_EQ(i.only().record.reason, RecordReason::kParameter);
  const uint32_t first = i.half_open(of_ctp(i.request_of_peer()));
  EXPECT_EQ(i.peer_of(first).lanes[kCompactLane].accepted[0], first);
}

TEST(CompactChannel, is_none_if_the_reply_speaks_of_rtp_and_no_channel_of_rtp_is_one) {
  Compact i;
  const uint32_t compact = i.ask(), rtp = channel_to(*i.s, i.ch(compact).peer, kSmallLane);
  on_record(*i.s, i.from, i.reply_of_peer(compact, RecordType::kRep));
  on_record(*i.s, i.from, of_ctp(i.reply_of_peer(rtp, RecordType::kRep)));
  EXPECT_EQ(i.count(Counter::kRxDropRecordParameter), 2u);
  EXPECT_FALSE(i.ch(compact).is_up() || i.ch(rtp).is_up());
  on_record(*i.s, i.from, of_ctp(i.reply_of_peer(compact, RecordType::kRep)));
  EXPECT_TRUE(i.ch(compact).is_up());
}

TEST(CompactChannel, says_how_long_packets_of_ctp_may_be_and_one_of_rtp_does_not) {
  Compact i;
  const uint32_t channel = i.ask();
  EXPECT_EQ(i.peer().compact_mtu, 4096) << "what the wire carries, until the peer answers";
  ControlRecord rep = of_ctp(i.reply_of_peer(channel, RecordType::kRep));
  rep.mtu = 2048;
  on_record(*i.s, i.from, rep);
  EXPECT_EQ(i.peer().compact_mtu, 2048);
  i.open_by_rtp(1024);
  EXPECT_EQ(i.peer().compact_mtu, 2048);
}

TEST(CompactChannel, that_opens_is_watched) {
  Compact i;
  const uint32_t channel = i.ask();
  i.s->timers.cancel(channel);
  on_record(*i.s, i.from, of_ctp(i.reply_of_peer(channel, RecordType::kRep)));
  EXPECT_EQ(i.s->timers.earliest(), i.s->now + i.s->config.keepalive_idle + i.ch(channel).give_up_after / 2);
}

// ---- the peer has none -----------------------------------------------------------------------------------------

TEST(CompactChannel, that_the_peer_refuses_leaves_all_to_rtp_and_nobody_loses_anything) {
  for (const RecordReason reason : {RecordReason::kParameter, RecordReason::kNoResources}) {
    Compact i;
    const uint32_t channel = i.ask();
    const uint32_t queue = i.queue_waiting_for(channel);
    i.events();
    i.refuse(channel, reason);
    EXPECT_FALSE(alive(i.ch(channel)));
    EXPECT_EQ(i.peer().compact_mtu, 0);
    EXPECT_EQ(i.s->queues[queue].waits_for, 0u) << "it chooses again";
    EXPECT_TRUE(i.events().empty());
    EXPECT_EQ(i.count(Counter::kTpChannelRejected), 1u);
    EXPECT_EQ(i.count(Counter::kTpChannelDeferred), 0u);
  }
}

TEST(CompactChannel, is_asked_for_again_if_the_peer_only_had_no_room) {
  for (const RecordReason reason : {RecordReason::kParameter, RecordReason::kNoResources}) {
    Compact i;
    i.refuse(i.ask(), reason);
    i.sent();
    i.connect();
    EXPECT_EQ(i.only().record.compact, reason == RecordReason::kNoResources);
  }
}

// ---- channels of ROL -------------------------------------------------------------------------------------------

struct CompactOrdered : Compact {
  CompactOrdered() {
    s->config.rol = true;
    ask();
    sent();
    ordered = channel_to(*s, s->targets[1].peer, kOrderedCompactLane);
  }
  ControlRecord of_rol(RecordType type) {
    ControlRecord r = of_ctp(reply_of_peer(ordered, type));
    r.flags |= wire::kRecordRol;
    return r;
  }
  uint32_t ordered;
};

TEST(CompactChannel, of_rol_is_another_one_and_its_records_say_so) {
  CompactOrdered i;
  const ControlRecord request = i.only().record;
  EXPECT_TRUE(request.compact);
  EXPECT_NE(request.flags & wire::kRecordRol, 0);
  EXPECT_EQ(request.flags & wire::kRecordBulk, 0);
  EXPECT_NE(i.ordered, i.lane().channels[0]);
  on_record(*i.s, i.from, of_ctp(i.reply_of_peer(i.ordered, RecordType::kRep)));
  EXPECT_FALSE(i.ch(i.ordered).is_up()) << "a reply without ROL is none to this request";
  on_record(*i.s, i.from, i.of_rol(RecordType::kRep));
  EXPECT_TRUE(i.ch(i.ordered).is_up());
  EXPECT_FALSE(i.ch(i.ordered).rol) << "it has no acknowledgements";
}

TEST(CompactChannel, of_rol_that_the_peer_refuses_leaves_the_other_one_alone) {
  for (const RecordReason reason : {RecordReason::kParameter, RecordReason::kNoResources}) {
    CompactOrdered i;
    const uint32_t queue = i.queue_waiting_for(i.ordered);
    ControlRecord refusal = i.of_rol(RecordType::kRej);
    refusal.reason = reason;
    on_record(*i.s, i.from, refusal);
    EXPECT_FALSE(alive(i.ch(i.ordered)));
    EXPECT_FALSE(i.peer().compact_rol || i.peer().refuses_compact || i.peer().refuses_rol);
    EXPECT_EQ(i.peer().refuses_compact_rol, reason == RecordReason::kParameter);
    EXPECT_EQ(i.peer().compact_mtu, 4096);
    EXPECT_EQ(i.s->queues[queue].waits_for, 0u) << "it chooses again";
  }
}

TEST(CompactChannel, of_rol_is_none_where_there_is_no_ctp) {
  CompactOrdered i;
  EXPECT_TRUE(i.peer().compact_rol);
  i.refuse(i.lane().channels[0], RecordReason::kParameter);
  EXPECT_FALSE(i.peer().compact_rol);
}

// Queues have begun their messages by RTP, and those behind them must not overtake these.
TEST(CompactChannel, that_the_peer_makes_later_changes_nothing_for_what_goes_by_rtp) {
  Compact i;
  i.refuse(i.ask(), RecordReason::kNoResources);
  i.open_by_rtp(4096);
  const uint32_t channel = i.half_open(of_ctp(i.request_of_peer()));
  on_record(*i.s, i.from, of_ctp(i.reply_of_peer(channel, RecordType::kConf)));
  ASSERT_TRUE(i.ch(channel).is_up());
  EXPECT_EQ(i.peer().compact_mtu, 0);
}

// ---- is the peer still there? ----------------------------------------------------------------------------------

struct OpenCompact : Compact {
  OpenCompact() : channel(ask()) {
    s->timers.cancel(channel);
    on_record(*s, from, of_ctp(reply_of_peer(channel, RecordType::kRep)));
    sent();
  }
  Channel& it() { return ch(channel); }
  // A request leaves.
  void request() {
    if (lane().unanswered++ == 0) await_answers(*s, channel);
  }
  Duration half() { return it().give_up_after / 2; }
  Duration eighth() { return it().give_up_after / 8; }
  uint32_t channel;
};

TEST(CompactSilence, makes_us_ask_from_half_of_the_time_on_and_at_its_end_say_that_the_channel_is_gone) {
  for (const bool idle : {false, true}) {
    OpenCompact i;
    if (!idle) i.request();
    const Instant begin = i.s->now + (idle ? i.s->config.keepalive_idle : Duration{});
    Instant due = begin + i.half();
    for (; due < begin + i.it().give_up_after; due = due + i.eighth()) {
      EXPECT_EQ(i.s->timers.earliest(), due);
      i.timer(i.channel);
      EXPECT_EQ(i.only().record.type, RecordType::kPing);
    }
    EXPECT_EQ(i.s->timers.earliest(), begin + i.it().give_up_after);
    i.timer(i.channel);
    EXPECT_EQ(i.only().record.type, RecordType::kClose) << "the peer may live, and wait for us";
    EXPECT_FALSE(alive(i.it()));
  }
}

// Nobody had to say anything before.
TEST(CompactSilence, counts_from_the_first_request_that_waits) {
  OpenCompact i;
  i.s->now += i.s->config.keepalive_idle;
  i.request();
  const Instant begin = i.s->now;
  EXPECT_EQ(i.s->timers.earliest(), begin + i.half());
  end_if_silent(*i.s, i.channel);
  EXPECT_TRUE(alive(i.it()));
  i.s->now = begin + i.it().give_up_after - nanoseconds(1);
  on_channel_timer(*i.s, i.channel);
  EXPECT_TRUE(alive(i.it()));
}

// A request ended for lack of an answer. The channel is about to end of the same silence: it ends now.
TEST(CompactSilence, shortly_before_the_end_is_enough_when_a_request_timed_out) {
  for (const Duration before : {nanoseconds(1), nanoseconds(0)}) {
    OpenCompact i;
    i.request();
    i.s->now += i.it().give_up_after - i.eighth() - before;
    end_if_silent(*i.s, i.channel);
    EXPECT_EQ(alive(i.it()), before.ns != 0);
  }
}

TEST(CompactSilence, where_no_answer_is_awaited_is_none) {
  OpenCompact i;
  i.s->now += seconds(100);
  end_if_silent(*i.s, i.channel);
  EXPECT_TRUE(alive(i.it()));
}

// Both ends are here, and the requests of the lane are those of one of them.
TEST(CompactSilence, towards_ourselves_counts_at_the_end_that_asks) {
  Compact i;
  i.peer_id = i.s->config.self;
  const uint32_t asking = i.ask();
  for (std::vector<OutRecord> all = i.sent(); !all.empty(); all = i.sent()) {
    for (const OutRecord& out : all) on_record(*i.s, i.from, out.record);
  }
  const uint32_t answering = i.lane().accepted[0];
  ASSERT_TRUE(i.ch(asking).is_up() && i.ch(answering).is_up());
  i.lane().unanswered = 1;
  await_answers(*i.s, asking);
  i.s->now += i.ch(asking).give_up_after;
  end_if_silent(*i.s, answering);
  EXPECT_TRUE(alive(i.ch(answering)));
  end_if_silent(*i.s, asking);
  EXPECT_FALSE(alive(i.ch(asking)));
}

}  // namespace
}  // namespace ub::setup
