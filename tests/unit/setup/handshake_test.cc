// SPDX-License-Identifier: Apache-2.0
//
// How a channel comes to be and ends, record by record (docs/wire.md; UB Base Specification Rev 2.0, 6.3, leaves it
// open): one instance, and what a peer would send it.
#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

// ---- asking ----------------------------------------------------------------------------------------------------

TEST(Setup, a_request_offers_our_terms) {
  Instance i;
  const uint32_t channel = i.connect();
  const OutRecord out = i.only();
  EXPECT_EQ(out.record.type, RecordType::kReq);
  EXPECT_EQ(out.record.sender_tpn, i.ch(channel).tpn);
  EXPECT_EQ(out.record.receiver_tpn, 0u);
  EXPECT_EQ(out.record.mtu, 4096);
  EXPECT_EQ(out.pad_to_mtu, 4096u) << "it probes the path";
  EXPECT_EQ(out.record.rcv_window, 512);
  EXPECT_EQ(wire::sack_bits(out.record.sack_size_code), 512u);
  EXPECT_EQ(out.record.initial_psn, i.ch(channel).initial_psn);
  EXPECT_EQ(out.record.flags & wire::kRecordIcrcOff, 0) << "the wire may corrupt";
  EXPECT_NE(out.record.sender_tpn, 0u);
}

TEST(Setup, it_is_repeated_at_doubling_pauses_to_a_limit) {
  Instance i;
  const uint32_t channel = i.connect();
  Duration pause = i.s->config.setup_retry_min;
  for (int n = 0; n < 7; ++n) {
    const Instant before = i.s->now;
    i.sent();
    i.timer(channel);
    EXPECT_EQ(i.s->now - before, pause) << n;
    EXPECT_EQ(i.only().record.attempt, i.ch(channel).attempt);
    pause = std::min(pause * 2, i.s->config.setup_retry_max);
  }
  EXPECT_EQ(setup_pause(*i.s, 60), i.s->config.setup_retry_max);
}

TEST(Setup, unanswered_requests_offer_smaller_packets_in_turn) {
  Instance i;
  const uint32_t channel = i.connect();
  std::vector<uint16_t> offers = {i.only().record.mtu};
  for (int n = 1; n < 8; ++n) {
    i.timer(channel);
    offers.push_back(i.only().record.mtu);
  }
  EXPECT_EQ(offers, (std::vector<uint16_t>{4096, 4096, 2048, 2048, 1024, 1024, 4096, 4096}));
}

TEST(Setup, a_peer_that_never_answers_is_given_up) {
  Instance i;
  const uint32_t channel = i.connect();
  const Instant since = i.s->now;
  while (alive(i.ch(channel))) i.timer(channel);
  EXPECT_GE(i.s->now - since, i.s->config.channel_timeout);
  EXPECT_LE(i.s->now - since, i.s->config.channel_timeout + i.s->config.setup_retry_max);
  EXPECT_EQ(i.count(Counter::kTpChannelDead), 0u) << "it was never up";
}

TEST(Setup, a_reply_opens_the_channel_with_what_both_agreed_on) {
  Instance i;
  const uint32_t channel = i.connect();
  i.sent();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  rep.mtu = 2048;
  rep.rcv_window = 128;
  rep.flags &= ~wire::kRecordFast;
  on_record(*i.s, i.from, rep);
  const Channel& ch = i.ch(channel);
  EXPECT_EQ(ch.state, ChannelState::kOpen);
  EXPECT_EQ(ch.mtu, 2048);
  EXPECT_EQ(ch.send_window, 128u) << "the smaller window";
  EXPECT_FALSE(ch.fast) << "both must want it";
  EXPECT_TRUE(ch.read_meta && ch.icrc);
  EXPECT_EQ(ch.peer_tpn, kPeerTpn);
  EXPECT_EQ(ch.expected, Psn(777));
  EXPECT_EQ(ch.delivered, Psn(777));
  EXPECT_EQ(ch.highest_seen, Psn(776));
  EXPECT_EQ(ch.next_psn, ch.initial_psn);
  EXPECT_EQ(ch.oldest_unacked, ch.initial_psn);
  EXPECT_EQ(ch.next_tpmsn, Tpmsn(0));
  const OutRecord conf = i.only();
  EXPECT_EQ(conf.record.type, RecordType::kConf);
  EXPECT_EQ(conf.record.mtu, 2048) << "that one holds";
  EXPECT_EQ(i.count(Counter::kTpChannelUp), 1u);
}

