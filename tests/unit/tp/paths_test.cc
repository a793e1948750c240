// SPDX-License-Identifier: Apache-2.0
//
// The paths of a channel (docs/paths-design.md): how they begin and end, which one a packet takes, and what the channel
// may send by all of them. What becomes of packets is in path_losses_test.cc.
#include "lib/transport/tp/paths.h"

#include <algorithm>

#include "lib/transport/tp/congestion_report.h"
#include "lib/transport/tp/owed_ack.h"
#include "tests/unit/tp/several_paths.h"

namespace ub::tp {
namespace {

using Counts = std::vector<uint32_t>;

// ---- beginning and end -----------------------------------------------------------------------------------------

TEST(BeginPaths, makes_the_only_path_the_first_one) {
  SeveralPaths s(0, cc::Algorithm::kLossWindow);
  ASSERT_TRUE(begin_paths(*s.s, s.channel, s.now));
  ASSERT_EQ(paths_of(*s.s, s.ch()).size(), 1u);
  EXPECT_TRUE(s.ch().several_paths && s.ch().tells_sent);
  EXPECT_EQ(s.path(0).local, local_of(0));
  EXPECT_EQ(s.path(0).remote, peer_address());
  EXPECT_TRUE(s.path(0).live);
  EXPECT_EQ(s.path(0).flow.algorithm, cc::Algorithm::kLossWindow);
  EXPECT_EQ(s.ch().send_window, s.path(0).flow.window_packets);
}

TEST(AddPath, has_the_code_point_of_the_channels_class) {
  SeveralPaths s(0);
  s.ch().headers.init({}, {}, local_of(0), peer_address(), 8);
  s.begin(2);
  for (const uint8_t path : {0, 1}) EXPECT_EQ(s.path(path).headers.dscp(), 8) << int{path};
}

TEST(BeginPaths, gives_the_round_trips_of_the_channels_own_flow_back) {
  CoreConfig config = several_paths();
  config.listen_to_network = true;
  SeveralPaths s(0, cc::Algorithm::kListener, 100, config);
  ASSERT_EQ(s.s->send_times.blocks().in_use(), 1u);
  s.begin(2);
  EXPECT_EQ(s.s->send_times.blocks().in_use(), 0u);
  EXPECT_EQ(s.path(1).flow.algorithm, cc::Algorithm::kListener);
}

// The channel tells its paths, even if they have no congestion control.
TEST(BeginPaths, without_congestion_control_leaves_something_to_tell) {
  SeveralPaths s(1);
  EXPECT_TRUE(has_flow(s.ch()));
  EXPECT_EQ(s.path(0).flow.algorithm, cc::Algorithm::kNone);
  EXPECT_EQ(s.ch().send_window, s.ch().agreed_window);
}

TEST(BeginPaths, needs_a_block) {
  SeveralPaths s(0);
  for (int n = 0; n < 2; ++n) s.s->path_blocks.alloc();
  EXPECT_FALSE(begin_paths(*s.s, s.channel, s.now));
  EXPECT_FALSE(s.ch().several_paths);
  s.send();
  s.ack(100);
  EXPECT_EQ(s.ch().outstanding(), 0u);
}

TEST(BeginPaths, finds_none_where_one_path_is_configured) {
  SeveralPaths s(0, cc::Algorithm::kNone, 100, small_tables());
  EXPECT_FALSE(begin_paths(*s.s, s.channel, s.now));
}

TEST(BeginPaths, takes_over_what_is_in_flight) {
  SeveralPaths s(0);
  s.send(4);
  s.begin(2);
  EXPECT_EQ(s.in_flight(), (Counts{4, 0}));
  for (uint32_t psn = 100; psn < 104; ++psn) EXPECT_EQ(s.departure(psn).number, psn - 99);
  s.send_on(1);
  EXPECT_EQ(s.in_flight(), (Counts{4, 1}));
  s.ack(104);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  EXPECT_EQ(s.path(0).reach, 4u);
}

// 100 is lost, 101 has arrived, 102 went again, 103 was sent once.
TEST(BeginPaths, takes_over_what_is_known_of_packets_in_flight) {
  SeveralPaths s(0);
  s.ch().tolerance.begin(0);
  s.send(4);
  s.sack(99, {101, 103});
  ASSERT_EQ(s.resend(), (Psns{100, 102}));
  RecoveryBlock& r = s.recovery();
  ASSERT_TRUE(queue_resend(r, Psn(100)));
  s.begin(2);
  EXPECT_EQ(s.in_flight(), (Counts{1, 0}));
  EXPECT_TRUE(s.departure(100).lost);
  EXPECT_EQ(s.path_of(101), kNoPath);
  EXPECT_TRUE(s.departure(102).again);
  EXPECT_FALSE(s.departure(102).lost);
  EXPECT_EQ(s.path_of(103), kNoPath);
  EXPECT_EQ(s.resend(), Psns{100});
  s.ack(103);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

TEST(BeginPaths, goes_on_with_what_the_channel_has_heard) {
  SeveralPaths s(0);
  s.ch().feeds_back = true;
  s.ch().feedback = wire::CcAlgorithm::kLdcp;
  s.ch().heard = {};
  s.ch().heard.accepted(wire::CcAlgorithm::kLdcp, 1000, wire::kEcnCe);
  s.begin(2);
  EXPECT_EQ(s.path(0).heard.received_words, 500u) << "a total that begins anew would be an old one to the peer";
  EXPECT_EQ(s.path(0).heard.marked_words, 500u);
  EXPECT_EQ(s.path(1).heard.received_words, 0u);
}

// The peer goes on with its totals, too. Beyond 2^31 they would seem old to a flow that begins with 0.
TEST(BeginPaths, goes_on_with_what_the_peer_has_reported) {
  constexpr uint32_t kReceived = 3'000'000'000;
  SeveralPaths s(0, cc::Algorithm::kLdcp);
  tell_fed_back(*s.s, s.channel, s.now, {.received_words = kReceived / 2});
  tell_fed_back(*s.s, s.channel, s.now, {.received_words = kReceived, .marked_words = 300});
  s.begin(2);
  tell_fed_back(*s.s, s.channel, s.now, {.received_words = kReceived + 100, .marked_words = 300});
  EXPECT_EQ(s.path(0).flow.ldcp.received_words, kReceived + 100);
  EXPECT_EQ(s.path(0).flow.ldcp.received_before, kReceived);
  EXPECT_EQ(s.path(0).flow.ldcp.marked_before, 300u);
  EXPECT_EQ(s.path(0).marks, 0u) << "all 300 are old";
  EXPECT_EQ(s.path(1).flow.ldcp.received_words, 0u);
}

TEST(BeginPaths, goes_on_with_the_round_trip_of_the_channel) {
  SeveralPaths s(0);
  add_sample(s.ch().round_trip, kRoundTrip * 3, s.now);
  ASSERT_TRUE(begin_paths(*s.s, s.channel, s.now));
  EXPECT_EQ(s.path(0).round_trip.smoothed, kRoundTrip * 3);
}

TEST(EndPaths, gives_the_block_back) {
  SeveralPaths s(3);
  EXPECT_EQ(s.s->path_blocks.in_use(), 1u);
  end_flow(*s.s, s.ch());
  EXPECT_EQ(s.s->path_blocks.in_use(), 0u);
  EXPECT_FALSE(s.ch().several_paths || s.ch().takes_paths);
  end_paths(*s.s, s.ch());
  EXPECT_EQ(s.s->path_blocks.in_use(), 0u);
}

TEST(BeginPaths, forgets_the_channel_that_had_the_block_before) {
  SeveralPaths s(3);
  s.send_on(2, 5);
  s.path(1).deaths = 7;
  end_paths(*s.s, s.ch());
  s.ch().oldest_unacked = s.ch().next_psn;
  s.begin(2);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  EXPECT_EQ(s.path(1).deaths, 0u);
  EXPECT_TRUE(std::ranges::all_of(s.block().departures, [](const Departure& d) { return d.path == kNoPath; }));
}

// ---- adding and finding ----------------------------------------------------------------------------------------

TEST(AddPath, does_not_live_and_is_to_be_asked_now) {
  SeveralPaths s(1, cc::Algorithm::kLossWindow);
  const uint32_t window = s.ch().send_window;
  ASSERT_EQ(add_path(*s.s, s.channel, s.now, local_of(1), peer_address()), 1);
  EXPECT_FALSE(s.path(1).live);
  EXPECT_EQ(s.path(1).ask_at, s.now);
  EXPECT_EQ(s.s->timers.earliest(), s.now);
  EXPECT_EQ(s.path(1).flow.algorithm, cc::Algorithm::kLossWindow);
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_EQ(s.ch().send_window, window);
  s.send_on(1);
  EXPECT_EQ(s.path_of(100), 0);
}

TEST(AddPath, finds_no_room_beyond_the_limit) {
  SeveralPaths s(4);
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(4), peer_address()), kNoPath);
  EXPECT_EQ(paths_of(*s.s, s.ch()).size(), 4u);
}

TEST(AddPath, takes_the_place_of_one_that_the_peer_refused) {
  SeveralPaths s(2);
  for (uint32_t i = 2; i < 4; ++i) ASSERT_EQ(add_path(*s.s, s.channel, s.now, local_of(i), peer_address()), i);
  s.path(2).ask_at = Instant::never();
  s.path(2).known = true;
  s.path(2).heard.received_words = 9;
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(4), peer_address()), 2);
  EXPECT_EQ(paths_of(*s.s, s.ch()).size(), 4u);
  EXPECT_EQ(s.path(2).local, local_of(4));
  EXPECT_EQ(s.path(2).ask_at, s.now);
  EXPECT_FALSE(s.path(2).known);
  EXPECT_EQ(s.path(2).heard.received_words, 0u) << "of the former one";
  EXPECT_EQ(find_path(*s.s, s.ch(), local_of(2), peer_address()), kNoPath);
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(5), peer_address()), kNoPath) << "the others may still answer";
}

