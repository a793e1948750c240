// SPDX-License-Identifier: Apache-2.0
//
// How the paths of a channel begin to live, and live again (docs/paths-design.md): who adds them, who learns of them,
// what is asked by PING, and which answers count.
#include "lib/transport/setup/path_life.h"

#include "lib/transport/setup/ways.h"
#include "lib/transport/tp/paths.h"
#include "tests/unit/setup/paths.h"

namespace ub::setup {
namespace {

// With one further path, which lives.
struct TwoPaths : Paths {
  TwoPaths() {
    add_ports(1);
    channel = open();
    answer(pings().at(0));
    EXPECT_TRUE(path(channel, 1).live);
    EXPECT_TRUE(sent().empty());
  }
  uint32_t channel;
};

// ---- which channels --------------------------------------------------------------------------------------------

TEST(SeveralPaths, are_offered_where_packets_may_be_lost_and_have_numbers) {
  Paths i;
  EXPECT_TRUE(offers_paths(*i.s, kWire, kSmallLane));
  EXPECT_TRUE(offers_paths(*i.s, kWire, kOrderedBulkLane));
  EXPECT_FALSE(offers_paths(*i.s, kWire, kCompactLane));
  EXPECT_FALSE(offers_paths(*i.s, {.mtu = 4096, .lossless = true}, kSmallLane));
  Paths single(several(1));
  EXPECT_FALSE(offers_paths(*single.s, kWire, kSmallLane));
}

TEST(SeveralPaths, are_said_in_the_records_of_set_up) {
  for (const uint32_t most : {1u, 4u}) {
    Paths asks(several(most)), answers(several(most));
    asks.connect();
    EXPECT_EQ(asks.only().record.several_paths, most > 1);
    on_record(*answers.s, answers.from, answers.request_of_peer());
    EXPECT_EQ(answers.only().record.several_paths, most > 1) << "whatever the peer says";
  }
}

TEST(SeveralPaths, take_both_ends) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.connect();
  on_record(*i.s, i.from, i.reply_of_peer(channel, RecordType::kRep));
  EXPECT_FALSE(i.ch(channel).takes_paths);
  EXPECT_TRUE(i.pings().empty());
  EXPECT_EQ(i.s->path_blocks.in_use(), 0u);
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 0u);
}

TEST(SeveralPaths, are_no_matter_of_a_channel_without_others) {
  Paths i;
  const uint32_t channel = i.open();
  EXPECT_TRUE(i.ch(channel).takes_paths);
  EXPECT_FALSE(i.ch(channel).several_paths);
  EXPECT_EQ(i.s->path_blocks.in_use(), 0u);
}

// ---- who adds them ---------------------------------------------------------------------------------------------

TEST(OpenPaths, asks_on_each_source_port_at_once) {
  Paths i;
  i.add_ports(3);
  const uint32_t channel = i.open();
  const std::vector<OutRecord> pings = i.pings();
  ASSERT_EQ(pings.size(), 3u);
  for (uint16_t n = 0; n < 3; ++n) {
    EXPECT_EQ(pings[n].local, Paths::port(n + 1));
    EXPECT_EQ(pings[n].remote, i.from.remote);
    EXPECT_FALSE(i.path(channel, n + 1).live);
  }
  EXPECT_EQ(i.paths(channel), 4u);
}

TEST(OpenPaths, asks_with_what_names_the_channel_and_the_question) {
  Paths i;
  i.add_ports(2);
  const uint32_t channel = i.open();
  const std::vector<OutRecord> pings = i.pings();
  ASSERT_EQ(pings.size(), 2u);
  const ControlRecord& r = pings[0].record;
  EXPECT_TRUE(r.several_paths);
  EXPECT_EQ(r.attempt, i.ch(channel).attempt);
  EXPECT_EQ(r.sender_tpn, i.ch(channel).tpn);
  EXPECT_EQ(r.receiver_tpn, kPeerTpn);
  EXPECT_EQ(r.sender_incarnation, kOurIncarnation);
  EXPECT_EQ(r.receiver_incarnation, kPeerIncarnation);
  EXPECT_EQ(r.initial_psn, i.path(channel, 1).question);
  EXPECT_NE(r.initial_psn, pings[1].record.initial_psn);
  EXPECT_EQ(pings[0].pad_to_mtu, 4096u) << "as long as the largest packet";
  EXPECT_EQ(pings[0].link, 1u);
}

