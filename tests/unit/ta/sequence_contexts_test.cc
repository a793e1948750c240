// SPDX-License-Identifier: Apache-2.0
//
// The target's part of ROT: it gives out sequence contexts, and executes a strong request of one when all before it
// were executed, by whichever channel they came (UB Base Specification Rev 2.0, 7.3.3.3).
#include "lib/transport/ta/sequence_contexts.h"

#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

constexpr uint8_t kNo = wire::kOdrNone, kRo = wire::kOdrRelaxed, kSo = wire::kOdrStrong;
const std::pair<int, int> kRefused{wire::kRspRnr, kSoon};

// A peer that has a context.
struct InContext : Delivery {
  explicit InContext(const Options& o = {}) : Delivery(o), scid(ask()) {}

  wire::TaPacket asking() const {
    wire::TaPacket p = on_memory(TaOpcode::kWrite, 8, 200 * 1024);
    p.req.alloc = true;
    return p;
  }
  // The SCID that the answer grants; 0: none.
  uint32_t ask() {
    give(asking(), 8);
    finish_copies();
    const std::vector<tp::TxMessage> all = answers();
    if (all.size() != 1 || all[0].rspst != wire::kRspOk) return 0;
    return (all[0].source & kAnswerGrants) != 0 ? all[0].tassn.value() : 0;
  }
  wire::TaPacket numbered(uint32_t number, uint8_t odr, wire::TaPacket p) const {
    p.req.rc_type = wire::kRcTypeSequenceContext;
    p.req.rc_id = scid;
    p.req.tassn = Tassn(number);
    p.req.odr = odr;
    return p;
  }
  // A WRITE of 8 bytes, at a place of its own.
  void write(uint32_t number, uint8_t odr) {
    give(numbered(number, odr, on_memory(TaOpcode::kWrite, 8, 8 * number)), 8, true, 8 * number);
  }
  bool written(uint32_t number) const { return holds(8, 8 * number, 8 * number); }
  uint32_t context() const { return context_of(*s, ch_peer(), scid); }
  uint32_t ch_peer() const { return s->channels[channel].peer; }
  uint32_t early() const { return s->contexts[context()].early_count; }
  // By which numbers the answers name their requests, all of them as requests of the context.
  std::vector<uint32_t> answered() {
    std::vector<uint32_t> all;
    for (const tp::TxMessage& m : answers()) {
      EXPECT_EQ(m.source, kPeerRcid | kAnswerToContext);
      for (uint32_t i = 0; i <= m.rspinfo; ++i) all.push_back((m.tassn + i).value());
    }
    return all;
  }
  // Nothing of the context is left in the pools.
  void expect_nothing_held() {
    EXPECT_EQ(s->parked.in_use(), 0u);
    EXPECT_EQ(s->kept.in_use(), 0u);
    EXPECT_EQ(ch().parked, 0u);
    EXPECT_EQ(ch().early_count, 0u);
  }

  uint32_t scid;
};

// ---- giving out ------------------------------------------------------------------------------------------------

TEST(Granting, the_answer_to_who_asks_names_the_context) {
  InContext d;
  ASSERT_NE(d.scid, 0u);
  ASSERT_NE(d.context(), 0u);
  EXPECT_EQ(d.s->contexts[d.context()].rcid, kPeerRcid);
  EXPECT_EQ(d.peer().contexts, 1u);
}

TEST(Granting, no_other_success_joins_that_answer) {
  InContext d;
  d.give(d.asking(), 8);
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  const auto all = d.answers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].source, kPeerRcid | kAnswerGrants);
  EXPECT_EQ(all[0].rspinfo, 0);
  EXPECT_EQ(all[1].source, kPeerRcid);
  EXPECT_EQ(all[1].rspinfo, 1);
}

TEST(Granting, who_fails_gets_none) {
  InContext d;
  wire::TaPacket p = d.asking();
  p.token_value = kToken + 1;
  d.give(p, 8);
  const auto all = d.answers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].source, kPeerRcid);
  EXPECT_EQ(d.peer().contexts, 1u);
}

TEST(Granting, nor_does_anybody_on_a_channel_of_rol_or_from_within_a_context) {
  InContext d;
  wire::TaPacket p = d.asking();
  d.give(d.numbered(0, kRo, p), 8);
  EXPECT_EQ(d.answered(), std::vector<uint32_t>{0});
  EXPECT_EQ(d.peer().contexts, 1u);
  d.ch().rol = true;
  d.give(p, 8);
  EXPECT_EQ(d.peer().contexts, 1u);
}

