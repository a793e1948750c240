// SPDX-License-Identifier: Apache-2.0
//
// What records say, field by field, and what both sides agree on when they have exchanged them (docs/wire.md; UB Base
// Specification Rev 2.0, 6.3, leaves it open).
#include <set>

#include "tests/unit/setup/instance.h"

namespace ub::setup {
namespace {

// What every record about a channel says of us.
ControlRecord terms_of(const Instance& i, const Channel& ch, RecordType type) {
  ControlRecord r;
  r.type = type;
  r.sender_incarnation = kOurIncarnation;
  r.attempt = ch.attempt;
  r.flags = wire::kRecordFast | wire::kRecordMarkPsn | wire::kRecordReadMeta;
  r.sender_tpn = ch.tpn;
  r.selective = true;
  r.sack_size_code = 3;
  r.initial_psn = ch.initial_psn;
  r.mtu = 4096;
  r.rcv_window = 512;
  r.rto_base_us = 4000;
  r.rto_growth_n = 1;
  r.retry_limit = 7;
  r.so_credit = 32;
  r.keepalive_10ms = 1000;
  r.upi = i.s->config.upi;
  r.sender_eid = i.s->config.self.eid;
  r.wanted_eid = i.peer_id.eid;
  r.sender_uasid = i.s->config.self.uasid;
  r.wanted_uasid = i.peer_id.uasid;
  return r;
}

CoreConfig with_classes() {
  CoreConfig c = Instance::config();
  c.dscp = 46;
  c.bulk_dscp = 8;
  return c;
}

// ---- what records say ------------------------------------------------------------------------------------------

TEST(Terms, a_request_says_who_asks_whom_and_for_which_application) {
  Instance i;
  const uint32_t channel = i.connect(5);
  const OutRecord out = i.only();
  ControlRecord expected = terms_of(i, i.ch(channel), RecordType::kReq);
  expected.application = 5;
  EXPECT_EQ(out.record, expected);
  EXPECT_EQ(out.link, 1u);
  EXPECT_EQ(out.local, i.from.local);
  EXPECT_EQ(out.remote, i.from.remote);
}

TEST(Terms, a_reply_echoes_whom_it_answers) {
  Instance i;
  on_record(*i.s, i.from, i.request_of_peer());
  const OutRecord out = i.only();
  const uint32_t channel = channel_of_tpn(*i.s, out.record.sender_tpn);
  ControlRecord expected = terms_of(i, i.ch(channel), RecordType::kRep);
  expected.attempt = 9;
  expected.receiver_tpn = kPeerTpn;
  expected.receiver_incarnation = kPeerIncarnation;
  EXPECT_EQ(out.record, expected);
}

// Only the peer's REQ and ours say for whom of those behind an instance the channel is; and only they probe the path.
TEST(Terms, a_confirmation_is_short_and_names_no_application) {
  Instance i;
  const uint32_t channel = i.connect(5);
  i.sent();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  const OutRecord conf = i.only();
  EXPECT_EQ(conf.record.application, 0u);
  EXPECT_EQ(conf.pad_to_mtu, 0u);
  close_all(*i.s);
  EXPECT_EQ(i.only().pad_to_mtu, 0u);
}

TEST(Terms, the_keepalive_time_is_capped_to_its_field) {
  Instance i;
  i.s->config.keepalive_idle = seconds(655) + milliseconds(350);
  i.connect();
  EXPECT_EQ(i.only().record.keepalive_10ms, 65535);
  i.peer_id.uasid = 3;
  i.s->config.keepalive_idle = seconds(660);
  i.connect();
  EXPECT_EQ(i.only().record.keepalive_10ms, 65535);
}

TEST(Terms, a_window_beyond_a_selective_acknowledgement_offers_its_longest_bitmap) {
  Instance i;
  i.s->config.window_packets = 2048;
  i.connect();
  EXPECT_EQ(wire::sack_bits(i.only().record.sack_size_code), wire::kSackMaxBits);
}

TEST(Terms, a_request_and_a_reply_say_that_we_go_back_n) {
  Instance i;
  i.s->config.go_back_n = true;
  i.connect();
  EXPECT_FALSE(i.only().record.selective);
  i.peer_id.uasid = 3;
  on_record(*i.s, i.from, i.request_of_peer());
  EXPECT_FALSE(i.only().record.selective);
}

TEST(Terms, a_reply_to_one_who_goes_back_n_says_the_same) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.selective = false;
  on_record(*i.s, i.from, req);
  EXPECT_FALSE(i.only().record.selective);
}

TEST(Terms, a_request_has_the_flags_of_its_lane_its_link_and_the_configuration) {
  Instance i({.mtu = 4096, .icrc_optional = true});
  i.s->config.fast_retransmit = false;
  const uint32_t small = i.connect();
  EXPECT_EQ(i.only().record.flags, wire::kRecordMarkPsn | wire::kRecordReadMeta | wire::kRecordIcrcOff);
  i.s->config.fast_retransmit = true;
  channel_to(*i.s, i.ch(small).peer, true);
  EXPECT_EQ(i.only().record.flags, wire::kRecordFast | wire::kRecordMarkPsn | wire::kRecordReadMeta |
                                       wire::kRecordIcrcOff | wire::kRecordBulk);
}

// Swift is the sender's own business.
TEST(Terms, records_say_which_congestion_control_both_ends_need) {
  for (const ControlTerms& terms : kControls) {
    Instance asking, asked;
    asking.s->config.congestion_control = asked.s->config.congestion_control = terms.control;
    const uint32_t channel = asking.connect();
    const ControlRecord req = asking.only().record;
    EXPECT_EQ(req.cc, terms.said);
    EXPECT_EQ((req.flags & wire::kRecordCaqmEcn) != 0, terms.two_bits);
    on_record(*asking.s, asking.from, Instance::with(asking.reply_of_peer(channel, RecordType::kRep), terms));
    const ControlRecord conf = asking.only().record;
    on_record(*asked.s, asked.from, Instance::with(asked.request_of_peer(), terms));
    const ControlRecord rep = asked.only().record;
    for (const ControlRecord& r : {conf, rep}) {
      EXPECT_EQ(r.cc, terms.said);
      EXPECT_EQ((r.flags & wire::kRecordCaqmEcn) != 0, terms.two_bits);
    }
    EXPECT_EQ(conf.type, RecordType::kConf);
    EXPECT_EQ(rep.type, RecordType::kRep);
  }
}

TEST(Terms, an_answer_without_a_channel_turns_the_question_round) {
  Instance i;
  ControlRecord ping = i.request_of_peer();
  ping.type = RecordType::kPing;
  ping.receiver_tpn = 0x30009;
  on_record(*i.s, i.from, ping);
  const OutRecord out = i.only();
  ControlRecord expected;
  expected.type = RecordType::kPong;
  expected.reason = RecordReason::kUnknownTpn;
  expected.sender_incarnation = kOurIncarnation;
  expected.receiver_incarnation = kPeerIncarnation;
  expected.attempt = 9;
  expected.sender_tpn = 0x30009;
  expected.receiver_tpn = kPeerTpn;
  expected.upi = i.s->config.upi;
  expected.sender_eid = i.s->config.self.eid;
  expected.wanted_eid = i.peer_id.eid;
  expected.sender_uasid = i.s->config.self.uasid;
  expected.wanted_uasid = i.peer_id.uasid;
  EXPECT_EQ(out.record, expected);
  EXPECT_EQ(out.link, i.from.link);
  EXPECT_EQ(out.local, i.from.local);
  EXPECT_EQ(out.remote, i.from.remote);
  EXPECT_EQ(out.pad_to_mtu, 0u);
}

TEST(Terms, with_too_many_waiting_a_record_is_lost_and_counted) {
  Instance i;
  for (uint32_t n = 0; n < kOutboxRing; ++n) send_record(*i.s, OutRecord{});
  EXPECT_EQ(i.count(Counter::kRecordsLost), 0u);
  send_record(*i.s, OutRecord{});
  EXPECT_EQ(i.count(Counter::kRecordsLost), 1u);
  EXPECT_EQ(i.sent().size(), kOutboxRing);
}

TEST(Terms, the_end_of_a_sequence_context_is_told_by_a_channel_that_is_up) {
  Instance i;
  const uint32_t small = i.connect(), peer = i.ch(small).peer, bulk = channel_to(*i.s, peer, kBulkLane);
  i.sent();
  send_context_free(*i.s, peer, 5);
  EXPECT_TRUE(i.sent().empty()) << "neither is";
  on_record(*i.s, i.from, i.reply_of_peer(bulk, RecordType::kRep));
  i.sent();
  send_context_free(*i.s, peer, 5);
  const ControlRecord told = i.only().record;
  EXPECT_EQ(told.type, RecordType::kScFree);
  EXPECT_EQ(told.sender_tpn, i.ch(bulk).tpn);
  EXPECT_EQ(told.scid, 5u);
}

TEST(Terms, packets_have_the_code_point_of_the_class_of_their_channel) {
  for (const uint32_t lane : {kSmallLane, kBulkLane}) {
    for (const bool asks : {false, true}) {
      Instance i({.mtu = 4096, .lossless = true}, with_classes());
      uint32_t channel = 0;
      if (asks) {
        channel = channel_to(*i.s, i.ch(i.connect()).peer, lane);
        on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
      } else {
        ControlRecord request = i.request_of_peer();
        if (is_bulk(lane)) request.flags |= wire::kRecordBulk;
        channel = i.open_as_target(request);
      }
      ASSERT_TRUE(i.ch(channel).is_up());
      EXPECT_EQ(i.ch(channel).headers.dscp(), is_bulk(lane) ? 8 : 46);
    }
  }
}

TEST(Terms, records_of_set_up_are_of_the_small_class_whatever_the_channel) {
  Instance i({.mtu = 4096, .lossless = true}, with_classes());
  const uint32_t small = i.connect();
  channel_to(*i.s, i.ch(small).peer, kBulkLane);
  for (const OutRecord& out : i.sent()) EXPECT_FALSE(out.bulk);
}

TEST(Terms, pauses_double_from_the_least_one) {
  Instance i;
  const Duration least = i.s->config.setup_retry_min;
  EXPECT_EQ(setup_pause(*i.s, 0), least);
  EXPECT_EQ(setup_pause(*i.s, 1), least * 2);
  EXPECT_EQ(setup_pause(*i.s, 3), least * 8);
  i.s->config.setup_retry_max = Duration{INT64_MAX};
  for (uint32_t tries : {20u, 21u, 60u, UINT32_MAX}) EXPECT_EQ(setup_pause(*i.s, tries), least * (1 << 20));
}

// ---- a new channel ---------------------------------------------------------------------------------------------

TEST(NewChannel, numbers_that_peers_see_are_drawn_at_random) {
  std::set<uint32_t> tpns, psns, attempts;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Instance i;
    i.s->prng = Prng(seed);
    const Channel& ch = i.ch(i.connect());
    tpns.insert(ch.tpn);
    psns.insert(ch.initial_psn.value());
    attempts.insert(ch.attempt);
  }
  EXPECT_GE(tpns.size(), 15u);
  EXPECT_GE(psns.size(), 15u);
  EXPECT_GE(attempts.size(), 15u);
}