TEST(OpenPaths, takes_the_ports_of_the_address_that_the_channel_has) {
  Paths i;
  i.add({{}, {wire::IpAddress::from_v4(0x0A000007), 30000}, {}});
  const uint32_t channel = i.open();
  EXPECT_TRUE(i.pings().empty());
  EXPECT_EQ(i.paths(channel), 1u);
}

TEST(OpenPaths, takes_the_addresses_that_are_mapped_for_its_peer) {
  Paths i;
  const wire::Endpoint card{wire::IpAddress::from_v4(0x0A010001), wire::kUbUdpPort};
  const wire::IpAddress far_card = wire::IpAddress::from_v4(0x0A010002);
  i.add({i.from.remote.ip, card, far_card});
  i.add({kOtherHost.ip, card, wire::IpAddress::from_v4(0x0A010009)});
  i.open();
  const std::vector<OutRecord> pings = i.pings();
  ASSERT_EQ(pings.size(), 1u);
  EXPECT_EQ(pings[0].local, card);
  EXPECT_EQ(pings[0].remote, (wire::Endpoint{far_card, i.from.remote.port})) << "the port is that of the set-up";
}

TEST(OpenPaths, knows_that_of_the_set_up_already) {
  Paths i;
  i.add({i.from.remote.ip, i.from.local, i.from.remote.ip});
  const uint32_t channel = i.open();
  EXPECT_EQ(i.paths(channel), 1u);
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 0u);
}

TEST(OpenPaths, takes_as_many_as_there_is_room_for) {
  Paths i;
  i.add_ports(6);
  i.open();
  EXPECT_EQ(i.pings().size(), 3u);
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 3u);
}

TEST(OpenPaths, without_a_block_stays_on_one) {
  Paths i;
  i.add_ports(1);
  for (int n = 0; n < 2; ++n) i.s->path_blocks.alloc();
  const uint32_t channel = i.open();
  EXPECT_TRUE(i.ch(channel).is_up());
  EXPECT_FALSE(i.ch(channel).several_paths);
  EXPECT_TRUE(i.pings().empty());
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 1u);
}

TEST(OpenPaths, is_what_either_end_does) {
  Paths i;
  i.add_ports(1);
  ControlRecord request = i.request_of_peer();
  request.several_paths = true;
  const uint32_t channel = i.half_open(request);
  EXPECT_TRUE(i.pings().empty()) << "the peer has not confirmed";
  on_record(*i.s, i.from, i.of(channel, RecordType::kConf));
  ASSERT_TRUE(i.ch(channel).is_up());
  EXPECT_EQ(i.pings().size(), 1u);
}

// ---- asking again ----------------------------------------------------------------------------------------------

TEST(AskPaths, doubles_its_pause_up_to_64_ms) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.open();
  OutRecord ping = i.pings().at(0);
  Duration pause = microseconds(100);
  for (int n = 0; n < 12; ++n) {
    const Instant before = i.s->now;
    const OutRecord next = i.next_ping(channel);
    EXPECT_EQ(i.s->now - before, pause);
    EXPECT_NE(next.record.initial_psn, ping.record.initial_psn);
    ping = next;
    pause = std::min(pause * 2, milliseconds(64));
  }
  EXPECT_EQ(pause, milliseconds(64));
}

TEST(AskPaths, does_not_end) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.open();
  i.sent();
  i.path(channel, 1).asked = UINT8_MAX;
  i.next_ping(channel);
  const Instant before = i.s->now;
  i.next_ping(channel);
  EXPECT_EQ(i.s->now - before, milliseconds(64));
  EXPECT_EQ(i.path(channel, 1).asked, UINT8_MAX);
}