TEST(Granting, who_asks_again_has_given_up_the_former_one) {
  InContext d;
  const uint32_t former = d.scid;
  d.write(1, kSo);
  EXPECT_EQ(d.early(), 1u);
  d.scid = d.ask();
  ASSERT_NE(d.scid, 0u);
  EXPECT_NE(d.scid, former);
  EXPECT_EQ(d.peer().contexts, 1u);
  EXPECT_EQ(context_of(*d.s, d.ch_peer(), former), 0u);
  EXPECT_EQ(d.answered(), std::vector<uint32_t>{}) << "nobody waits for the answer to what was held";
  d.expect_nothing_held();
}

TEST(Granting, a_context_that_has_ended_is_no_former_one) {
  InContext d;
  const uint32_t other = open_context(*d.s, d.ch_peer(), kPeerRcid + 1);
  ASSERT_NE(other, 0u);
  close_context(*d.s, d.context());
  EXPECT_NE(open_context(*d.s, d.ch_peer(), kPeerRcid), 0u);
  EXPECT_EQ(d.peer().contexts, 2u);
  EXPECT_EQ(d.s->contexts.in_use(), 2u);
  EXPECT_NE(context_of(*d.s, d.ch_peer(), other), 0u);
}

TEST(Granting, a_context_begins_with_number_0_whatever_its_record_was_used_for) {
  InContext d;
  d.write(0, kSo);
  d.answers();
  d.scid = d.ask();
  d.write(0, kSo);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(Granting, is_told_to_who_looks) {
  InContext d;
  d.s->looker.begin(d.host);
  d.scid = d.ask();
  EXPECT_EQ(d.host.noted(Stage::kContextOpened),
            (std::vector<Note>{{Stage::kContextOpened, d.context(), kPeerRcid}}));
}

// Of another peer than that of the channel.
uint32_t another_peer(InContext& d) { return d.s->targets[d.add(d.target_config(3))].peer; }

TEST(Granting, two_peers_may_name_their_queues_alike) {
  InContext d;
  const uint32_t other = another_peer(d);
  EXPECT_NE(open_context(*d.s, other, kPeerRcid + 1), 0u);
  EXPECT_NE(open_context(*d.s, other, kPeerRcid), 0u);
  EXPECT_NE(d.context(), 0u);
  EXPECT_EQ(d.s->peers[other].contexts, 2u);
  EXPECT_EQ(d.peer().contexts, 1u);
}

TEST(Granting, the_contexts_of_a_peer_end_together_and_those_of_others_stay) {
  InContext d;
  const uint32_t other = another_peer(d);
  uint32_t scids[3];
  for (uint32_t i = 0; i < 3; ++i) scids[i] = open_context(*d.s, other, kPeerRcid + i);
  close_context(*d.s, context_of(*d.s, other, scids[0]));
  close_contexts_of(*d.s, other);
  for (const uint32_t scid : scids) EXPECT_EQ(context_of(*d.s, other, scid), 0u);
  EXPECT_EQ(d.s->peers[other].contexts, 0u);
  EXPECT_NE(d.context(), 0u);
  EXPECT_EQ(d.s->contexts.in_use(), 1u);
}

TEST(Granting, a_peer_has_no_more_than_its_share) {
  InContext d;
  uint32_t granted = 1;
  while (open_context(*d.s, d.ch_peer(), 5000 + granted) != 0) ++granted;
  EXPECT_EQ(granted, kSequenceContexts / 2);
  wire::TaPacket p = d.asking();
  p.req.rc_id = kPeerRcid + 1;
  d.give(p, 8);
  const auto all = d.answers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].source, kPeerRcid + 1) << "a success, without a context";
  EXPECT_EQ(all[0].rspst, wire::kRspOk);
}

// ---- whose turn it is ------------------------------------------------------------------------------------------

TEST(Turns, a_strong_request_waits_for_all_before_it) {
  InContext d;
  d.write(2, kSo);
  d.write(1, kRo);
  EXPECT_TRUE(d.written(1)) << "a relaxed one waits for nobody";
  EXPECT_FALSE(d.written(2));
  EXPECT_EQ(d.answered(), std::vector<uint32_t>{1});
  EXPECT_EQ(d.count(Counter::kTaRxEarly), 1u);
  d.write(0, kRo);
  EXPECT_TRUE(d.written(2));
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 2}));
  d.expect_nothing_held();
}