// What such an acknowledgement does not cover is not judged (tp/recovery.h).
TEST(Setup, the_window_may_be_larger_than_a_selective_acknowledgement) {
  Instance i;
  i.s->config.window_packets = 2048;
  const uint32_t channel = i.connect();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  rep.rcv_window = 2048;
  on_record(*i.s, i.from, rep);
  static_assert(wire::kSackMaxBits < 2048);
  EXPECT_EQ(i.ch(channel).send_window, 2048u);
}

TEST(Setup, a_channel_goes_back_n_if_one_end_wants_that) {
  for (const bool peer : {false, true}) {
    for (const bool we : {false, true}) {
      Instance i;
      i.s->config.go_back_n = we;
      const uint32_t ours = i.connect();
      ControlRecord rep = i.reply_of_peer(ours, RecordType::kRep);
      rep.selective = !peer;
      on_record(*i.s, i.from, rep);
      EXPECT_EQ(i.ch(ours).go_back_n, we || peer);

      Instance target;
      target.s->config.go_back_n = we;
      ControlRecord req = target.request_of_peer();
      req.selective = !peer;
      EXPECT_EQ(target.ch(target.open_as_target(req)).go_back_n, we || peer);
    }
  }
}

TEST(Setup, packets_are_no_larger_than_our_own_link_carries) {
  Instance i({.mtu = 1024});
  const uint32_t channel = i.connect();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  EXPECT_EQ(i.ch(channel).mtu, 1024);
}

TEST(Setup, the_icrc_is_left_out_only_if_both_sides_can_do_without) {
  for (bool peer : {false, true}) {
    Instance i({.mtu = 4096, .icrc_optional = true});
    const uint32_t channel = i.connect();
    ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
    if (peer) rep.flags |= wire::kRecordIcrcOff;
    on_record(*i.s, i.from, rep);
    EXPECT_EQ(i.ch(channel).icrc, !peer);
  }
}

TEST(Setup, a_repeated_reply_is_confirmed_again) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  EXPECT_EQ(i.only().record.type, RecordType::kConf);
  EXPECT_EQ(i.count(Counter::kTpChannelUp), 1u);
}

TEST(Setup, a_reply_to_another_attempt_or_from_another_place_is_not_believed) {
  Instance i;
  const uint32_t channel = i.connect();
  i.sent();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  ++rep.attempt;
  on_record(*i.s, i.from, rep);
  --rep.attempt;
  Arrival elsewhere = i.from;
  elsewhere.remote.ip = wire::IpAddress::from_v4(0x0A000003);
  on_record(*i.s, elsewhere, rep);
  rep.receiver_tpn ^= 1u << tp::kTpnIndexBits;  // another generation
  on_record(*i.s, i.from, rep);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
  EXPECT_TRUE(i.sent().empty());
}

// What cannot be kept is not agreed to.
TEST(Setup, terms_that_cannot_be_are_refused) {
  const auto refused = [](void (*change)(ControlRecord&)) {
    Instance i;
    ControlRecord req = i.request_of_peer();
    change(req);
    on_record(*i.s, i.from, req);
    const std::vector<OutRecord> out = i.sent();
    return out.size() == 1 && out[0].record.type == RecordType::kRej &&
           out[0].record.reason == RecordReason::kParameter && i.channels_alive() == 0;
  };
  EXPECT_FALSE(refused([](ControlRecord&) {}));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.mtu = 512; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.mtu = 16384; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.mtu = 3000; }));
  EXPECT_FALSE(refused([](ControlRecord& r) { r.mtu = 1024; }));
  EXPECT_FALSE(refused([](ControlRecord& r) { r.mtu = 8192; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.sender_tpn = 0; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.flags |= wire::kRecordRol; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.flags |= wire::kRecordCaqmEcn; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.cc = wire::CcAlgorithm::kLdcp; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.cc = wire::CcAlgorithm::kDcqcn; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.rcv_window = 63; }));
  EXPECT_FALSE(refused([](ControlRecord& r) { r.rcv_window = 64; }));
  EXPECT_FALSE(refused([](ControlRecord& r) { r.selective = false; })) << "it may go back N";
}