TEST(AskPaths, begins_with_two_round_trips_and_four_deviations_where_they_are_known) {
  TwoPaths i;
  i.path(i.channel, 1).round_trip = {microseconds(30), microseconds(5), {}, {}, i.s->now};
  tp::suspect_path(*i.s, i.channel, 1, i.s->now);
  const Instant died = i.s->now;
  i.next_ping(i.channel);
  EXPECT_EQ(i.s->now, died) << "at once";
  i.next_ping(i.channel);
  EXPECT_EQ(i.s->now - died, microseconds(80));
}

// Whatever the pauses of the others are, and although the peer has no room for one of them.
TEST(AskPaths, asks_on_each_in_its_own_time) {
  constexpr Duration kNever = seconds(1'000'000);
  std::vector<Duration> pauses{microseconds(100), microseconds(700), microseconds(1'900), kNever};
  do {
    Paths i(several(5));
    i.add_ports(4);
    const uint32_t channel = i.open();
    i.sent();
    for (uint32_t n = 0; n < 4; ++n) {
      i.path(channel, n + 1).ask_at = pauses[n] == kNever ? Instant::never() : i.s->now + pauses[n];
    }
    for (int round = 0; round < 10; ++round) {
      uint32_t next = 1;
      for (uint32_t n = 2; n <= 4; ++n) {
        if (i.path(channel, n).ask_at < i.path(channel, next).ask_at) next = n;
      }
      const Instant due = i.path(channel, next).ask_at;
      ASSERT_EQ(i.next_ping(channel).local, i.path(channel, next).local) << round;
      ASSERT_EQ(i.s->now, due) << round;
    }
  } while (std::ranges::next_permutation(pauses).found);
}

TEST(AskPaths, leaves_those_alone_that_live) {
  TwoPaths i;
  ask_paths(*i.s, i.channel);
  EXPECT_TRUE(i.sent().empty());
}

// ---- the answer ------------------------------------------------------------------------------------------------

TEST(PathPong, makes_the_path_live_and_tells_its_round_trip) {
  Paths i;
  i.add_ports(2);
  const uint32_t channel = i.open();
  const OutRecord ping = i.pings().at(1);
  i.s->now += microseconds(33);
  i.answer(ping);
  EXPECT_FALSE(i.path(channel, 1).live);
  EXPECT_TRUE(i.path(channel, 2).live);
  EXPECT_EQ(i.path(channel, 2).round_trip.smoothed, microseconds(33));
  EXPECT_EQ(i.path(channel, 2).asked, 0);
  EXPECT_EQ(i.count(Counter::kTpPathLive), 1u);
}

TEST(PathPong, tells_how_long_the_answer_to_its_own_question_took) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.open();
  for (int n = 0; n < 3; ++n) i.next_ping(channel);
  const OutRecord ping = i.next_ping(channel);
  i.s->now += microseconds(33);
  i.answer(ping);
  EXPECT_EQ(i.path(channel, 1).round_trip.smoothed, microseconds(33));
  EXPECT_EQ(i.path(channel, 1).news_at, i.s->now);
}

TEST(PathPong, to_a_former_question_is_dropped) {
  Paths i;
  i.add_ports(1);
  const uint32_t channel = i.open();
  const OutRecord former = i.pings().at(0), latter = i.next_ping(channel);
  i.answer(former);
  EXPECT_FALSE(i.path(channel, 1).live);
  EXPECT_EQ(i.count(Counter::kRxDropRecordStale), 1u);
  i.answer(latter);
  EXPECT_TRUE(i.path(channel, 1).live);
  i.answer(latter);
  EXPECT_EQ(i.count(Counter::kRxDropRecordStale), 2u) << "it lives already";
}

TEST(PathPong, counts_on_the_path_of_its_question_alone) {
  Paths i;
  i.add_ports(2);
  const uint32_t channel = i.open();
  const std::vector<OutRecord> pings = i.pings();
  on_record(*i.s, i.over(pings[1]), i.answer_to(pings[0]));
  EXPECT_EQ(i.count(Counter::kRxDropRecordStale), 1u);
  on_record(*i.s, i.over(pings[0].local, kOtherHost), i.answer_to(pings[0]));
  on_record(*i.s, i.over(Paths::port(9), i.from.remote), i.answer_to(pings[0]));
  EXPECT_EQ(i.count(Counter::kRxDropRecordPeer), 2u);
  EXPECT_FALSE(i.path(channel, 1).live || i.path(channel, 2).live);
}

TEST(PathPong, to_a_channel_with_one_path_or_that_closes_is_nothing) {
  Paths i;
  const uint32_t channel = i.open();
  i.sent();
  on_record(*i.s, i.from, i.of(channel, RecordType::kPong));
  EXPECT_TRUE(i.ch(channel).is_up());
  TwoPaths closing;
  tp::suspect_path(*closing.s, closing.channel, 1, closing.s->now);
  const OutRecord ping = closing.next_ping(closing.channel);
  close_all(*closing.s);
  closing.answer(ping, RecordReason::kRestarted);
  EXPECT_FALSE(closing.path(closing.channel, 1).live);
  EXPECT_EQ(closing.ch(closing.channel).state, ChannelState::kClosing);
}

TEST(PathPong, that_says_no_room_ends_the_questions) {
  Paths i;
  i.add_ports(2);
  const uint32_t channel = i.open();
  i.answer(i.pings().at(0), RecordReason::kNoResources);
  EXPECT_FALSE(i.path(channel, 1).live);
  EXPECT_TRUE(i.path(channel, 1).ask_at.is_never());
  for (int n = 0; n < 5; ++n) EXPECT_EQ(i.next_ping(channel).local, Paths::port(2));
}

// Another daemon has the address, or another life of the peer answers there: the channel itself asks.
TEST(PathPong, of_somebody_else_makes_the_channel_ask_and_kills_nothing) {
  for (const RecordReason reason : {RecordReason::kUnknownTpn, RecordReason::kRestarted, RecordReason::kNone}) {
    Paths i;
    i.add_ports(1);
    const uint32_t channel = i.open();
    const OutRecord ping = i.pings().at(0);
    ControlRecord pong = i.answer_to(ping, reason);
    ++pong.sender_incarnation;
    on_record(*i.s, i.over(ping), pong);
    EXPECT_TRUE(i.ch(channel).is_up());
    EXPECT_FALSE(i.path(channel, 1).live);
    const OutRecord own = i.only();
    EXPECT_EQ(own.record.type, RecordType::kPing);
    EXPECT_FALSE(own.record.several_paths);
    EXPECT_EQ(own.local, i.from.local) << "on a path that lives";
    EXPECT_EQ(i.path(channel, 1).ask_at, i.s->now + seconds(10));
    EXPECT_EQ(i.next_ping(channel).local, Paths::port(1)) << "the address may be the peer's one day";
  }
}

TEST(PathPong, on_the_first_path_ends_a_channel_that_the_peer_does_not_know) {
  for (const RecordReason reason : {RecordReason::kUnknownTpn, RecordReason::kRestarted}) {
    TwoPaths i;
    tp::suspect_path(*i.s, i.channel, 0, i.s->now);
    i.answer(i.next_ping(i.channel), reason);
    EXPECT_FALSE(alive(i.ch(i.channel)));
  }
}

TEST(PathPong, revives_the_first_path_too) {
  TwoPaths i;
  tp::suspect_path(*i.s, i.channel, 0, i.s->now);
  const OutRecord ping = i.next_ping(i.channel);
  EXPECT_EQ(ping.local, i.from.local);
  i.answer(ping);
  EXPECT_TRUE(i.path(i.channel, 0).live);
}

// ---- what the peer asks ----------------------------------------------------------------------------------------

struct Asked : Paths {
  explicit Asked(const CoreConfig& c = several()) : Paths(c), channel(open()) { sent(); }
  static wire::Endpoint port_of_peer(uint16_t n = 1) {
    return {wire::IpAddress::from_v4(0x0A000002), static_cast<uint16_t>(40000 + n)};
  }
  ControlRecord ping(uint32_t question = 4711) const {
    ControlRecord r = of(channel, RecordType::kPing);
    r.initial_psn = Psn(question);
    return r;
  }
  std::vector<OutRecord> on_ping(const ControlRecord& ping, uint16_t port = 1) {
    on_record(*s, over(from.local, port_of_peer(port)), ping);
    return sent();
  }
  uint32_t channel;
};

TEST(PathPing, is_learned_from_and_answered_to_where_it_came_from) {
  Asked i;
  const std::vector<OutRecord> out = i.on_ping(i.ping());
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].record.type, RecordType::kPong);
  EXPECT_EQ(out[0].record.reason, RecordReason::kNone);
  EXPECT_TRUE(out[0].record.several_paths);
  EXPECT_EQ(out[0].record.initial_psn, Psn(4711));
  EXPECT_EQ(out[0].record.attempt, i.ch(i.channel).attempt);
  EXPECT_EQ(out[0].record.receiver_tpn, kPeerTpn);
  EXPECT_EQ(out[0].local, i.from.local);
  EXPECT_EQ(out[0].remote, Asked::port_of_peer());
  EXPECT_EQ(out[0].pad_to_mtu, 4096u);
  ASSERT_EQ(i.paths(i.channel), 2u);
  EXPECT_FALSE(i.path(i.channel, 1).live) << "our packets may not arrive there";
  const Instant asked = i.s->now;
  const OutRecord ping = i.next_ping(i.channel);
  EXPECT_EQ(i.s->now, asked);
  EXPECT_EQ(ping.remote, Asked::port_of_peer());
  i.answer(ping);
  EXPECT_TRUE(i.path(i.channel, 1).live);
}