TEST(Turns, in_order_nothing_waits) {
  InContext d;
  for (uint32_t n = 0; n < 300; ++n) {
    d.write(n, n % 3 == 0 ? kRo : kSo);
    ASSERT_TRUE(d.written(n)) << n;
  }
  EXPECT_EQ(d.count(Counter::kTaRxEarly), 0u);
  EXPECT_EQ(d.answered().size(), 300u);
}

TEST(Turns, strong_ones_that_come_early_go_one_after_the_other) {
  InContext d;
  for (uint32_t n : {3u, 1u, 4u, 2u}) d.write(n, kSo);
  EXPECT_EQ(d.early(), 4u);
  d.write(0, kSo);
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  for (uint32_t n = 0; n < 5; ++n) EXPECT_TRUE(d.written(n));
  d.expect_nothing_held();
}

TEST(Turns, what_waits_delays_nobody_else_on_the_channel) {
  InContext d;
  d.write(1, kSo);
  d.give(d.on_memory(TaOpcode::kWrite, 64, 4096), 64);
  EXPECT_TRUE(d.holds(64, 4096));
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().expected, d.ch().delivered);
}

TEST(Turns, one_without_an_order_is_waited_for_until_it_was_seen) {
  InContext d;
  d.the_jfr().rnr_code = 3;
  d.give(d.numbered(0, kNo, d.send()), 8);  // there is no receive
  EXPECT_EQ(d.verdict(), (std::pair<int, int>(wire::kRspRnr, 3)));
  d.write(1, kSo);
  EXPECT_TRUE(d.written(1));
  d.answers();
  d.post_receive(64);
  wire::TaPacket again = d.numbered(0, kNo, d.send());
  again.req.retry = true;
  d.give(again, 8);
  EXPECT_EQ(d.answered(), std::vector<uint32_t>{0});
}

TEST(Turns, an_ordered_one_that_was_refused_is_waited_for_until_it_comes_again) {
  InContext d;
  d.give(d.numbered(0, kRo, d.send()), 8);
  d.answers();
  d.write(1, kSo);
  EXPECT_FALSE(d.written(1));
  d.post_receive(64);
  wire::TaPacket again = d.numbered(0, kRo, d.send());
  again.req.retry = true;
  d.give(again, 8);
  EXPECT_TRUE(d.written(1));
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 1}));
}

TEST(Turns, one_that_fails_for_good_is_not_waited_for) {
  InContext d;
  wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 8);
  p.token_value = kToken + 1;
  d.give(d.numbered(0, kRo, p), 8);
  EXPECT_EQ(d.verdict(), kAborted);
  d.write(1, kSo);
  EXPECT_TRUE(d.written(1));
}

// Nobody answers it, so it comes again.
TEST(Turns, one_whose_receiver_is_not_ready_is_waited_for) {
  InContext d;
  d.the_jfr().state = QueueState::kReset;
  d.give(d.numbered(0, kNo, d.send()), 8);
  EXPECT_EQ(d.count(Counter::kRxTargetNotReady), 1u);
  d.write(1, kSo);
  EXPECT_FALSE(d.written(1));
  EXPECT_TRUE(d.answers().empty());
  d.the_jfr().state = QueueState::kReady;
  d.post_receive(64);
  d.give(d.numbered(0, kNo, d.send()), 8);
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 1}));
}

TEST(Turns, the_receiver_learns_the_queue_and_not_the_context) {
  InContext d;
  d.post_receive(64);
  d.give(d.numbered(0, kRo, d.send()), 8);
  const auto all = d.completions();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].remote_id, kPeerRcid);
}

// ---- what is held ----------------------------------------------------------------------------------------------

TEST(Early, reads_and_atomics_are_held_too) {
  InContext d;
  const uint64_t before = 5;
  std::memcpy(d.base + 512, &before, 8);
  wire::TaPacket add = d.numbered(1, kSo, d.on_memory(TaOpcode::kAtomicFetchAdd, 8, 512));
  d.give(add, 16);
  d.give(d.numbered(2, kSo, d.on_memory(TaOpcode::kRead, 64)), 0);
  EXPECT_EQ(d.s->jobs.in_use(), 0u);
  EXPECT_TRUE(d.answers().empty());
  d.write(0, kRo);
  const auto all = d.answers();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].opcode, TaOpcode::kAtomicResponse);
  EXPECT_EQ(all[1].source, kPeerRcid | kAnswerToContext);
  EXPECT_EQ(all[1].value, before);
  ASSERT_EQ(all[2].kind, tp::MessageKind::kReadResponse);
  EXPECT_EQ(d.s->jobs[all[2].source].source, kPeerRcid | kAnswerToContext);
}