TEST(NewChannel, the_first_psn_may_be_given) {
  Instance i;
  i.s->config.first_psn = 100;
  EXPECT_EQ(i.ch(i.connect()).initial_psn, Psn(100));
}

TEST(NewChannel, its_clocks_and_limits_are_those_of_the_configuration) {
  Instance i;
  const Channel& ch = i.ch(i.connect());
  EXPECT_EQ(ch.created_at, i.s->now);
  EXPECT_EQ(ch.heard_at, i.s->now);
  EXPECT_TRUE(ch.rto_at.is_never());
  EXPECT_EQ(ch.rto, i.s->config.rto_min);
  EXPECT_EQ(ch.give_up_after, i.s->config.channel_timeout);
  EXPECT_TRUE(ch.initiator && ch.carries_requests);
  EXPECT_FALSE(ch.lane == kBulkLane);
}

TEST(NewChannel, is_of_the_lane_and_one_per_lane) {
  Instance i;
  const uint32_t small = i.connect(), peer = i.ch(small).peer;
  const uint32_t bulk = channel_to(*i.s, peer, true);
  EXPECT_NE(bulk, small);
  EXPECT_TRUE(i.ch(bulk).lane == kBulkLane);
  EXPECT_EQ(i.s->peers[peer].lanes[1].channels[0], bulk);
  EXPECT_EQ(i.s->peers[peer].users, 3u) << "a target and two channels";
  i.sent();
  EXPECT_EQ(channel_to(*i.s, peer, true), bulk);
  EXPECT_EQ(channel_to(*i.s, peer, false), small);
  EXPECT_TRUE(i.sent().empty());
}