// Else it would tell nothing of how the packets of the channel fare there.
TEST(PathPing, and_its_answer_have_the_class_of_the_channel) {
  for (const bool bulk : {false, true}) {
    Asked i;
    i.ch(i.channel).lane = bulk ? kBulkLane : kSmallLane;
    ControlRecord ping = i.ping();
    if (bulk) ping.flags |= wire::kRecordBulk;
    EXPECT_EQ(i.on_ping(ping).at(0).bulk, bulk);
    EXPECT_EQ(i.next_ping(i.channel).bulk, bulk);
  }
}

TEST(PathPing, on_a_known_path_adds_none) {
  Asked i;
  i.on_ping(i.ping());
  EXPECT_EQ(i.on_ping(i.ping()).at(0).record.reason, RecordReason::kNone);
  EXPECT_EQ(i.paths(i.channel), 2u);
}

TEST(PathPing, on_the_path_of_the_set_up_needs_no_other) {
  Asked i;
  on_record(*i.s, i.from, i.ping());
  EXPECT_EQ(i.only().record.reason, RecordReason::kNone);
  EXPECT_FALSE(i.ch(i.channel).several_paths);
}

TEST(PathPing, for_a_channel_that_is_unknown_is_answered_so_and_shortly) {
  Asked i;
  ControlRecord other_tpn = i.ping(), other_attempt = i.ping();
  ++other_tpn.receiver_tpn;
  ++other_attempt.attempt;
  for (const ControlRecord& r : {other_tpn, other_attempt}) {
    const std::vector<OutRecord> out = i.on_ping(r);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].record.reason, RecordReason::kUnknownTpn);
    EXPECT_TRUE(out[0].record.several_paths);
    EXPECT_EQ(out[0].record.initial_psn, Psn(4711));
    EXPECT_EQ(out[0].pad_to_mtu, 0u) << "whoever asks gets no more than it sent";
  }
  EXPECT_EQ(i.paths(i.channel), 1u);
}