TEST(Early, writes_with_byte_enables_are_held_too) {
  InContext d;
  wire::TaPacket p = d.numbered(1, kSo, d.on_memory(TaOpcode::kWriteByteEnable, 64));
  const std::vector<std::byte> enables(8, std::byte{0xFF});
  p.has_be = true;
  p.be = {enables.data(), 64};
  d.give(p, 64);
  EXPECT_TRUE(d.answers().empty());
  EXPECT_EQ(d.early(), 1u);
  d.write(0, kRo);
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 1}));
}

// Its sender says in the first packet that it is its turn, and in the last one that it is not.
TEST(Early, a_message_that_has_begun_in_its_turn_is_refused_and_not_held) {
  InContext d;
  const wire::TaPacket two = d.on_memory(TaOpcode::kWrite, 2 * kMtu);
  d.give(d.numbered(0, kSo, two), kMtu, false);
  d.give(d.numbered(1, kSo, two), kMtu);
  EXPECT_EQ(d.verdict(), kRefused);
  EXPECT_EQ(d.early(), 0u);
}

TEST(Early, messages_of_several_packets_and_those_that_take_a_receive_are_refused) {
  InContext d;
  const wire::TaPacket two = d.numbered(1, kSo, d.on_memory(TaOpcode::kWrite, 2 * kMtu));
  d.give(two, kMtu, false);
  d.give(two, kMtu);
  EXPECT_EQ(d.verdict(), kRefused);
  EXPECT_FALSE(d.holds(8));
  d.post_receive(64);
  d.give(d.numbered(1, kSo, d.send()), 8);
  EXPECT_EQ(d.verdict(), kRefused);
  EXPECT_EQ(d.early(), 0u);
  d.write(0, kRo);
  d.answers();
  d.give(d.numbered(1, kSo, d.send()), 8);
  EXPECT_EQ(d.verdict(), kFine) << "it is its turn now";
}

TEST(Early, a_context_holds_so_many_and_the_next_one_is_refused) {
  InContext d({.kept_packets = 256});
  for (uint32_t n = 0; n < kEarlyOfContext; ++n) d.write(1 + n, kSo);
  EXPECT_TRUE(d.answers().empty());
  d.write(1 + kEarlyOfContext, kSo);
  EXPECT_EQ(d.verdict(), kRefused);
  d.write(0, kSo);
  EXPECT_EQ(d.answered().size(), 1 + kEarlyOfContext);
  d.write(1 + kEarlyOfContext, kSo);
  EXPECT_TRUE(d.written(1 + kEarlyOfContext));
  d.expect_nothing_held();
}

TEST(Early, a_channel_and_a_context_have_a_limit_each) {
  InContext d;
  const auto room = [&d](uint32_t of_context, uint32_t of_channel) {
    SequenceContext context{};
    tp::Channel channel{};
    context.early_count = static_cast<uint8_t>(of_context);
    channel.early_count = static_cast<uint8_t>(of_channel);
    return room_for_early(*d.s, channel, context);
  };
  EXPECT_TRUE(room(kEarlyOfContext - 1, kEarlyOfChannel - 1));
  EXPECT_FALSE(room(kEarlyOfContext, 0)) << "by several channels";
  EXPECT_FALSE(room(0, kEarlyOfChannel)) << "of several contexts";
}

TEST(Early, delivery_goes_on_with_the_next_message_and_who_looks_is_told) {
  InContext d;
  d.s->looker.begin(d.host);
  const uint32_t held = d.tpmsn;
  d.write(1, kSo);
  EXPECT_EQ(d.ch().message, Tpmsn(held + 1));
  EXPECT_EQ(d.host.noted(Stage::kMessageEarly),
            (std::vector<Note>{{Stage::kMessageEarly, d.channel, held, d.context()}}));
}

TEST(Early, without_a_record_it_is_refused) {
  InContext d;
  d.park_nothing();
  d.write(1, kSo);
  EXPECT_EQ(d.verdict(), kRefused);
}

TEST(Early, without_a_place_for_its_bytes_it_is_refused) {
  InContext d;
  d.use_up_kept_places();
  d.write(1, kSo);
  EXPECT_EQ(d.verdict(), kRefused);
}

