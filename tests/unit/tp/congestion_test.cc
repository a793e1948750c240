// SPDX-License-Identifier: Apache-2.0
//
// What a channel tells of its network (UB Base Specification Rev 2.0, 6.6), and how it heeds it: window, rate, marks
// and the round trip of every packet that can tell one.
#include "lib/transport/tp/congestion.h"

#include <utility>

#include "lib/transport/tp/congestion_report.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/paths.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {
namespace {

constexpr auto kNothingAgreed = wire::CcAlgorithm::kNone;

CoreConfig listening() {
  CoreConfig c = small_tables();
  c.listen_to_network = true;
  return c;
}

struct Listening : Sender {
  explicit Listening(uint32_t first_psn = 100) : Sender(first_psn, listening()) {
    govern(algorithm_for(*s, kNothingAgreed, true));
  }
  const cc::Listener& heard() { return ch().flow.listener; }
};

// On a wire that is heard of as limiting to 1 GB/s.
struct Paced : Sender {
  static constexpr Duration kPacketTime = microseconds(1);

  Paced() {
    govern(cc::Algorithm::kDcqcn);
    mark();
    ch().flow.dcqcn.rate_kbytes_per_second = ch().flow.dcqcn.target_kbytes_per_second = 1'000'000;
  }
  void mark() {
    const std::byte cetph[wire::CetphCnp::kSize] = {std::byte{0xC0}};
    on_notification(*s, channel, now, cetph);
  }
  Turn turn() {
    Psn psn;
    return next_turn(*s, ch(), &psn);
  }
  bool may_begin() { return turn() == Turn::kBegin && window_open(*s, ch()); }
};

// C-AQM's first packet asks for more; losses and round trips need no marks.
uint8_t code_point_of_first(cc::Algorithm algorithm) {
  if (algorithm == cc::Algorithm::kCaqm) return wire::kEcnEct1;
  const bool marks = algorithm == cc::Algorithm::kDcqcn || algorithm == cc::Algorithm::kLdcp;
  return marks ? wire::kEcnEct0 : wire::kEcnNotCapable;
}

// ---- which one -------------------------------------------------------------------------------------------------

TEST(ChannelFlow, a_lossless_wire_needs_none_and_costs_none) {
  Sender s;
  EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, true), cc::Algorithm::kNone);
  EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, false), cc::Algorithm::kLossWindow);
  s.govern(cc::Algorithm::kNone);
  EXPECT_FALSE(has_flow(s.ch()));
  EXPECT_FALSE(s.ch().tells_sent || s.ch().paced);
}

TEST(ChannelFlow, losses_do_nothing_where_the_configuration_says_so) {
  Sender s;
  s.s->config.loss_window = false;
  s.ch().agreed_window = 128;
  s.govern(algorithm_for(*s.s, kNothingAgreed, false));
  EXPECT_FALSE(has_flow(s.ch()));
  s.send(100);
  s.nak(100);
  s.timeout();
  EXPECT_EQ(s.ch().send_window, 128u);
  EXPECT_EQ(algorithm_for(*s.s, wire::CcAlgorithm::kDcqcn, false), cc::Algorithm::kDcqcn) << "agreed on";
}

TEST(ChannelFlow, algorithms_go_by_the_constants_of_the_configuration) {
  CoreConfig config = small_tables();
  config.congestion.loss_window = {.initial_packets = 7, .least_packets = 3};
  Sender s(100, config);
  s.govern(cc::Algorithm::kLossWindow);
  EXPECT_EQ(s.ch().send_window, 7u);
  s.send(7);
  s.timeout();
  EXPECT_EQ(s.ch().send_window, 3u);
}

TEST(ChannelFlow, who_wants_to_know_the_network_listens_where_nothing_else_governs) {
  Listening s;
  EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, true), cc::Algorithm::kListener);
  EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, false), cc::Algorithm::kLossWindow);
  EXPECT_TRUE(s.ch().tells_sent);
  EXPECT_EQ(s.s->send_times.blocks().in_use(), 1u);
  end_flow(*s.s, s.ch());
  EXPECT_EQ(s.s->send_times.blocks().in_use(), 0u);
}