// Nobody could heed what the other one says.
TEST(Setup, a_peer_with_another_congestion_control_is_refused) {
  for (const ControlTerms& ours : kControls) {
    for (const ControlTerms& theirs : kControls) {
      Instance i;
      i.s->config.congestion_control = ours.control;
      on_record(*i.s, i.from, Instance::with(i.request_of_peer(), theirs));
      const OutRecord out = i.only();
      const bool refused = out.record.type == RecordType::kRej && out.record.reason == RecordReason::kParameter;
      EXPECT_EQ(refused, ours.said != theirs.said) << static_cast<int>(theirs.control);
      EXPECT_EQ(i.channels_alive(), refused ? 0u : 1u);
    }
  }
}

// 6.6: over IP it has two bits of each packet and not the CCI of the network header.
TEST(Setup, caqm_and_the_flag_of_its_two_bits_belong_together) {
  for (const ControlTerms& ours : kControls) {
    Instance i;
    i.s->config.congestion_control = ours.control;
    ControlRecord req = Instance::with(i.request_of_peer(), ours);
    req.flags ^= wire::kRecordCaqmEcn;
    on_record(*i.s, i.from, req);
    EXPECT_EQ(i.only().record.reason, RecordReason::kParameter) << static_cast<int>(ours.control);
    EXPECT_EQ(i.channels_alive(), 0u);
  }
}

TEST(Setup, an_answer_with_another_congestion_control_opens_nothing) {
  for (const ControlTerms& ours : kControls) {
    for (const ControlTerms& theirs : kControls) {
      if (ours.said == theirs.said) continue;
      Instance i;
      i.s->config.congestion_control = ours.control;
      const uint32_t channel = i.connect();
      on_record(*i.s, i.from, Instance::with(i.reply_of_peer(channel, RecordType::kRep), theirs));
      EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
      EXPECT_EQ(i.count(Counter::kRxDropRecordParameter), 1u);
      Instance target;
      target.s->config.congestion_control = ours.control;
      const uint32_t half_open = target.half_open(Instance::with(target.request_of_peer(), ours));
      const ControlRecord conf = target.reply_of_peer(half_open, RecordType::kConf);
      on_record(*target.s, target.from, Instance::with(conf, theirs));
      EXPECT_EQ(target.ch(half_open).state, ChannelState::kHalfOpen);
    }
  }
}

TEST(Setup, requests_for_somebody_else_are_refused) {
  const auto refused = [](void (*change)(ControlRecord&)) {
    Instance i;
    ControlRecord req = i.request_of_peer();
    change(req);
    on_record(*i.s, i.from, req);
    const std::vector<OutRecord> out = i.sent();
    return out.size() == 1 && out[0].record.type == RecordType::kRej &&
           out[0].record.reason == RecordReason::kUnknownEntity;
  };
  EXPECT_TRUE(refused([](ControlRecord& r) { r.wanted_eid.bytes[15] = 9; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.wanted_uasid = 9; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.upi = 9; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.upi = 0; }));
  EXPECT_TRUE(refused([](ControlRecord& r) { r.sender_uasid = 0; }));
  EXPECT_FALSE(refused([](ControlRecord& r) { r.wanted_uasid = 0; }));
  Instance nobody;  // that speaks to nobody
  nobody.s->config.upi = 0;
  EXPECT_FALSE(meant_for_us(*nobody.s, nobody.request_of_peer()));
}

// ---- answering -------------------------------------------------------------------------------------------------

TEST(Setup, a_request_is_answered_and_half_open_until_confirmed) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.mtu = 2048;
  on_record(*i.s, i.from, req);
  const OutRecord rep = i.only();
  EXPECT_EQ(rep.record.type, RecordType::kRep);
  EXPECT_EQ(rep.record.mtu, 2048);
  EXPECT_EQ(rep.pad_to_mtu, 2048u);
  EXPECT_EQ(rep.record.attempt, req.attempt);
  EXPECT_EQ(rep.record.receiver_tpn, kPeerTpn);
  const uint32_t channel = channel_of_tpn(*i.s, rep.record.sender_tpn);
  ASSERT_NE(channel, 0u);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kHalfOpen);
  ControlRecord conf = i.reply_of_peer(channel, RecordType::kConf);
  conf.mtu = 2048;
  on_record(*i.s, i.from, conf);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kOpen);
  EXPECT_EQ(i.ch(channel).mtu, 2048);
}