TEST(NewChannel, there_is_none_without_a_path_or_room) {
  Instance i;
  const uint32_t peer = i.ch(i.connect()).peer;
  i.s->peers[peer].path.link = 0;
  EXPECT_EQ(channel_to(*i.s, peer, true), 0u);
  i.s->peers[peer].path.link = 1;
  while (i.s->channels.alloc() != 0) {
  }
  EXPECT_EQ(channel_to(*i.s, peer, true), 0u);
  EXPECT_EQ(i.s->peers[peer].lanes[1].channels[0], 0u);
}

// Its record may still stand on the lists of those with something to send; they drop it when its turn comes.
TEST(NewChannel, a_record_that_is_used_again_stays_where_it_stands_on_lists) {
  Instance i;
  const uint32_t first = i.open_as_initiator();
  i.peer_id.uasid = 3;
  const uint32_t other = i.connect();
  for (uint32_t channel : {first, other}) {
    activate(*i.s, channel);
    owe_ack(*i.s, channel);
  }
  kill_channel(*i.s, first);
  i.s->now += std::max(i.s->config.id_rest, i.s->config.rto_max);
  i.peer_id.uasid = 4;
  ASSERT_EQ(i.connect(), first);
  EXPECT_TRUE(i.ch(first).on_active_list && i.ch(first).on_ack_list);
  EXPECT_EQ(i.s->active.front<&Channel::on_active_list>(i.s->channels), first);
  EXPECT_EQ(i.ch(first).on_active_list.next, other);
  EXPECT_EQ(i.ch(first).on_ack_list.next, other);
}