TEST(ChannelFlow, what_both_ends_agreed_on_governs_any_wire) {
  Listening s;
  constexpr std::pair<wire::CcAlgorithm, cc::Algorithm> kAgreed[] = {
      {wire::CcAlgorithm::kCaqm, cc::Algorithm::kCaqm},
      {wire::CcAlgorithm::kLdcp, cc::Algorithm::kLdcp},
      {wire::CcAlgorithm::kDcqcn, cc::Algorithm::kDcqcn}};
  for (const auto& [agreed, algorithm] : kAgreed) {
    EXPECT_EQ(algorithm_for(*s.s, agreed, true), algorithm);
    EXPECT_EQ(algorithm_for(*s.s, agreed, false), algorithm);
  }
}

// It needs nothing of the peer.
TEST(ChannelFlow, swift_governs_any_wire_without_agreement) {
  Sender s;
  s.s->config.congestion_control = cc::Control::kSwift;
  EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, true), cc::Algorithm::kSwift);
  EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, false), cc::Algorithm::kSwift);
}

// What is wanted of the others and was not agreed on governs nothing.
TEST(ChannelFlow, without_agreement_the_others_leave_the_wire_to_losses) {
  Sender s;
  for (auto wanted : {cc::Control::kCaqm, cc::Control::kLdcp, cc::Control::kDcqcn}) {
    s.s->config.congestion_control = wanted;
    EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, true), cc::Algorithm::kNone);
    EXPECT_EQ(algorithm_for(*s.s, kNothingAgreed, false), cc::Algorithm::kLossWindow);
  }
}

TEST(ChannelFlow, its_code_point_is_that_of_its_data) {
  for (auto algorithm : {cc::Algorithm::kDcqcn, cc::Algorithm::kLdcp, cc::Algorithm::kCaqm, cc::Algorithm::kSwift,
                         cc::Algorithm::kLossWindow}) {
    Sender s;
    s.govern(algorithm);
    const uint8_t code = s.ch().flow.ecn;
    EXPECT_EQ(code, code_point_of_first(algorithm));
    EXPECT_TRUE(s.ch().tells_sent || code == wire::kEcnNotCapable);
    std::vector<std::byte> frame(100);
    s.ch().headers.write(frame.data(), frame.size() - s.ch().headers.size, wire::kEcnNotCapable);
    tell_sent(*s.s, s.channel, s.now, {}, Psn(100), frame, false);
    wire::NetHeader net;
    ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    EXPECT_EQ(net.ecn(), code);
  }
}

TEST(ChannelFlow, begins_at_the_next_packet) {
  Sender s(0xFFFFF0);
  s.govern(cc::Algorithm::kLossWindow);
  s.send_one_by_one(5);
  s.sack(0xFFFFF0, {0xFFFFF2});
  EXPECT_EQ(s.ch().send_window, cc::kUsualConstants.loss_window.initial_packets / 2u);
}

// ---- round trips -----------------------------------------------------------------------------------------------

TEST(ChannelRoundTrip, every_packet_of_an_acknowledgement_tells_its_own) {
  Listening s;
  for (int i = 0; i < 8; ++i) {
    s.send();
    s.pass(microseconds(1));
  }
  s.ack(107);
  EXPECT_EQ(s.heard().round_trips, 8u);
  EXPECT_EQ(s.heard().least_round_trip_ns, 1000u);
}

// 6.4.2.3: it is there, whatever is missing before it.
TEST(ChannelRoundTrip, a_packet_behind_a_gap_tells_it_when_it_is_first_reported) {
  Listening s;
  s.send_one_by_one(4);
  s.pass(microseconds(3));
  s.sack(99, {101, 103});
  EXPECT_EQ(s.heard().round_trips, 2u);
  EXPECT_EQ(s.heard().least_round_trip_ns, 3000u);
  s.pass(microseconds(100));
  s.sack(99, {101, 103});
  EXPECT_EQ(s.heard().round_trips, 2u);
}