TEST(PathPing, for_a_former_life_is_answered_so) {
  Asked i;
  ControlRecord r = i.ping();
  ++r.receiver_incarnation;
  const std::vector<OutRecord> out = i.on_ping(r);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].record.reason, RecordReason::kRestarted);
  EXPECT_EQ(i.paths(i.channel), 1u);
}

TEST(PathPing, of_somebody_else_is_dropped) {
  Asked i;
  ControlRecord other_tpn = i.ping(), other_life = i.ping();
  ++other_tpn.sender_tpn;
  ++other_life.sender_incarnation;
  for (const ControlRecord& r : {other_tpn, other_life}) EXPECT_TRUE(i.on_ping(r).empty());
  EXPECT_EQ(i.count(Counter::kRxDropRecordPeer), 2u);
  EXPECT_EQ(i.paths(i.channel), 1u);
}

TEST(PathPing, to_a_channel_that_is_not_open_is_dropped) {
  Asked i;
  close_all(*i.s);
  i.sent();
  EXPECT_TRUE(i.on_ping(i.ping()).empty());
  EXPECT_EQ(i.count(Counter::kRxDropRecordPeer), 1u);
}

TEST(PathPing, that_finds_no_room_is_answered_so) {
  Asked i;
  for (uint16_t n = 1; n <= 3; ++n) EXPECT_EQ(i.on_ping(i.ping(), n).at(0).record.reason, RecordReason::kNone);
  EXPECT_EQ(i.on_ping(i.ping(), 4).at(0).record.reason, RecordReason::kNoResources);
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 1u);
  EXPECT_EQ(i.paths(i.channel), 4u);
}