// ---- what is agreed --------------------------------------------------------------------------------------------

TEST(Agreement, begins_both_directions_anew) {
  Instance i({.mtu = 4096});
  const uint32_t channel = i.connect();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  rep.flags |= wire::kRecordBypass;
  on_record(*i.s, i.from, rep);
  const Channel& ch = i.ch(channel);
  EXPECT_EQ(ch.record_flags, wire::kRecordFast | wire::kRecordMarkPsn | wire::kRecordReadMeta)
      << "what we did not offer does not hold";
  EXPECT_TRUE(ch.fast && ch.read_meta && ch.icrc);
  EXPECT_EQ(ch.peer_incarnation, kPeerIncarnation);
  EXPECT_EQ(ch.peer_initial_psn, Psn(777));
  EXPECT_EQ(ch.message_start, Psn(777));
  EXPECT_EQ(ch.message, Tpmsn(0));
  EXPECT_EQ(ch.flow.algorithm, cc::Algorithm::kLossWindow);
  EXPECT_EQ(ch.flow.loss_window.recovery_until, ch.initial_psn);
  EXPECT_EQ(ch.send_window, cc::kUsualConstants.loss_window.initial_packets);
  EXPECT_NE(ch.headers.size, 0u);
  EXPECT_EQ(ch.heard_at, i.s->now);
  EXPECT_EQ(ch.progress_at, i.s->now);
}

TEST(Agreement, reading_with_metadata_needs_both) {
  Instance i;
  const uint32_t channel = i.connect();
  ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
  rep.flags = wire::kRecordFast;
  on_record(*i.s, i.from, rep);
  EXPECT_EQ(i.ch(channel).record_flags, wire::kRecordFast);
  EXPECT_FALSE(i.ch(channel).read_meta);
  EXPECT_TRUE(i.ch(channel).fast);
}

// The same at both ends, and each has what it needs from the first packet on.
TEST(Agreement, congestion_control_governs_and_what_it_reports_begins_with_nothing) {
  for (const ControlTerms& terms : kControls) {
    for (const bool as_target : {false, true}) {
      CoreConfig config = Instance::config();
      config.congestion_control = terms.control;
      Instance i({.mtu = 4096, .lossless = true}, config);
      uint32_t channel = 0;
      if (as_target) {
        channel = i.half_open(Instance::with(i.request_of_peer(), terms));
        on_record(*i.s, i.from, Instance::with(i.reply_of_peer(channel, RecordType::kConf), terms));
      } else {
        channel = i.connect();
        on_record(*i.s, i.from, Instance::with(i.reply_of_peer(channel, RecordType::kRep), terms));
      }
      const Channel& ch = i.ch(channel);
      ASSERT_TRUE(ch.is_up());
      EXPECT_EQ(ch.flow.algorithm, terms.algorithm);
      EXPECT_EQ(ch.feedback, terms.said);
      const bool reports = terms.said == wire::CcAlgorithm::kCaqm || terms.said == wire::CcAlgorithm::kLdcp;
      EXPECT_EQ(ch.feeds_back, reports);
      if (reports) {
        EXPECT_EQ(ch.heard.ldcp(), wire::CetphLdcp{});
      }
      EXPECT_EQ(ch.flow.send_times != 0, terms.control == cc::Control::kSwift) << "nobody else wants round trips";
    }
  }
}

// What was heard of an attempt that another one replaces belongs to its packets.
TEST(Agreement, a_newer_attempt_has_heard_nothing_of_the_network) {
  Instance i;
  const ControlTerms& ldcp = kControls[2];
  i.s->config.congestion_control = ldcp.control;
  const uint32_t channel = i.half_open(Instance::with(i.request_of_peer(9), ldcp));
  i.ch(channel).heard.accepted(ldcp.said, 1000, wire::kEcnCe);
  ASSERT_EQ(i.half_open(Instance::with(i.request_of_peer(10), ldcp)), channel);
  EXPECT_EQ(i.ch(channel).heard.ldcp(), wire::CetphLdcp{});
}