// The queue may be gone, and the record that says so was lost.
TEST(Early, what_waits_for_too_long_is_refused_and_may_come_again) {
  InContext d;
  d.s->timers.cancel(d.s->timer_of_channel(d.channel));
  ASSERT_TRUE(d.s->timers.earliest().is_never());
  d.write(1, kSo);
  EXPECT_EQ(d.s->timers.earliest(), d.s->now + kHeldLongest);
  d.s->now = d.s->now + milliseconds(10);
  d.give(d.numbered(2, kSo, d.on_memory(TaOpcode::kRead, 64)), 0);
  d.s->now = d.s->now - milliseconds(10) + kHeldLongest - nanoseconds(1);
  d.channel_timer();
  EXPECT_EQ(d.s->timers.earliest(), d.s->now + nanoseconds(1));
  EXPECT_EQ(d.early(), 2u);
  d.s->now = d.s->now + nanoseconds(1);
  d.channel_timer();
  EXPECT_EQ(d.verdict(), kRefused);
  EXPECT_FALSE(d.written(1));
  EXPECT_EQ(d.early(), 1u) << "the READ came later";
  EXPECT_EQ(d.s->timers.earliest(), d.s->now + milliseconds(10));
  d.s->now = d.s->now + milliseconds(10);
  d.channel_timer();
  EXPECT_TRUE(d.s->timers.earliest().is_never());
  EXPECT_EQ(d.verdict(), kRefused);
  d.expect_nothing_held();
  d.write(0, kSo);
  d.write(1, kSo);
  EXPECT_TRUE(d.written(1)) << "it is refused as if it had not come";
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 1}));
}

TEST(Early, all_contexts_of_a_channel_hold_so_many) {
  InContext d({.kept_packets = 256});
  for (uint32_t n = 0; n < kEarlyOfContext; ++n) d.write(1 + n, kSo);
  const uint32_t first = d.scid;
  wire::TaPacket p = d.asking();
  p.req.rc_id = kPeerRcid + 1;
  d.give(p, 8);
  d.scid = d.answers().at(0).tassn.value();
  ASSERT_NE(d.scid, first);
  d.write(1, kSo);
  EXPECT_EQ(d.verdict(), kRefused);
  EXPECT_EQ(d.ch().parked, kEarlyOfChannel);
}

// Number 1 is held beside the channel that it came by, and what follows comes by another one of the peer.
struct TwoChannels : InContext {
  TwoChannels() {
    write(1, kSo);
    const uint32_t next = s->channels.alloc();
    s->channels[next] = ch();
    former = std::exchange(channel, next);
    ch().early = {};
    ch().parked = ch().early_count = 0;
  }
  uint32_t former;
};

TEST(Early, it_is_executed_and_answered_where_it_came) {
  TwoChannels d;
  d.write(0, kRo);
  EXPECT_EQ(d.answered(), std::vector<uint32_t>{0});
  d.channel = d.former;
  EXPECT_EQ(d.answered(), std::vector<uint32_t>{1});
  EXPECT_TRUE(d.written(1));
}

// Not at once: what let it go may be a delivery of that channel.
TEST(Early, when_it_has_ended_its_channel_goes_on_if_that_waited_for_room) {
  for (const bool stalled : {true, false}) {
    TwoChannels d;
    d.s->channels[d.former].stalled = stalled;
    d.write(0, kRo);
    EXPECT_EQ(d.s->timers.earliest() == d.s->now + nanoseconds(1), stalled);
  }
}

TEST(Early, they_end_with_their_channel) {
  InContext d;
  d.write(1, kSo);
  d.write(3, kSo);
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(d.s->contexts.in_use(), 0u) << "it was the last one of the peer";
  EXPECT_EQ(d.s->parked.in_use(), 0u);
  EXPECT_EQ(d.s->kept.in_use(), 0u);
}

// ---- what cannot be --------------------------------------------------------------------------------------------

TEST(NoContext, what_names_one_that_its_sender_does_not_have_is_not_executed) {
  InContext d;
  const uint32_t good = d.scid;
  for (uint32_t scid : {0u, good + 1, good ^ 1u << 15, good | 1u << 16}) {
    d.scid = scid;
    d.write(0, kRo);
    const std::vector<tp::TxMessage> all = d.answers();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ((std::pair<int, int>(all[0].rspst, all[0].rspinfo)), kNotSupported) << scid;
    EXPECT_EQ(all[0].source, kAnswerToContext) << "a queue may have the number " << scid;
  }
  EXPECT_EQ(d.count(Counter::kTaRxNoContext), 4u);
  d.scid = good;
  d.s->contexts[d.context()].peer += 1;
  d.write(0, kRo);
  EXPECT_EQ(d.verdict(), kNotSupported) << "of another peer";
  EXPECT_FALSE(d.written(0));
}