// Both ends have as many of their own as a channel may have: those of the end that set it up come first. Otherwise each
// would refuse those of the other one, and the channel would have one path.
TEST(PathPing, has_room_where_the_end_that_was_asked_for_the_channel_has_its_own) {
  for (const bool asked : {false, true}) {
    Asked i;
    i.add_ports(3);
    i.ch(i.channel).initiator = !asked;
    open_paths(*i.s, i.channel);
    i.sent();
    ASSERT_EQ(i.paths(i.channel), 4u);
    for (uint16_t n = 1; n <= 4; ++n) {
      const bool room = asked && n <= 3;
      EXPECT_EQ(i.on_ping(i.ping(), n).at(0).record.reason,
                room ? RecordReason::kNone : RecordReason::kNoResources)
          << n;
      const wire::Endpoint remote = Asked::port_of_peer(n);
      EXPECT_EQ(tp::find_path(*i.s, i.ch(i.channel), i.from.local, remote) != tp::kNoPath, room) << n;
    }
    EXPECT_EQ(i.paths(i.channel), 4u);
  }
}

TEST(PathPing, about_one_of_our_own_keeps_that) {
  Asked i;
  i.add_ports(3);
  i.ch(i.channel).initiator = false;
  open_paths(*i.s, i.channel);
  i.sent();
  on_record(*i.s, i.over(Paths::port(3), i.from.remote), i.ping());
  i.sent();
  for (uint16_t n = 1; n <= 3; ++n) i.on_ping(i.ping(), n);
  EXPECT_NE(tp::find_path(*i.s, i.ch(i.channel), Paths::port(3), i.from.remote), tp::kNoPath) << "both ends have it";
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 1u);
}

TEST(PathPing, about_one_that_the_peer_refused_makes_us_ask_again) {
  Asked i;
  i.add_ports(1);
  open_paths(*i.s, i.channel);
  i.answer(i.pings().at(0), RecordReason::kNoResources);
  ASSERT_TRUE(i.path(i.channel, 1).ask_at.is_never());
  on_record(*i.s, i.over(Paths::port(1), i.from.remote), i.ping());
  i.sent();
  const OutRecord ping = i.next_ping(i.channel);
  EXPECT_EQ(ping.local, Paths::port(1));
  i.answer(ping);
  EXPECT_TRUE(i.path(i.channel, 1).live);
}