TEST(AddPath, may_take_that_of_one_that_never_lived_and_that_the_peer_does_not_know) {
  SeveralPaths s(2);
  for (uint32_t i = 2; i < 4; ++i) ASSERT_EQ(add_path(*s.s, s.channel, s.now, local_of(i), peer_address()), i);
  s.path(3).known = true;
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(4), peer_address(), true), 2);
  s.path(2).known = true;
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(5), peer_address(), true), kNoPath);
  s.path(3).known = false;
  path_answers(*s.s, s.channel, 3, s.now, kRoundTrip);
  suspect_path(*s.s, s.channel, 3, s.now);
  s.path(1).known = s.path(0).known = false;
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(5), peer_address(), true), kNoPath)
      << "one that lives, or did, has packets";
}

TEST(AddPath, refuses_headers_of_another_length) {
  SeveralPaths s(1);
  wire::Endpoint v6 = local_of(1);
  v6.ip.bytes = {0xfd};
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, v6, peer_address()), kNoPath);
  EXPECT_EQ(add_path(*s.s, s.channel, s.now, local_of(1), v6), kNoPath);
  EXPECT_EQ(paths_of(*s.s, s.ch()).size(), 1u);
}

TEST(FindPath, goes_by_both_addresses_and_ports) {
  SeveralPaths s(3);
  wire::Endpoint other = peer_address();
  other.ip = wire::IpAddress::from_v4(0x0A000003);
  for (uint8_t i = 0; i < 3; ++i) {
    EXPECT_EQ(find_path(*s.s, s.ch(), local_of(i), peer_address()), i);
    EXPECT_EQ(find_path(*s.s, s.ch(), local_of(i), other), kNoPath);
  }
  other = peer_address();
  ++other.port;
  EXPECT_EQ(find_path(*s.s, s.ch(), local_of(0), other), kNoPath);
  EXPECT_EQ(find_path(*s.s, s.ch(), local_of(3), peer_address()), kNoPath);
}