TEST(Setup, a_repeated_request_gets_the_same_channel) {
  Instance i;
  on_record(*i.s, i.from, i.request_of_peer());
  const uint32_t tpn = i.only().record.sender_tpn;
  ControlRecord smaller = i.request_of_peer();
  smaller.mtu = 1024;
  on_record(*i.s, i.from, smaller);
  const OutRecord again = i.only();
  EXPECT_EQ(again.record.sender_tpn, tpn);
  EXPECT_EQ(again.record.mtu, 1024) << "a reply answers the size of its request";
  EXPECT_TRUE(i.ch(channel_of_tpn(*i.s, tpn)).several_mtus);
  EXPECT_EQ(i.channels_alive(), 1u);
}

TEST(Setup, a_newer_attempt_takes_the_place_of_one_that_was_not_confirmed) {
  Instance i;
  on_record(*i.s, i.from, i.request_of_peer(9));
  const uint32_t tpn = i.only().record.sender_tpn;
  on_record(*i.s, i.from, i.request_of_peer(10));
  EXPECT_EQ(i.only().record.sender_tpn, tpn);
  EXPECT_EQ(i.channels_alive(), 1u);
}

TEST(Setup, a_newer_attempt_is_not_bound_by_what_the_former_one_wanted) {
  Instance i;
  ControlRecord former = i.request_of_peer(9);
  former.selective = false;
  former.flags = 0;
  on_record(*i.s, i.from, former);
  EXPECT_EQ(i.only().record.flags, 0);
  on_record(*i.s, i.from, i.request_of_peer(10));
  const OutRecord rep = i.only();
  EXPECT_TRUE(rep.record.selective);
  EXPECT_EQ(rep.record.flags, i.request_of_peer().flags);
}

TEST(Setup, what_is_not_confirmed_ends_after_two_seconds) {
  Instance i;
  on_record(*i.s, i.from, i.request_of_peer());
  const uint32_t channel = channel_of_tpn(*i.s, i.only().record.sender_tpn);
  const Instant since = i.s->now;
  while (alive(i.ch(channel))) {
    i.timer(channel);
    for (const OutRecord& out : i.sent()) EXPECT_EQ(out.record.type, RecordType::kRep);
  }
  EXPECT_GE(i.s->now - since, seconds(2));
  EXPECT_EQ(i.s->peers.in_use(), 0u);
}

TEST(Setup, a_confirmation_of_an_mtu_beyond_our_link_is_not_believed) {
  Instance i({.mtu = 1024});
  on_record(*i.s, i.from, i.request_of_peer());
  const uint32_t channel = channel_of_tpn(*i.s, i.only().record.sender_tpn);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kConf));  // 4096
  EXPECT_EQ(i.ch(channel).state, ChannelState::kHalfOpen);
}

// Both ask: the request of the smaller incarnation wins.
TEST(Setup, of_two_requests_that_cross_one_wins) {
  Instance i;
  const uint32_t channel = i.connect();
  i.sent();
  ControlRecord req = i.request_of_peer();
  on_record(*i.s, i.from, req);
  EXPECT_EQ(i.only().record.reason, RecordReason::kGlare) << "ours, 50, against 60";
  EXPECT_EQ(i.ch(channel).state, ChannelState::kReqSent);
  req.sender_incarnation = kOurIncarnation - 1;
  on_record(*i.s, i.from, req);
  EXPECT_EQ(i.only().record.type, RecordType::kRep);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kHalfOpen) << "the same channel becomes the answering end";
}

TEST(Setup, a_refusal_ends_the_channel_but_for_glare_and_want_of_room) {
  for (RecordReason reason : {RecordReason::kGlare, RecordReason::kNoResources, RecordReason::kParameter}) {
    Instance i;
    const uint32_t channel = i.connect();
    ControlRecord rej = i.reply_of_peer(channel, RecordType::kRej);
    rej.reason = reason;
    on_record(*i.s, i.from, rej);
    EXPECT_EQ(alive(i.ch(channel)), reason != RecordReason::kParameter);
  }
}

TEST(Setup, a_refusal_does_not_end_an_open_channel) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  ControlRecord rej = i.reply_of_peer(channel, RecordType::kRej);
  rej.reason = RecordReason::kParameter;
  on_record(*i.s, i.from, rej);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kOpen);
}