// Karn
TEST(ChannelRoundTrip, a_packet_that_went_again_tells_none) {
  Listening s;
  s.send_one_by_one(4);
  s.sack(100, {102, 103});
  EXPECT_EQ(s.heard().round_trips, 3u);
  EXPECT_EQ(s.resend(), (Psns{101}));
  s.pass(microseconds(3));
  s.ack(103);
  EXPECT_EQ(s.heard().round_trips, 3u);
}

TEST(ChannelRoundTrip, after_a_timeout_only_new_packets_tell_one) {
  Listening s;
  s.send_one_by_one(4);
  s.timeout();
  s.resend();
  s.send();
  s.pass(microseconds(3));
  s.ack(104);
  EXPECT_EQ(s.heard().round_trips, 1u);
  EXPECT_EQ(s.heard().least_round_trip_ns, 3000u);
}

TEST(ChannelRoundTrip, a_window_later_and_across_the_wrap_it_is_still_the_right_one) {
  Listening s(0xFFFFF0);
  for (uint32_t i = 0; i < 3 * kMaxWindow; ++i) {
    const Psn psn = s.ch().next_psn;
    s.send();
    s.pass(nanoseconds(500));
    s.ack(psn.value());
  }
  EXPECT_EQ(s.heard().round_trips, 3 * kMaxWindow);
  EXPECT_EQ(s.heard().least_round_trip_ns, 500u);
}

// ---- round trips of packets that asked -------------------------------------------------------------------------

// The peer may delay what was not asked for by more than the network takes.
struct Swiftly : Sender {
  static CoreConfig config() {
    CoreConfig c = small_tables();
    c.congestion_control = cc::Control::kSwift;
    return c;
  }
  Swiftly() : Sender(100, config()) { govern(algorithm_for(*s, kNothingAgreed, false)); }
  void send(bool asking) {
    all_ask = asking;
    Sender::send();
  }
  // Of the latest one that was measured; 0: none was.
  uint32_t round_trip() { return ch().flow.swift.delay_ns; }
};

TEST(ChannelSwift, has_times_of_its_packets_although_nobody_listens) {
  Swiftly s;
  EXPECT_EQ(s.ch().flow.algorithm, cc::Algorithm::kSwift);
  EXPECT_NE(s.ch().flow.send_times, 0u);
  EXPECT_TRUE(s.ch().tells_sent);
  EXPECT_EQ(s.s->send_times.blocks().in_use(), 1u);
}

TEST(ChannelSwift, a_packet_that_asked_tells_its_round_trip) {
  Swiftly s;
  s.send(true);
  s.pass(microseconds(3));
  s.ack(100);
  EXPECT_EQ(s.round_trip(), 3000u);
}

TEST(ChannelSwift, a_packet_that_did_not_ask_tells_none) {
  for (const bool lossless : {true, false}) {
    Swiftly s;
    s.ch().asks_soon = !lossless;
    s.send(false);
    s.pass(microseconds(100));
    s.ack(100);
    EXPECT_EQ(s.round_trip(), 0u);
  }
}

TEST(ChannelSwift, of_several_that_are_acknowledged_together_only_those_that_asked_tell_one) {
  Swiftly s;
  s.send(false);
  s.pass(microseconds(50));
  s.send(true);
  s.pass(microseconds(1));
  s.send(false);
  s.pass(microseconds(4));
  s.ack(102);
  EXPECT_EQ(s.round_trip(), 5000u);
}

TEST(ChannelSwift, a_packet_behind_a_gap_tells_one_only_if_it_asked) {
  Swiftly s;
  for (const bool asks : {true, false, true}) s.send(asks);
  s.pass(microseconds(2));
  s.sack(99, {101});
  EXPECT_EQ(s.round_trip(), 0u);
  s.pass(microseconds(2));
  s.sack(99, {101, 102});
  EXPECT_EQ(s.round_trip(), 4000u);
}