// Silence says that packets were lost.
TEST(Agreement, to_ask_soon_needs_both_and_a_wire_that_loses) {
  const auto asks_soon = [](bool lossless, uint8_t flags) {
    Instance i({.mtu = 4096, .lossless = lossless});
    const uint32_t channel = i.connect();
    ControlRecord rep = i.reply_of_peer(channel, RecordType::kRep);
    rep.flags = flags;
    on_record(*i.s, i.from, rep);
    return i.ch(channel).asks_soon;
  };
  EXPECT_TRUE(asks_soon(false, wire::kRecordFast));
  EXPECT_FALSE(asks_soon(false, 0)) << "the peer does not";
  EXPECT_FALSE(asks_soon(true, wire::kRecordFast));
}

TEST(Agreement, the_uasid_of_the_peer_is_what_it_says) {
  Instance asking;
  ControlRecord rep = asking.reply_of_peer(asking.connect(), RecordType::kRep);
  rep.sender_uasid = 9;
  on_record(*asking.s, asking.from, rep);
  EXPECT_EQ(asking.ch(1).remote.uasid, 9u);
  Instance i;
  ControlRecord req = i.request_of_peer();
  const uint32_t channel = i.half_open(req);
  EXPECT_EQ(i.ch(channel).remote.uasid, 2u);
  EXPECT_EQ(i.ch(channel).remote.eid, i.peer_id.eid);
}

TEST(Agreement, the_lane_is_what_the_request_says) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.flags |= wire::kRecordBulk;
  const uint32_t channel = i.half_open(req);
  EXPECT_TRUE(i.ch(channel).lane == kBulkLane);
  EXPECT_NE(i.ch(channel).record_flags & wire::kRecordBulk, 0);
  EXPECT_EQ(i.peer_of(channel).lanes[1].accepted[0], channel);
  EXPECT_EQ(i.peer_of(channel).lanes[1].channels[0], channel);
  EXPECT_EQ(i.peer_of(channel).lanes[0].accepted[0], 0u);
}

// The peer may answer from behind another port, and that is where it is then.
TEST(Agreement, the_port_that_the_reply_came_from_is_the_peers) {
  Instance i;
  const uint32_t channel = i.connect();
  i.from.remote.port = 5555;
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  EXPECT_EQ(i.ch(channel).remote_endpoint.port, 5555);
  EXPECT_TRUE(i.ch(channel).is_up());
}

// Where the request came from and to which of our EIDs.
TEST(Agreement, as_target_the_peer_is_known_by_the_request) {
  Instance i;
  Eid second{};
  second.bytes[0] = 7;
  i.s->eids[i.s->eid_count++] = second;
  ControlRecord req = i.request_of_peer();
  req.wanted_eid = second;
  const uint32_t channel = i.half_open(req);
  const Peer& peer = i.peer_of(channel);
  EXPECT_EQ(peer.local_eid, second);
  EXPECT_EQ(i.s->peers[i.ch(channel).peer].local_eid, second);
  EXPECT_EQ(peer.path.link, 1u);
  EXPECT_EQ(peer.path.local, i.from.local);
  EXPECT_EQ(peer.path.remote, i.from.remote);
}

// It is that of the request that was answered and got through.
TEST(Agreement, as_target_the_mtu_is_that_of_the_confirmation) {
  Instance i;
  const uint32_t channel = i.half_open(i.request_of_peer());
  ControlRecord conf = i.reply_of_peer(channel, RecordType::kConf);
  conf.mtu = 2048;
  on_record(*i.s, i.from, conf);
  EXPECT_EQ(i.ch(channel).mtu, 2048);
}

TEST(Agreement, as_target_the_window_is_the_smaller_one) {
  Instance i;
  ControlRecord req = i.request_of_peer();
  req.rcv_window = 64;
  EXPECT_EQ(i.ch(i.half_open(req)).send_window, 64u);
}

TEST(Agreement, as_target_packets_are_no_larger_than_our_own_link_carries) {
  Instance i({.mtu = 1024});
  on_record(*i.s, i.from, i.request_of_peer());
  const OutRecord rep = i.only();
  EXPECT_EQ(rep.record.mtu, 1024);
  ControlRecord again = i.request_of_peer();
  on_record(*i.s, i.from, again);
  EXPECT_EQ(i.only().record.mtu, 1024) << "nor when it is asked again";
  EXPECT_FALSE(i.ch(channel_of_tpn(*i.s, rep.record.sender_tpn)).several_mtus);
}

}  // namespace
}  // namespace ub::setup