TEST(Setup, without_room_for_a_channel_the_peer_is_told_and_forgotten) {
  Instance i;
  while (i.s->channels.alloc() != 0) {
  }
  on_record(*i.s, i.from, i.request_of_peer());
  EXPECT_EQ(i.only().record.reason, RecordReason::kNoResources);
  EXPECT_EQ(i.s->peers.in_use(), 0u);
}

// ---- the end ---------------------------------------------------------------------------------------------------

TEST(Setup, a_channel_closes_in_agreement) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  close_all(*i.s);
  EXPECT_EQ(i.only().record.type, RecordType::kClose);
  EXPECT_EQ(i.ch(channel).state, ChannelState::kClosing);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kClosed));
  EXPECT_FALSE(alive(i.ch(channel)));
  EXPECT_EQ(i.count(Counter::kTpChannelClosed), 1u);
}

TEST(Setup, a_close_that_nobody_answers_is_repeated_for_a_second) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  close_all(*i.s);
  const Instant since = i.s->now;
  while (alive(i.ch(channel))) i.timer(channel);
  EXPECT_GE(i.s->now - since, seconds(1));
  EXPECT_GT(i.sent().size(), 3u);
}

TEST(Setup, a_close_is_answered_even_if_nobody_knows_the_channel) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  ControlRecord close = i.reply_of_peer(channel, RecordType::kClose);
  close.sender_tpn = kPeerTpn + 1;
  on_record(*i.s, i.from, close);
  EXPECT_EQ(i.only().record.type, RecordType::kClosed);
  EXPECT_TRUE(alive(i.ch(channel))) << "of somebody else's channel";
  close.sender_tpn = kPeerTpn;
  on_record(*i.s, i.from, close);
  EXPECT_FALSE(alive(i.ch(channel)));
}

// A RESET may be old or forged: it only makes us ask.
TEST(Setup, a_reset_makes_us_ask_and_an_answer_decides) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kReset));
  EXPECT_EQ(i.only().record.type, RecordType::kPing);
  EXPECT_TRUE(alive(i.ch(channel)));
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kReset));
  EXPECT_TRUE(i.sent().empty()) << "not more often than every 10 ms";
  i.s->now += milliseconds(10);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kReset));
  EXPECT_EQ(i.sent().size(), 1u);
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kPong));
  EXPECT_TRUE(alive(i.ch(channel))) << "the same incarnation, and it knows the channel";
  ControlRecord pong = i.reply_of_peer(channel, RecordType::kPong);
  pong.reason = RecordReason::kUnknownTpn;
  on_record(*i.s, i.from, pong);
  EXPECT_FALSE(alive(i.ch(channel)));
}

TEST(Setup, an_answer_of_a_new_incarnation_ends_the_channel) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  ControlRecord pong = i.reply_of_peer(channel, RecordType::kPong);
  ++pong.sender_incarnation;
  on_record(*i.s, i.from, pong);
  EXPECT_FALSE(alive(i.ch(channel)));
}

TEST(Setup, a_ping_is_answered_with_what_we_know) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kPing));
  EXPECT_EQ(i.only().record.reason, RecordReason::kNone);
  ControlRecord ping = i.reply_of_peer(channel, RecordType::kPing);
  ++ping.attempt;
  on_record(*i.s, i.from, ping);
  EXPECT_EQ(i.only().record.reason, RecordReason::kUnknownTpn);
  --ping.attempt;
  ++ping.receiver_incarnation;
  on_record(*i.s, i.from, ping);
  EXPECT_EQ(i.only().record.reason, RecordReason::kRestarted);
}

TEST(Setup, packets_for_nobody_are_answered_a_hundred_times_a_second) {
  Instance i;
  for (int n = 0; n < 150; ++n) on_unknown_tpn(*i.s, i.from, 5, 6);
  const std::vector<OutRecord> out = i.sent();
  ASSERT_EQ(out.size(), 100u);
  EXPECT_EQ(out[0].record.type, RecordType::kReset);
  EXPECT_EQ(out[0].record.sender_tpn, 5u);
  EXPECT_EQ(out[0].record.receiver_tpn, 6u);
  i.s->now += seconds(1);
  on_unknown_tpn(*i.s, i.from, 5, 6);
  EXPECT_EQ(i.sent().size(), 1u);
}

// ---- TPNs ------------------------------------------------------------------------------------------------------