// All that goes again asks.
TEST(ChannelSwift, a_packet_that_went_again_tells_none) {
  Swiftly s;
  s.send(true);
  s.timeout();
  EXPECT_EQ(s.resend(), (Psns{100}));
  s.pass(microseconds(3));
  s.ack(100);
  EXPECT_EQ(s.round_trip(), 0u);
}

TEST(ChannelRoundTrip, who_listens_wants_that_of_packets_that_did_not_ask_as_well) {
  Listening s;
  s.all_ask = false;
  s.send();
  s.pass(microseconds(100));
  s.ack(100);
  EXPECT_EQ(s.heard().round_trips, 1u);
  EXPECT_EQ(s.heard().least_round_trip_ns, 100'000u);
}

// ---- losses, timeouts, marks -----------------------------------------------------------------------------------

TEST(ChannelFlow, hears_of_losses_and_timeouts) {
  Listening s;
  s.send_one_by_one(8);
  s.sack(100, {103, 105});
  EXPECT_EQ(s.heard().losses, 1u) << "once for a report";
  s.timeout();
  EXPECT_EQ(s.heard().timeouts, 1u);
  Listening nak;
  nak.send_one_by_one(5);
  nak.nak(102);
  EXPECT_EQ(nak.heard().losses, 1u);
  EXPECT_EQ(nak.heard().round_trips, 2u);
}

// The port was full all the time, say.
TEST(ChannelFlow, hears_of_a_timeout_though_all_packets_wait_to_go_again_already) {
  Listening s;
  s.send_one_by_one(3);
  s.nak(101);
  s.timeout();
  EXPECT_EQ(s.heard().timeouts, 1u);
  s.timeout();
  EXPECT_EQ(s.heard().timeouts, 2u);
}

// ROL: the peer has them, and they wait there to be executed.
TEST(ChannelFlow, hears_of_no_timeout_of_packets_that_have_all_arrived) {
  Listening s;
  s.send_one_by_one(3);
  s.sack(99, {100, 101, 102});
  s.timeout();
  s.timeout();
  EXPECT_EQ(s.count(Counter::kTpTimeout), 2u);
  EXPECT_EQ(s.heard().timeouts, 0u);
}

// 6.2.2
TEST(ChannelFlow, a_notification_is_a_mark) {
  Listening s;
  std::byte cetph[wire::CetphCnp::kSize] = {std::byte{0x40}};
  on_notification(*s.s, s.channel, s.now, cetph);
  EXPECT_EQ(s.heard().marks, 1u);
  cetph[0] = {};
  on_notification(*s.s, s.channel, s.now, cetph);
  EXPECT_EQ(s.heard().marks, 1u) << "level 0: no congestion";
  EXPECT_EQ(s.count(Counter::kTpMarks), 1u);
  EXPECT_EQ(s.count(Counter::kTpRxCnp), 2u);
  on_notification(*s.s, s.channel, s.now, {cetph, 15});
  EXPECT_EQ(s.count(Counter::kRxDropTruncatedHeader), 1u);
  EXPECT_EQ(s.count(Counter::kTpRxCnp), 2u);
}

TEST(ChannelFlow, what_an_acknowledgement_feeds_back_is_heard_and_heeded) {
  Listening s;
  s.ch().flow.window_packets = 7;
  tell_fed_back(*s.s, s.channel, s.now, {.marked_packets = 3});
  EXPECT_EQ(s.heard().marks, 3u);
  EXPECT_EQ(s.ch().send_window, 7u);
  EXPECT_EQ(s.count(Counter::kTpMarks), 3u);
}

TEST(ChannelFlow, of_ldcp_a_report_of_newly_marked_bytes_is_one_mark) {
  Sender s;
  s.govern(cc::Algorithm::kLdcp);
  tell_fed_back(*s.s, s.channel, s.now, {.received_words = 900, .marked_words = 300});
  tell_fed_back(*s.s, s.channel, s.now, {.received_words = 999, .marked_words = 300});
  EXPECT_EQ(s.count(Counter::kTpMarks), 1u);
}

// ---- what tools are told ---------------------------------------------------------------------------------------

ChannelInfo described(Sender& s) {
  ChannelInfo info{};
  describe_congestion(*s.s, s.ch(), &info);
  return info;
}

TEST(ChannelDescription, has_algorithm_and_window) {
  Sender s;
  s.ch().agreed_window = 40;
  s.govern(cc::Algorithm::kNone);
  EXPECT_STREQ(described(s).congestion_control, "none");
  EXPECT_EQ(described(s).window_packets, 40u);
  s.govern(cc::Algorithm::kLossWindow);
  EXPECT_STREQ(described(s).congestion_control, "loss_window");
  EXPECT_EQ(described(s).window_packets, 32u);
  EXPECT_EQ(described(s).rate_kbytes_per_second, 0u);
  EXPECT_EQ(described(s).paths, 1u);
}

TEST(ChannelDescription, has_the_rate_though_no_packet_may_leave_now) {
  Paced s;
  s.send();
  EXPECT_EQ(s.ch().send_window, 0u);
  EXPECT_STREQ(described(s).congestion_control, "dcqcn");
  EXPECT_EQ(described(s).rate_kbytes_per_second, 1'000'000u);
  EXPECT_EQ(described(s).window_packets, s.ch().agreed_window);
}

TEST(ChannelDescription, of_several_paths_has_the_sums_of_those_that_live) {
  CoreConfig config = small_tables();
  config.most_paths = 4;
  Sender s(100, config);
  s.govern(cc::Algorithm::kLossWindow);
  const wire::Endpoint here{wire::IpAddress::from_v4(0x0a000001), 1}, there{wire::IpAddress::from_v4(0x0a000002), 2};
  s.ch().headers.init({}, {}, here, there, 0);
  ASSERT_TRUE(begin_paths(*s.s, s.channel, s.now));
  const uint8_t second = add_path(*s.s, s.channel, s.now, here, there);
  ASSERT_EQ(second, 1);
  EXPECT_STREQ(described(s).congestion_control, "loss_window");
  EXPECT_EQ(described(s).paths, 2u);
  EXPECT_EQ(described(s).window_packets, 32u) << "the second one does not live yet";
  path_answers(*s.s, s.channel, second, s.now, microseconds(10));
  EXPECT_EQ(described(s).window_packets, 64u);
  s.ch().agreed_window = 20;
  EXPECT_EQ(described(s).window_packets, 20u);
  EXPECT_EQ(info_of(s.ch(), path_at(*s.s, s.ch(), second)).window_packets, 20u);
}

// ---- marks of the peer's packets -------------------------------------------------------------------------------

struct Marked : Sender {
  Marked() { ch().feedback = wire::CcAlgorithm::kDcqcn; }
  bool is_owed() { return ch().owed_cnp != 0; }
};

TEST(ChannelMark, is_told_with_an_acknowledgement_that_may_not_wait) {
  Marked s;
  on_ecn(*s.s, s.channel, s.now, s.ch().expected, wire::kEcnCe, 1000);
  EXPECT_EQ(s.ch().owed_cnp, wire::CetphCnp::kSevere);
  EXPECT_FALSE(ack_may_wait(s.ch(), s.now));
  EXPECT_EQ(s.s->owing_acks.back(), s.channel);
  Marked light;
  on_ecn(*light.s, light.channel, light.now, light.ch().expected, wire::kEcnEct1, 1000);
  EXPECT_EQ(light.ch().owed_cnp, wire::CetphCnp::kMinor);
}

TEST(ChannelMark, is_told_once_in_50_us) {
  Marked s;
  const auto told = [&s] {
    s.ch().owed_cnp = 0;
    on_ecn(*s.s, s.channel, s.now, s.ch().expected, wire::kEcnCe, 1000);
    return s.is_owed();
  };
  EXPECT_TRUE(told());
  s.pass(cc::kUsualConstants.dcqcn.notification_pause - nanoseconds(1));
  EXPECT_FALSE(told());
  s.pass(nanoseconds(1));
  EXPECT_TRUE(told());
}

TEST(ChannelMark, is_nothing_to_who_did_not_agree_to_be_told) {
  Marked s;
  for (auto agreed : {wire::CcAlgorithm::kNone, wire::CcAlgorithm::kLdcp, wire::CcAlgorithm::kCaqm}) {
    s.ch().feedback = agreed;
    on_ecn(*s.s, s.channel, s.now, s.ch().expected, wire::kEcnCe, 1000);
    EXPECT_FALSE(s.is_owed());
    EXPECT_FALSE(s.ch().ack_wanted || s.ch().on_ack_list);
  }
}

// ---- what the peer's packets tell, and our acknowledgements report ------------------------------------------------

constexpr uint32_t kBytes = 1000, kWords = kBytes / wire::kAckSeqUnitBytes;

struct Hearing : Sender {
  explicit Hearing(wire::CcAlgorithm agreed) {
    ch().feedback = agreed;
    ch().feeds_back = cc::feedback_size(agreed) != 0;
    if (ch().feeds_back) ch().heard = {};
    ch().expected = ch().delivered = Psn(500);
    ch().highest_seen = Psn(499);
  }
  void hear(uint32_t psn, uint8_t ecn) { on_ecn(*s, channel, now, Psn(psn), ecn, kBytes); }
  uint64_t marked() { return s->channel_counts[channel][ChannelCount::kMarked]; }
  wire::CetphLdcp ldcp() { return ch().heard.ldcp(); }
  wire::CetphCaqm caqm() { return ch().heard.caqm(); }
};

TEST(ChannelHears, of_ldcp_what_arrived_and_what_of_it_was_marked) {
  Hearing r(wire::CcAlgorithm::kLdcp);
  r.hear(500, wire::kEcnEct0);
  EXPECT_EQ(r.ldcp(), (wire::CetphLdcp{kWords, 0}));
  r.hear(500, wire::kEcnCe);
  EXPECT_EQ(r.ldcp(), (wire::CetphLdcp{2 * kWords, kWords}));
  EXPECT_EQ(r.marked(), 1u);
  EXPECT_FALSE(r.ch().ack_wanted || r.ch().on_ack_list) << "it waits for the acknowledgement";
  EXPECT_EQ(r.ch().owed_cnp, 0);
}

TEST(ChannelHears, of_caqm_that_one_who_asks_is_granted_a_payload) {
  Hearing r(wire::CcAlgorithm::kCaqm);
  r.hear(500, wire::kEcnEct1);
  const auto hint = static_cast<uint16_t>(r.ch().mtu / wire::kCaqmHintUnitBytes);
  EXPECT_EQ(r.caqm(), (wire::CetphCaqm{.ack_seq = kWords, .increase = true, .hint = hint}));
  EXPECT_EQ(r.marked(), 0u) << "to ask is no congestion";
  r.hear(500, wire::kEcnEct0);
  EXPECT_EQ(r.caqm(), (wire::CetphCaqm{.ack_seq = 2 * kWords, .increase = true, .hint = hint})) << "a hop refused";
  r.hear(500, wire::kEcnCe);
  EXPECT_EQ(r.caqm(), (wire::CetphCaqm{.ack_seq = 3 * kWords, .increase = true, .marks = 1, .hint = hint}));
  EXPECT_EQ(r.marked(), 1u);
  EXPECT_EQ(r.ch().owed_cnp, 0);
}

// Only with C-AQM does it mean something else.
TEST(ChannelHears, a_light_mark_is_congestion_to_all_but_caqm) {
  for (auto agreed : {wire::CcAlgorithm::kNone, wire::CcAlgorithm::kLdcp, wire::CcAlgorithm::kDcqcn}) {
    Hearing r(agreed);
    r.hear(500, wire::kEcnEct1);
    EXPECT_EQ(r.marked(), 1u);
    r.hear(500, wire::kEcnEct0);
    EXPECT_EQ(r.marked(), 1u);
  }
}

TEST(ChannelHears, of_ldcp_a_duplicate_is_nothing_new) {
  Hearing r(wire::CcAlgorithm::kLdcp);
  r.hear(499, wire::kEcnCe);
  EXPECT_EQ(r.ldcp(), wire::CetphLdcp{});
  EXPECT_EQ(r.marked(), 1u) << "the network is congested all the same";
}

TEST(ChannelHears, of_caqm_a_duplicate_tells_of_the_network_though_it_is_not_received) {
  Hearing r(wire::CcAlgorithm::kCaqm);
  r.hear(499, wire::kEcnCe);
  EXPECT_EQ(r.caqm(), (wire::CetphCaqm{.marks = 1}));
  r.hear(499, wire::kEcnEct1);
  EXPECT_TRUE(r.caqm().increase);
  EXPECT_EQ(r.caqm().ack_seq, 0u);
}

TEST(ChannelHears, a_packet_ahead_of_a_gap_counts_once) {
  for (auto agreed : {wire::CcAlgorithm::kLdcp, wire::CcAlgorithm::kCaqm}) {
    Hearing r(agreed);
    r.hear(502, wire::kEcnEct0);
    EXPECT_EQ(r.ch().heard.received_words, kWords);
    accept_ahead(*r.s, r.ch(), Psn(502));
    r.hear(502, wire::kEcnEct0);
    EXPECT_EQ(r.ch().heard.received_words, kWords);
  }
}

// 6.4.1: it is discarded, and comes again.
TEST(ChannelHears, of_go_back_n_a_packet_ahead_of_a_gap_is_not_received) {
  for (auto agreed : {wire::CcAlgorithm::kLdcp, wire::CcAlgorithm::kCaqm}) {
    Hearing r(agreed);
    r.ch().go_back_n = true;
    r.hear(502, wire::kEcnCe);
    EXPECT_EQ(r.ch().heard.received_words, 0u);
    r.hear(500, wire::kEcnEct0);
    EXPECT_EQ(r.ch().heard.received_words, kWords);
  }
}

TEST(ChannelHears, a_packet_beyond_the_window_is_not_received) {
  Hearing r(wire::CcAlgorithm::kLdcp);
  r.hear(500 + r.s->config.window_packets, wire::kEcnCe);
  EXPECT_EQ(r.ldcp(), wire::CetphLdcp{});
}

// Who agreed on DCQCN or on nothing sends no report, and `next_cnp` lies where the report would.
TEST(ChannelHears, without_a_report_nothing_is_added_up) {
  for (auto agreed : {wire::CcAlgorithm::kNone, wire::CcAlgorithm::kDcqcn}) {
    Hearing r(agreed);
    r.hear(500, wire::kEcnEct0);
    EXPECT_EQ(r.ch().next_cnp, Instant{});
  }
}

// ---- the window ------------------------------------------------------------------------------------------------

TEST(ChannelWindow, is_what_the_flow_allows_and_the_peer_can_take) {
  Sender s;
  s.ch().agreed_window = 40;
  s.govern(cc::Algorithm::kLossWindow);
  EXPECT_EQ(s.ch().send_window, 32u);
  s.send_one_by_one(20);
  s.ack(119);
  EXPECT_EQ(s.ch().flow.window_packets, 52u);
  EXPECT_EQ(s.ch().send_window, 40u);
  s.send();
  s.timeout();
  EXPECT_EQ(s.ch().send_window, 2u);
}

TEST(ChannelWindow, grows_no_further_than_a_channel_can_track) {
  Sender s;
  s.govern(cc::Algorithm::kLossWindow);
  for (int i = 0; i < 200; ++i) {
    s.send_one_by_one(16);
    s.ack(s.ch().next_psn.value() - 1);
  }
  EXPECT_EQ(s.ch().flow.window_packets, kMaxWindow);
}

// As an algorithm may move its window because of whatever it is told.
TEST(ChannelWindow, a_packet_behind_a_gap_may_change_it) {
  Listening s;
  s.ch().fast = false;  // nothing but its arrival is told
  s.send_one_by_one(4);
  s.ch().flow.window_packets = 3;
  s.sack(99, {102});
  EXPECT_EQ(s.heard().round_trips, 1u);
  EXPECT_EQ(s.ch().send_window, 3u);
}

TEST(ChannelWindow, one_that_grows_gives_the_channel_its_turn) {
  Sender s;
  s.govern(cc::Algorithm::kLossWindow);
  s.send_one_by_one(cc::kUsualConstants.loss_window.initial_packets);
  const auto look = [&s](uint16_t window) {
    while (!s.s->active.empty()) take_active(*s.s);
    s.ch().flow.window_packets = window;
    look_at_flow(*s.s, s.channel, s.now);
    return static_cast<bool>(s.ch().on_active_list);
  };
  EXPECT_FALSE(look(cc::kUsualConstants.loss_window.initial_packets));
  EXPECT_TRUE(look(cc::kUsualConstants.loss_window.initial_packets + 1));
  EXPECT_TRUE(window_open(*s.s, s.ch()));
  EXPECT_FALSE(look(cc::kUsualConstants.loss_window.initial_packets));
}

// ---- the rate --------------------------------------------------------------------------------------------------

TEST(ChannelRate, after_a_packet_nothing_leaves_for_the_time_that_its_bytes_take) {
  Paced s;
  EXPECT_TRUE(s.may_begin());
  s.send();
  EXPECT_EQ(s.ch().flow.next_packet, s.now + Paced::kPacketTime);
  EXPECT_FALSE(s.may_begin());
  EXPECT_LE(s.s->timers.earliest(), s.now + Paced::kPacketTime);
}

TEST(ChannelRate, while_it_allows_no_packet_the_window_is_closed_though_nothing_is_in_flight) {
  Paced s;
  s.send();
  s.ack(100);
  ASSERT_EQ(s.ch().outstanding(), 0u);
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  s.pass(Paced::kPacketTime);
  (void)on_timer(*s.s, s.channel, s.now);
  EXPECT_TRUE(window_open(*s.s, s.ch()));
}

TEST(ChannelRate, what_goes_again_waits_as_well) {
  Paced s;
  s.send_one_by_one(4);
  s.pass(milliseconds(1));
  (void)on_timer(*s.s, s.channel, s.now);
  s.sack(99, {103});
  EXPECT_EQ(s.turn(), Turn::kSendAgain);
  EXPECT_EQ(s.resend(), (Psns{100})) << "there is another one, which waits";
  EXPECT_NE(s.turn(), Turn::kSendAgain);
}

TEST(ChannelRate, its_timer_gives_it_its_turn_again_and_no_earlier) {
  Paced s;
  s.send();
  while (!s.s->active.empty()) take_active(*s.s);
  s.pass(Paced::kPacketTime - nanoseconds(1));
  s.s->timers.cancel(s.s->timer_of_channel(s.channel));  // it fired, early
  EXPECT_EQ(on_timer(*s.s, s.channel, s.now), TimerVerdict::kGoesOn);
  EXPECT_FALSE(s.may_begin());
  EXPECT_FALSE(s.ch().on_active_list);
  EXPECT_EQ(s.s->timers.earliest(), s.now + nanoseconds(1)) << "it comes for the rest";
  s.pass(nanoseconds(1));
  EXPECT_EQ(on_timer(*s.s, s.channel, s.now), TimerVerdict::kGoesOn);
  EXPECT_TRUE(s.may_begin());
  EXPECT_TRUE(s.ch().on_active_list);
}

TEST(ChannelRate, comes_back_by_the_timer_alone) {
  Paced s;
  s.mark();
  const uint32_t slow = s.ch().flow.dcqcn.rate_kbytes_per_second;
  const Instant step = s.ch().flow.timer_at;
  EXPECT_LE(s.s->timers.earliest(), step);
  s.now = step;
  for (uint32_t object; s.s->timers.pop_due(s.now, &object);) EXPECT_EQ(object, s.s->timer_of_channel(s.channel));
  (void)on_timer(*s.s, s.channel, s.now);
  EXPECT_GT(s.ch().flow.dcqcn.rate_kbytes_per_second, slow);
  EXPECT_LE(s.s->timers.earliest(), s.ch().flow.timer_at);
}

}  // namespace
}  // namespace ub::tp