// ---- life and death --------------------------------------------------------------------------------------------

TEST(PathAnswers, and_its_window_counts) {
  SeveralPaths s(1);
  s.limit(0, 10);
  EXPECT_EQ(s.ch().send_window, 10u);
  ASSERT_EQ(add_path(*s.s, s.channel, s.now, local_of(1), peer_address()), 1);
  s.path(1).flow.window_packets = 7;
  path_answers(*s.s, s.channel, 1, s.now, kRoundTrip);
  EXPECT_TRUE(s.path(1).live);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip);
  EXPECT_EQ(s.path(1).news_at, s.now);
  EXPECT_EQ(s.ch().send_window, 17u);
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_EQ(s.count(Counter::kTpPathLive), 1u);
}

TEST(PathAnswers, once_more_is_nothing_new) {
  SeveralPaths s(2);
  const uint64_t before = s.count(Counter::kTpPathLive);
  path_answers(*s.s, s.channel, 1, s.now, kRoundTrip * 9);
  EXPECT_EQ(s.count(Counter::kTpPathLive), before);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip);
}

TEST(SuspectPath, takes_it_out_of_use) {
  SeveralPaths s(2);
  s.limit(0, 10);
  s.limit(1, 7);
  suspect_path(*s.s, s.channel, 1, s.now);
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_FALSE(s.path(1).live);
  EXPECT_EQ(s.ch().send_window, 10u);
  EXPECT_EQ(s.path(1).ask_at, s.now);
  EXPECT_EQ(s.s->timers.earliest(), s.now);
  EXPECT_EQ(s.path(1).deaths, 1u);
  EXPECT_EQ(s.count(Counter::kTpPathDead), 1u);
  suspect_path(*s.s, s.channel, 1, s.now);
  EXPECT_EQ(s.path(1).deaths, 1u) << "it is dead already";
  s.send_on(1, 2);
  EXPECT_EQ(s.in_flight(), (Counts{2, 0}));
}