TEST(Tpn, of_a_dead_channel_rests_and_comes_back_with_another_generation) {
  Instance i;
  i.s->now += seconds(10);
  const uint32_t first = i.open_as_initiator();
  const uint32_t tpn = i.ch(first).tpn;
  kill_channel(*i.s, first);
  EXPECT_EQ(channel_of_tpn(*i.s, tpn), 0u);
  i.s->now += i.s->config.id_rest - nanoseconds(1);
  EXPECT_NE(i.connect(), first) << "it rests";
  i.s->now += nanoseconds(1);
  i.peer_id.uasid = 3;
  const uint32_t again = i.connect();
  EXPECT_EQ(again, first);
  EXPECT_EQ(i.ch(again).tpn >> tp::kTpnIndexBits, ((tpn >> tp::kTpnIndexBits) + 1) & 0xff);
  EXPECT_EQ(channel_of_tpn(*i.s, tpn), 0u) << "late packets of the former channel find nobody";
  EXPECT_EQ(channel_of_tpn(*i.s, i.ch(again).tpn), again);
}

TEST(Tpn, the_last_generation_is_followed_by_the_first) {
  Instance i;
  const uint32_t first = i.open_as_initiator();
  i.ch(first).tpn |= 0xffu << tp::kTpnIndexBits;
  i.ch(first).retransmits = 9;
  kill_channel(*i.s, first);
  i.s->now += std::max(i.s->config.id_rest, i.s->config.rto_max);
  ASSERT_EQ(i.connect(), first);
  EXPECT_EQ(i.ch(first).tpn, first) << "generation 0";
  EXPECT_EQ(i.ch(first).retransmits, 0u);
}

TEST(Tpn, where_no_other_is_left_the_one_that_rests_longest_is_used) {
  for (const auto& [longest, shorter] : {std::pair(2, 0), std::pair(0, 2)}) {
    Instance i;
    std::vector<uint32_t> made;
    for (uint32_t n = 0; n < 4; ++n) {
      i.peer_id.uasid = 10 + n;
      made.push_back(i.connect());
    }
    for (uint32_t channel : {made[longest], made[shorter]}) kill_channel(*i.s, channel);
    i.peer_id.uasid = 20;
    EXPECT_EQ(i.connect(), made[longest]);
    i.peer_id.uasid = 21;
    EXPECT_EQ(i.connect(), made[shorter]);
    i.peer_id.uasid = 22;
    EXPECT_EQ(i.connect(), 0u) << "none rests";
  }
}

TEST(Tpn, numbers_that_name_no_channel_find_none) {
  Instance i;
  const uint32_t tpn = i.ch(i.open_as_initiator()).tpn;
  for (uint32_t other : {0u, tpn + 1, tpn ^ 1u << tp::kTpnIndexBits, 0xFFFFFFu}) {
    EXPECT_EQ(channel_of_tpn(*i.s, other), 0u) << other;
  }
}

TEST(Tpn, what_lies_behind_the_channels_is_none) {
  Instance i;
  const uint32_t behind = i.connect() + 1;
  i.ch(behind).tpn = 1u << tp::kTpnIndexBits | behind;
  i.ch(behind).state = ChannelState::kOpen;
  EXPECT_EQ(channel_of_tpn(*i.s, i.ch(behind).tpn), 0u);
}

// Whatever it held of the pools is free.
TEST(Tpn, a_channel_that_dies_leaves_nothing_behind) {
  Instance i;
  const uint32_t channel = i.open_as_initiator();
  Channel& ch = i.ch(channel);
  ch.in_flight.push(i.s->messages);
  ch.answers.push(i.s->answers);
  ch.recovery = i.s->recovery.alloc();
  ch.reorder = i.s->reorder.alloc();
  std::fill_n(i.s->received_bits(ch.reorder), i.s->config.window_packets / 64, 0);
  kill_channel(*i.s, channel);
  EXPECT_EQ(i.s->messages.in_use(), 0u);
  EXPECT_EQ(i.s->answers.in_use(), 0u);
  EXPECT_EQ(i.s->recovery.in_use(), 0u);
  EXPECT_EQ(i.s->reorder.in_use(), 0u);
  EXPECT_TRUE(i.s->timers.earliest().is_never());
  kill_channel(*i.s, channel);
  EXPECT_EQ(i.count(Counter::kTpChannelDead), 1u) << "once";
}

}  // namespace
}  // namespace ub::setup