TEST(NoContext, nor_what_has_a_number_that_it_cannot_have) {
  InContext d;
  d.write(0, kSo);
  d.answers();
  d.write(0, kSo);
  EXPECT_EQ(d.verdict(), kNotSupported) << "it was executed";
  d.write(1 + TassnWindow::kSpan, kRo);
  EXPECT_EQ(d.verdict(), kNotSupported) << "too far ahead";
  d.write(TassnWindow::kSpan, kRo);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(NoContext, nor_what_names_a_record_that_was_never_given_out) {
  InContext d;
  const uint32_t index = d.s->contexts.high_water() + 1;
  d.s->contexts[index] = d.s->contexts[d.context()];
  EXPECT_EQ(context_of(*d.s, d.ch_peer(), d.scid - d.context() + index), 0u);
}

TEST(NoContext, nor_anything_on_a_channel_of_ctp_or_rol) {
  for (const bool compact : {true, false}) {
    InContext d;
    d.ch().compact = compact;
    d.ch().rol = !compact;
    d.write(0, kRo);
    EXPECT_FALSE(d.written(0));
    EXPECT_EQ(d.count(Counter::kTaRxNoContext), 1u);
  }
}

// ---- memory that answers later ---------------------------------------------------------------------------------

struct SlowInContext : InContext {
  SlowInContext() : InContext({.slow_memory = true}) { host.slow = true; }
};

TEST(SlowContext, a_strong_request_waits_until_the_bytes_before_it_are_in_memory) {
  SlowInContext d;
  d.write(0, kRo);
  d.write(1, kSo);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 4096), 8);
  EXPECT_EQ(d.host.pending_copies(), 2u) << "those of 0, and of the one that has no context";
  d.finish_copy(1);
  EXPECT_FALSE(d.written(1));
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u) << "that of 1";
  d.finish_copy();
  EXPECT_TRUE(d.written(1));
  EXPECT_EQ(d.answers().size(), 3u);
  d.expect_nothing_held();
}

// Its record belongs to the next context by then, which may be that of another peer.
TEST(SlowContext, what_was_parked_when_it_ended_counts_in_no_other_one) {
  SlowInContext d;
  d.write(0, kRo);
  const uint32_t former = d.context();
  d.scid = open_context(*d.s, d.ch_peer(), kPeerRcid);
  ASSERT_EQ(d.context(), former);
  d.finish_copies();
  d.write(1, kSo);
  d.finish_copies();
  EXPECT_FALSE(d.written(1)) << "number 0 of this context has not come";
  d.write(0, kRo);
  d.finish_copies();
  EXPECT_TRUE(d.written(1));
}

TEST(SlowContext, a_relaxed_request_overtakes_what_is_parked) {
  SlowInContext d;
  d.write(0, kRo);
  d.write(1, kRo);
  EXPECT_EQ(d.host.pending_copies(), 2u);
  d.finish_copies();
  EXPECT_EQ(d.answered(), (std::vector<uint32_t>{0, 1}));
}

TEST(SlowContext, an_early_atomic_is_refused) {
  SlowInContext d;
  d.give(d.numbered(1, kSo, d.on_memory(TaOpcode::kAtomicFetchAdd, 8, 512)), 16);
  EXPECT_EQ(d.verdict(), kRefused);
}

TEST(SlowContext, a_strong_multi_packet_write_places_nothing_beyond_a_gap) {
  SlowInContext d;
  const wire::TaPacket two = d.numbered(1, kSo, d.on_memory(TaOpcode::kWrite, 2 * kMtu));
  d.give(d.psn + 1, two, kMtu, false, d.tpmsn + 1);
  EXPECT_EQ(d.host.pending_copies(), 0u);
}

// Its peer is broken: the packet says that it is all of its message, and another one that it belongs to that, too.
TEST(SlowContext, an_early_request_with_copies_under_way_is_not_held) {
  SlowInContext d;
  d.give(d.psn + 1, d.on_memory(TaOpcode::kWrite, 2 * kMtu), kMtu, false, d.tpmsn);
  ASSERT_EQ(d.host.pending_copies(), 1u);
  d.write(1, kSo);
  EXPECT_EQ(d.early(), 0u);
  d.finish_copies();
  d.expect_nothing_held();
}

}  // namespace
}  // namespace ub::ta