TEST(SuspectPath, leaves_the_last_one_in_use) {
  SeveralPaths s(2);
  suspect_path(*s.s, s.channel, 0, s.now);
  suspect_path(*s.s, s.channel, 1, s.now);
  EXPECT_TRUE(s.path(1).live);
  EXPECT_EQ(s.path(1).deaths, 0u);
  EXPECT_EQ(s.count(Counter::kTpPathDead), 1u);
}

TEST(SuspectPath, leaves_it_the_least_window) {
  SeveralPaths s(2, cc::Algorithm::kLossWindow);
  suspect_path(*s.s, s.channel, 1, s.now);
  EXPECT_EQ(s.path(1).flow.window_packets, s.s->config.congestion.loss_window.least_packets);
}

TEST(AnyLivePath, is_the_first_that_lives) {
  SeveralPaths s(3);
  EXPECT_EQ(any_live_path(*s.s, s.ch()), 0);
  suspect_path(*s.s, s.channel, 0, s.now);
  EXPECT_EQ(any_live_path(*s.s, s.ch()), 1);
}

// ---- departures ------------------------------------------------------------------------------------------------

TEST(PathDeparture, is_numbered_and_counted_on_its_path) {
  SeveralPaths s(2);
  s.send_on(0, 2);
  s.send_on(1, 3);
  EXPECT_EQ(s.in_flight(), (Counts{2, 3}));
  EXPECT_EQ(s.departure(101).number, 2);
  EXPECT_EQ(s.departure(104).number, 3);
  EXPECT_EQ(s.path(1).newest, 3u);
  EXPECT_EQ(s.path(1).tx_packets, 3u);
  EXPECT_EQ(s.departure(104).left.ticks, LeftAt::of(s.now).ticks);
  EXPECT_FALSE(s.departure(104).again || s.departure(104).lost);
}

TEST(PathDeparture, has_the_addresses_and_the_code_point_of_its_path) {
  SeveralPaths s(2, cc::Algorithm::kDcqcn);
  for (uint32_t path : {1u, 0u}) {
    s.send_on(path);
    wire::NetHeader net;
    ASSERT_EQ(wire::parse_network(s.last_frame(), net), wire::Drop::kNone);
    EXPECT_EQ(net.src, local_of(path));
    EXPECT_EQ(net.dst, peer_address());
    EXPECT_EQ(net.ecn(), wire::kEcnEct0);
  }
}

TEST(PathOfPacket, each_takes_the_first_arrival) {
  SeveralPaths s(2, cc::Algorithm::kNone, 100, several_paths(Spread::kPackets));
  s.send(4);
  EXPECT_EQ((Counts{s.path_of(100), s.path_of(101), s.path_of(102), s.path_of(103)}), (Counts{0, 1, 0, 1}));
}

TEST(PathOfMessage, stays_while_it_has_room) {
  SeveralPaths s(2, cc::Algorithm::kNone, 100, several_paths(Spread::kMessages));
  s.send(3);
  s.send(2);
  EXPECT_EQ(s.in_flight(), (Counts{3, 2})) << "the next message chooses anew";
  s.limit(0, 4);
  s.send(3);
  EXPECT_EQ(s.in_flight(), (Counts{3, 5}));
  s.limit(1, 6);
  s.send(2);
  EXPECT_EQ(s.in_flight(), (Counts{4, 6})) << "one each";
}