TEST(PathPing, by_another_version_of_ip_takes_no_block) {
  Asked i;
  Arrival other = i.over(i.from.local, Asked::port_of_peer());
  other.local.ip.bytes = other.remote.ip.bytes = {0xfd};
  on_record(*i.s, other, i.ping());
  EXPECT_EQ(i.only().record.reason, RecordReason::kNoResources);
  EXPECT_FALSE(i.ch(i.channel).several_paths);
}

TEST(PathPing, without_a_block_is_answered_so) {
  Asked i;
  for (int n = 0; n < 2; ++n) i.s->path_blocks.alloc();
  EXPECT_EQ(i.on_ping(i.ping()).at(0).record.reason, RecordReason::kNoResources);
  EXPECT_FALSE(i.ch(i.channel).several_paths);
}

TEST(PathPing, to_a_channel_that_takes_no_others_is_answered_so) {
  Asked i(several(1));
  EXPECT_EQ(i.on_ping(i.ping()).at(0).record.reason, RecordReason::kNoResources);
  EXPECT_EQ(i.count(Counter::kTpPathRefused), 1u);
}

TEST(PathPing, over_another_link_is_refused) {
  Asked i;
  i.s->links[i.s->links.alloc()] = LinkRecord{.up = true, .config = kWire};
  Arrival other = i.over(i.from.local, Asked::port_of_peer());
  other.link = 2;
  on_record(*i.s, other, i.ping());
  EXPECT_EQ(i.only().record.reason, RecordReason::kNoResources);
  EXPECT_EQ(i.paths(i.channel), 1u);
}

TEST(PathPing, with_an_mtu_that_the_link_does_not_have_gets_a_short_answer) {
  Asked i;
  ControlRecord r = i.ping();
  r.mtu = 8192;
  EXPECT_EQ(i.on_ping(r).at(0).pad_to_mtu, 0u);
  r.mtu = 3;
  EXPECT_EQ(i.on_ping(r).at(0).pad_to_mtu, 0u) << "no packet is so short";
}

// ---- records of a channel with several paths -------------------------------------------------------------------

TEST(RecordsOfPaths, leave_on_one_that_lives) {
  TwoPaths i;
  tp::suspect_path(*i.s, i.channel, 0, i.s->now);
  close_all(*i.s);
  const OutRecord close = i.only();
  EXPECT_EQ(close.record.type, RecordType::kClose);
  EXPECT_EQ(close.local, Paths::port(1));
}

TEST(RecordsOfPaths, that_ask_whether_the_peer_lives_are_about_no_path) {
  TwoPaths i;
  on_record(*i.s, i.from, i.reply_of_peer(i.channel, RecordType::kReset));
  const OutRecord ping = i.only();
  EXPECT_EQ(ping.record.type, RecordType::kPing);
  EXPECT_FALSE(ping.record.several_paths);
  ControlRecord pong = i.reply_of_peer(i.channel, RecordType::kPong);
  pong.reason = RecordReason::kUnknownTpn;
  on_record(*i.s, i.over(Paths::port(1), i.from.remote), pong);
  EXPECT_FALSE(alive(i.ch(i.channel))) << "whichever way the answer came";
}

TEST(RecordsOfPaths, end_with_their_channel) {
  TwoPaths i;
  const OutRecord ping = [&] {
    tp::suspect_path(*i.s, i.channel, 1, i.s->now);
    return i.next_ping(i.channel);
  }();
  const ControlRecord pong = i.answer_to(ping);
  kill_channel(*i.s, i.channel);
  EXPECT_EQ(i.s->path_blocks.in_use(), 0u);
  on_record(*i.s, i.over(ping), pong);
  EXPECT_EQ(i.count(Counter::kRxDropRecordStale), 1u);
}

}  // namespace
}  // namespace ub::setup