TEST(PathOfQueue, is_that_of_its_number_while_it_has_room) {
  SeveralPaths s(3);
  s.send_on(4);
  s.send_on(5);
  EXPECT_EQ(s.in_flight(), (Counts{0, 1, 1}));
  s.limit(1, 1);
  s.send_on(4);
  EXPECT_EQ(s.in_flight(), (Counts{1, 1, 1}));
}

TEST(PathOfQueue, that_is_dead_is_another_one) {
  SeveralPaths s(2);
  suspect_path(*s.s, s.channel, 1, s.now);
  s.send_on(1);
  EXPECT_EQ(s.path_of(100), 0);
}

TEST(PathOfGoBackN, stays_the_same_however_full) {
  SeveralPaths s(2, cc::Algorithm::kNone, 100, several_paths(Spread::kPackets));
  s.ch().go_back_n = true;
  s.limit(0, 2);
  s.send(4);
  EXPECT_EQ(s.in_flight(), (Counts{4, 0}));
  s.nak(101);
  EXPECT_EQ(s.resend(), (Psns{101, 102, 103}));
  EXPECT_EQ(s.in_flight(), (Counts{3, 0})) << "what goes again, too";
}

TEST(PathOfPacket, that_goes_again_is_another_one) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  ASSERT_EQ(s.resend(), Psns{100});
  EXPECT_EQ(s.path_of(100), 0);
  EXPECT_TRUE(s.departure(100).again);
  EXPECT_EQ(s.in_flight(), (Counts{1, 0}));
}

TEST(PathOfPacket, that_goes_again_is_the_same_where_no_other_lives) {
  SeveralPaths s(2);
  suspect_path(*s.s, s.channel, 0, s.now);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  ASSERT_EQ(s.resend(), Psns{100});
  EXPECT_EQ(s.path_of(100), 1);
}

// A probe sends packets again that are not known as lost.
TEST(PathDeparture, of_a_packet_in_flight_takes_it_off_its_former_path) {
  SeveralPaths s(2);
  s.send_on(1, 3);
  recovery_block(*s.s, s.ch());
  ASSERT_TRUE(queue_resend(s.recovery(), Psn(101)));
  ASSERT_EQ(s.resend(), Psns{101});
  EXPECT_EQ(s.in_flight(), (Counts{1, 2}));
}

// ---- window and rate -------------------------------------------------------------------------------------------

TEST(PathWindows, add_up_to_that_of_the_channel) {
  SeveralPaths s(3);
  s.limit(0, 10);
  s.limit(1, 20);
  s.limit(2, 5);
  EXPECT_EQ(s.ch().send_window, 35u);
  s.ch().agreed_window = 31;
  s.limit(2, 6);
  EXPECT_EQ(s.ch().send_window, 31u) << "the peer's";
}

TEST(PathWindows, that_grow_activate_the_channel) {
  SeveralPaths s(2);
  s.limit(0, 10);
  s.limit(1, 10);
  ASSERT_EQ(take_active(*s.s), s.channel);
  s.limit(1, 9);
  EXPECT_FALSE(s.ch().on_active_list);
  s.limit(1, 11);
  EXPECT_TRUE(s.ch().on_active_list);
}

TEST(PathWindows, of_a_slow_path_count_as_far_as_its_packets_come_in_time) {
  SeveralPaths s(2);
  s.limit(0, 10);
  s.path(1).gap_ns = 10'000;
  s.limit(1, 100);
  EXPECT_EQ(s.path(1).room, 4u);
  EXPECT_EQ(s.ch().send_window, 14u);
}

// What has room by its window may still not leave there: a packet would push its next departure ever further away.
TEST(PathRates, leave_no_room_but_for_what_is_in_flight) {
  SeveralPaths s(2);
  s.limit(0, 10);
  s.limit(1, 2);
  s.send_on(0, 3);
  s.send_on(1, 2);
  ASSERT_EQ(s.in_flight(), (Counts{3, 2}));
  s.path(0).flow.next_packet = s.now + microseconds(5);
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_FALSE(s.ch().paced);
  EXPECT_EQ(s.ch().send_window, 5u);
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  s.limit(0, 2);
  EXPECT_EQ(s.ch().send_window, 4u) << "what is beyond the window counts as it does without a rate";
}

TEST(PathRates, hold_the_channel_back_when_all_do) {
  SeveralPaths s(2);
  s.path(0).flow.next_packet = s.now + microseconds(5);
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_FALSE(s.ch().paced);
  s.send_on(0);
  EXPECT_EQ(s.path_of(100), 1);
  s.path(1).flow.next_packet = s.now + microseconds(7);
  s.s->timers.cancel(s.s->timer_of_channel(s.channel));
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_TRUE(s.ch().paced);
  EXPECT_EQ(s.ch().send_window, 0u);
  EXPECT_EQ(s.s->timers.earliest(), s.now + microseconds(5)) << "the earliest of them";
  s.pass(microseconds(5));
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_FALSE(s.ch().paced);
  EXPECT_NE(s.ch().send_window, 0u);
}

TEST(PathRates, of_a_dead_path_do_not_matter) {
  SeveralPaths s(2);
  suspect_path(*s.s, s.channel, 1, s.now);
  s.path(0).flow.next_packet = s.now + microseconds(5);
  s.s->timers.cancel(s.s->timer_of_channel(s.channel));
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_TRUE(s.ch().paced);
  s.path(1).flow.next_packet = s.now + microseconds(1);
  look_at_paths(*s.s, s.channel, s.now);
  EXPECT_EQ(s.s->timers.earliest(), s.now + microseconds(5));
}

// ---- what the network says -------------------------------------------------------------------------------------

TEST(PathFlows, halve_the_window_of_the_path_that_loses) {
  SeveralPaths s(2, cc::Algorithm::kLossWindow);
  const uint32_t window = s.path(0).flow.window_packets;
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  EXPECT_LT(s.path(1).flow.window_packets, window);
  EXPECT_EQ(s.path(0).flow.window_packets, window);
  EXPECT_EQ(s.path(1).lost, 1u);
  EXPECT_EQ(s.ch().send_window, s.path(0).flow.window_packets + s.path(1).flow.window_packets);
}

TEST(PathFlows, grow_with_what_arrives_on_their_path) {
  SeveralPaths s(2, cc::Algorithm::kLossWindow);
  const uint32_t window = s.path(0).flow.window_packets;
  s.send_on(1, 3);
  s.ack(102);
  EXPECT_EQ(s.path(1).flow.window_packets, window + 3);
  EXPECT_EQ(s.path(0).flow.window_packets, window);
}

TEST(PathFlows, hear_the_notifications_of_their_path) {
  SeveralPaths s(2, cc::Algorithm::kDcqcn);
  const std::byte cetph[wire::CetphCnp::kSize] = {std::byte{0xC0}};
  s.hear(1);
  on_notification(*s.s, s.channel, s.now, cetph);
  EXPECT_EQ(s.path(1).marks, 1u);
  EXPECT_EQ(s.path(0).marks, 0u);
  EXPECT_NE(s.path(1).flow.dcqcn.rate_kbytes_per_second, 0u);
  EXPECT_EQ(s.path(0).flow.dcqcn.rate_kbytes_per_second, 0u) << "nothing limits it";
}

TEST(PathFlows, hear_the_reports_of_their_path) {
  SeveralPaths s(2, cc::Algorithm::kCaqm);
  s.send_on(1, 4);
  s.hear(1);
  tell_fed_back(*s.s, s.channel, s.now, {.received_words = 500, .marked_packets = 3});
  EXPECT_EQ(s.path(1).marks, 3u);
  EXPECT_EQ(s.path(0).marks, 0u);
}

TEST(PathFlows, hear_round_trips_of_their_path) {
  SeveralPaths s(2, cc::Algorithm::kSwift);
  s.send_on(1);
  s.pass(kRoundTrip * 2);
  s.ack(100);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip + kRoundTrip / 8);
  EXPECT_EQ(s.path(0).round_trip.smoothed, kRoundTrip);
}

// ---- receiving -------------------------------------------------------------------------------------------------

TEST(HeardOnPath, is_remembered_and_counted) {
  SeveralPaths s(3);
  s.hear(2);
  EXPECT_EQ(&heard_from(*s.s, s.ch()), &s.path(2));
  EXPECT_EQ(s.path(2).rx_packets, 1u);
  EXPECT_TRUE(s.path(2).has_news);
  s.hear(7);
  EXPECT_EQ(&heard_from(*s.s, s.ch()), &s.path(2)) << "addresses of no path";
}

TEST(PathOfAck, is_that_of_the_latest_packet) {
  SeveralPaths s(3);
  s.hear(2);
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 2);
  s.hear(1);
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 1) << "the other has nothing of its own to report";
  suspect_path(*s.s, s.channel, 1, s.now);
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 0);
}

TEST(PathOfAck, where_each_reports_is_one_with_news_after_the_other) {
  SeveralPaths s(4);
  s.ch().feeds_back = true;
  // However often the last packet came over the same one.
  for (const uint8_t path : {1, 3, 0, 1, 3, 0}) {
    for (const uint8_t i : {0, 3, 1}) s.hear(i);
    EXPECT_EQ(path_of_ack(*s.s, s.ch()), path);
    ack_left(*s.s, s.ch(), s.path(path));
  }
  for (const uint8_t i : {0, 1, 3}) s.path(i).has_news = false;
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 1) << "none has news";
}

TEST(PathOfAck, is_no_dead_one_although_it_has_news) {
  SeveralPaths s(3);
  s.ch().feeds_back = true;
  s.hear(1);
  suspect_path(*s.s, s.channel, 1, s.now);
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 0);
  s.hear(2);
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 2);
}

TEST(PathReports, say_what_came_over_their_path) {
  SeveralPaths s(2);
  s.ch().feeds_back = true;
  s.ch().feedback = wire::CcAlgorithm::kLdcp;
  s.ch().expected = s.ch().delivered = Psn(500);
  s.ch().highest_seen = Psn(499);
  s.hear(1);
  on_ecn(*s.s, s.channel, s.now, Psn(500), wire::kEcnCe, 1000);
  EXPECT_EQ(s.path(1).heard.received_words, 500u);
  EXPECT_EQ(s.path(1).heard.marked_words, 500u);
  EXPECT_EQ(s.path(0).heard.received_words, 0u);
}

struct NotifiedPaths : SeveralPaths {
  NotifiedPaths() : SeveralPaths(2, cc::Algorithm::kDcqcn) { ch().feedback = wire::CcAlgorithm::kDcqcn; }
  void congestion_on(uint8_t path) {
    hear(path);
    on_ecn(*s, channel, now, Psn(500), wire::kEcnCe, 1000);
  }
};

TEST(PathNotification, leaves_on_the_path_that_met_congestion) {
  NotifiedPaths s;
  s.congestion_on(1);
  EXPECT_EQ(s.ch().owed_cnp, wire::kEcnCe);
  EXPECT_EQ(s.block().cnp_path, 1);
  s.congestion_on(0);
  EXPECT_EQ(s.block().cnp_path, 1) << "that of the other has not left";
  s.ch().owed_cnp = 0;
  s.congestion_on(0);
  EXPECT_EQ(s.block().cnp_path, 0);
}

TEST(PathNotification, pauses_by_path) {
  NotifiedPaths s;
  s.congestion_on(1);
  s.ch().owed_cnp = 0;
  s.congestion_on(1);
  EXPECT_EQ(s.ch().owed_cnp, 0) << "too soon";
  s.congestion_on(0);
  EXPECT_EQ(s.ch().owed_cnp, wire::kEcnCe);
}

// ---- what is told of it ----------------------------------------------------------------------------------------

TEST(PathInformation, is_that_of_the_moment) {
  SeveralPaths s(2);
  s.limit(1, 9);
  s.send_on(1, 2);
  s.hear(1);
  const PathInfo info = info_of(s.ch(), s.path(1));
  EXPECT_EQ(info.local, local_of(1));
  EXPECT_EQ(info.remote, peer_address());
  EXPECT_TRUE(info.live);
  EXPECT_EQ(info.in_flight, 2u);
  EXPECT_EQ(info.window_packets, 9u);
  EXPECT_EQ(info.smoothed_rtt, kRoundTrip);
  EXPECT_EQ(info.tx_packets, 2u);
  EXPECT_EQ(info.rx_packets, 1u);
  EXPECT_EQ(info.rate_kbytes_per_second, 0u);
}

}  // namespace
}  // namespace ub::tp
