// SPDX-License-Identifier: Apache-2.0
//
// To which of several paths a signal belongs (docs/paths-design.md): each is heard by the flow of one path and by no
// other, whatever paths other packets take. And what tools are told of the paths together.
#include <functional>
#include <string>
#include <utility>

#include "lib/transport/tp/congestion_report.h"
#include "lib/transport/tp/paths.h"
#include "tests/unit/tp/several_paths.h"

namespace ub::tp {
namespace {

using Counts = std::vector<uint32_t>;
constexpr uint32_t kPaths = 4;

// ---- whose signal it is ----------------------------------------------------------------------------------------

// The signals of `its`: all else that a block knows of paths is about others.
struct OneOfFour : SeveralPaths {
  explicit OneOfFour(uint8_t path, cc::Algorithm algorithm = cc::Algorithm::kListener)
      : SeveralPaths(kPaths, algorithm), its(path) {
    hear(path);
    block().current = other(1);
    block().ack_path = other(2);
    block().cnp_path = other(3);
  }
  uint8_t other(uint32_t n) const { return static_cast<uint8_t>((its + n) % kPaths); }
  Counts of_each(const std::function<uint32_t(const Path&)>& what) {
    Counts all;
    for (const Path& p : paths_of(*s, ch())) all.push_back(what(p));
    return all;
  }
  // It alone has so many.
  Counts alone(uint32_t count) const {
    Counts all(kPaths, 0);
    all[its] = count;
    return all;
  }
  uint8_t its;
};

uint32_t marks_heard(const Path& p) { return p.flow.listener.marks; }
uint32_t marks_shown(const Path& p) { return static_cast<uint32_t>(p.marks); }

void for_each_path(const std::function<void(uint8_t path)>& fn) {
  for (uint8_t path = 0; path < kPaths; ++path) {
    SCOPED_TRACE("path " + std::to_string(path));
    fn(path);
  }
}

TEST(PathSignals, reports_are_about_the_path_that_they_came_by) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path);
    tell_fed_back(*s.s, s.channel, s.now, {.received_words = 500, .marked_packets = 3});
    EXPECT_EQ(s.of_each(marks_heard), s.alone(3));
    EXPECT_EQ(s.of_each(marks_shown), s.alone(3));
  });
}

// Totals of LDCP that went to another path would be compared with those of that.
TEST(PathSignals, totals_are_those_of_the_path_that_they_came_by) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path, cc::Algorithm::kLdcp);
    tell_fed_back(*s.s, s.channel, s.now, {.received_words = 900, .marked_words = 300});
    EXPECT_EQ(s.of_each([](const Path& p) { return p.flow.ldcp.received_words; }), s.alone(900));
    EXPECT_EQ(s.of_each([](const Path& p) { return p.flow.ldcp.marked_words; }), s.alone(300));
    EXPECT_EQ(s.of_each(marks_shown), s.alone(1));
  });
}

TEST(PathSignals, notifications_are_about_the_path_that_they_came_by) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path);
    const std::byte cetph[wire::CetphCnp::kSize] = {std::byte{0xC0}};
    on_notification(*s.s, s.channel, s.now, cetph);
    EXPECT_EQ(s.of_each(marks_heard), s.alone(1));
    EXPECT_EQ(s.of_each(marks_shown), s.alone(1));
  });
}

// The acknowledgement comes by a path that none of its packets took.
TEST(PathSignals, arrivals_are_on_the_path_that_the_packet_took) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path);
    s.send_on(path);
    s.hear(s.other(1));
    s.pass(kRoundTrip);
    s.ack(100);
    EXPECT_EQ(s.of_each([](const Path& p) { return p.flow.listener.round_trips; }), s.alone(1));
    EXPECT_EQ(s.of_each([](const Path& p) { return p.reach; }), s.alone(1));
  });
}

TEST(PathSignals, losses_are_on_the_path_that_the_packet_took) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path);
    s.send_on(path, 5);
    s.hear(s.other(1));
    s.sack(99, {101, 102, 103, 104});
    EXPECT_EQ(s.of_each([](const Path& p) { return p.flow.listener.losses; }), s.alone(1));
    EXPECT_EQ(s.of_each([](const Path& p) { return static_cast<uint32_t>(p.lost); }), s.alone(1));
  });
}

TEST(PathSignals, a_timeout_is_that_of_the_path_that_is_suspected) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path);
    s.pass(seconds(1));  // no path has news
    s.send_on(path);
    s.timeout();
    EXPECT_EQ(s.of_each([](const Path& p) { return p.flow.listener.timeouts; }), s.alone(1));
    EXPECT_EQ(s.of_each([](const Path& p) { return p.deaths; }), s.alone(1));
  });
}

TEST(PathSignals, a_rate_is_charged_for_what_leaves_on_its_path) {
  for_each_path([](uint8_t path) {
    OneOfFour s(path, cc::Algorithm::kDcqcn);
    for (Path& p : paths_of(*s.s, s.ch())) {
      cc::marked(p.flow, cc::Path{.line_kbytes_per_second = 1'000'000}, s.now, {});
    }
    s.send_on(path);
    EXPECT_EQ(s.of_each([&](const Path& p) { return uint32_t{!cc::may_leave(p.flow, s.now)}; }), s.alone(1));
  });
}

// ---- what it says ----------------------------------------------------------------------------------------------

// On path 1 are few packets, and on path 0 many.
struct CrowdedPaths : SeveralPaths {
  static constexpr uint32_t kCrowd = 9;
  static constexpr uint32_t kFirst = 100 + kCrowd;  // PSN of the first one on path 1, where its number is 1

  explicit CrowdedPaths(cc::Algorithm algorithm) : SeveralPaths(0, algorithm) {
    ch().offered_mtu = ch().mtu;
    begin(2);
    send_on(0, kCrowd);
    EXPECT_EQ(in_flight(), (Counts{kCrowd, 0}));
  }
  cc::Flow& flow() { return path(1).flow; }
};

TEST(PathSignals, a_loss_says_which_is_the_next_packet_of_the_path) {
  CrowdedPaths s(cc::Algorithm::kLossWindow);
  s.send_on(1, 6);
  s.pass(kRoundTrip);
  s.sack(s.kFirst - 1, {s.kFirst + 1, s.kFirst + 2, s.kFirst + 3, s.kFirst + 4});
  ASSERT_TRUE(s.departure(s.kFirst).lost);
  EXPECT_EQ(s.flow().loss_window.recovery_until, Psn(7)) << "the newest belongs to the same round trip";
}

TEST(PathSignals, a_death_says_which_is_the_next_packet_of_the_path) {
  CrowdedPaths s(cc::Algorithm::kLossWindow);
  s.send_on(1, 6);
  suspect_path(*s.s, s.channel, 1, s.now);
  EXPECT_EQ(s.flow().loss_window.recovery_until, Psn(7));
}

TEST(PathSignals, an_arrival_says_how_far_the_path_has_come_and_what_is_left_there) {
  CrowdedPaths s(cc::Algorithm::kLdcp);
  s.send_on(1, 5);
  s.pass(kRoundTrip);
  s.sack(99, {s.kFirst, s.kFirst + 1});
  ASSERT_EQ(s.in_flight(), (Counts{9, 3}));
  EXPECT_EQ(s.flow().ldcp.round_until, Psn(6)) << "the next one on the path";
}

// A flow of C-AQM asks only while it uses its window.
TEST(PathSignals, a_departure_says_what_is_in_flight_on_the_path) {
  CrowdedPaths s(cc::Algorithm::kCaqm);
  s.send_on(1, 4);
  EXPECT_EQ(s.flow().ecn, wire::kEcnEct0);
  s.send_on(1);
  EXPECT_EQ(s.flow().ecn, wire::kEcnEct1) << "half of ten";
}

// Beyond the first gap in the numbers, a path that no longer changes the order is trusted again.
TEST(PathSignals, arrivals_shrink_the_tolerance_of_their_path) {
  SeveralPaths s(2);
  for (const uint8_t path : {0, 1}) s.path(path).tolerance.begin(24);
  uint32_t psn = 99;
  for (uint32_t left = ReorderTolerance::kTrialPackets; left != 0; left -= 32) {
    s.send_on(1, 32);
    s.pass(kRoundTrip);
    s.ack(psn += 32);
  }
  EXPECT_EQ(s.path(1).tolerance.packets, 12);
  EXPECT_EQ(s.path(0).tolerance.packets, 24);
}

// Nobody knows whether it is the departure that was taken for lost which has arrived.
TEST(PathSignals, an_arrival_of_what_was_lost_twice_does_not_make_the_path_more_tolerant) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.pass(kRoundTrip);
  s.sack(99, {101, 102, 103, 104});
  ASSERT_EQ(s.resend(), Psns{100});
  s.send_on(0, 5);
  s.pass(kRoundTrip);
  s.sack(99, {101, 102, 103, 104, 105, 106, 107, 108, 109});
  ASSERT_TRUE(s.departure(100).again && s.departure(100).lost);
  ASSERT_EQ(s.path_of(100), 0);
  s.ack(109);
  EXPECT_EQ(s.path(0).tolerance.packets, 3);
}

// ---- what a channel remembers when paths come or die -----------------------------------------------------------

TEST(BeginPaths, goes_on_with_the_pause_between_notifications) {
  SeveralPaths s(0, cc::Algorithm::kDcqcn);
  s.ch().feedback = wire::CcAlgorithm::kDcqcn;
  const auto congestion = [&] { on_ecn(*s.s, s.channel, s.now, Psn(500), wire::kEcnCe, 1000); };
  congestion();
  ASSERT_EQ(std::exchange(s.ch().owed_cnp, 0), wire::kEcnCe);
  s.begin(2);
  s.hear(0);
  congestion();
  EXPECT_EQ(s.ch().owed_cnp, 0) << "too soon";
  s.hear(1);
  congestion();
  EXPECT_EQ(s.ch().owed_cnp, wire::kEcnCe) << "the first one about this path";
}

TEST(SuspectPath, has_it_asked_now_whenever_it_was_to_be_asked_before) {
  for (const Instant former : {Instant{}, Instant::never()}) {
    SeveralPaths s(2);
    s.path(1).ask_at = former;
    s.pass(seconds(1));
    suspect_path(*s.s, s.channel, 1, s.now);
    EXPECT_EQ(s.path(1).ask_at, s.now);
  }
}

TEST(PathTimeout, suspects_the_path_that_had_no_news_for_just_a_timeout) {
  for (const bool just : {true, false}) {
    SeveralPaths s(2);
    s.send_on(1);
    const Duration patience = s.ch().rto_at - s.now, timeout = backed_off(s.ch().rto, rto_limits(*s.s));
    s.path(1).news_at = s.now + patience - timeout + nanoseconds(just ? 0 : 1);
    s.timeout();
    ASSERT_EQ(s.ch().rto, timeout);
    EXPECT_EQ(s.path(1).live, !just);
  }
}

// All of it on one: else a later packet overtakes an earlier one, and the receiver discards it.
TEST(PathTimeout, of_go_back_n_moves_it_to_one_of_several_that_live) {
  for (uint8_t dead = 0; dead < 3; ++dead) {
    SeveralPaths s(3, cc::Algorithm::kNone, 100, several_paths(Spread::kPackets));
    s.ch().go_back_n = true;
    s.block().current = dead;
    s.pass(seconds(1));  // no path has news
    s.send(6);
    s.timeout();
    ASSERT_FALSE(s.path(dead).live);
    EXPECT_EQ(s.resend(), psns(100, 6));
    s.send(3);
    Counts expected(3, 0);
    expected[dead == 0 ? 1 : 0] = 9;
    EXPECT_EQ(s.in_flight(), expected);
  }
}

// What goes again takes the path that suits it.
TEST(PathOfMessage, stays_when_a_packet_of_another_one_goes_again) {
  SeveralPaths s(3, cc::Algorithm::kNone, 100, several_paths(Spread::kMessages));
  s.send(5);
  s.send(1, false);
  ASSERT_EQ(s.in_flight(), (Counts{5, 1, 0}));
  s.sack(99, {101, 102, 103, 104});
  ASSERT_EQ(s.resend(), Psns{100});
  ASSERT_EQ(s.in_flight(), (Counts{0, 1, 1}));
  s.send_more(3);
  EXPECT_EQ(s.in_flight(), (Counts{0, 4, 1}));
}

TEST(PathOfAck, has_no_news_when_it_has_reported_them) {
  SeveralPaths s(3);
  s.ch().feeds_back = true;
  for (const uint8_t path : {0, 1, 2}) s.hear(path);
  for (const uint8_t path : {1, 2, 0}) {
    EXPECT_EQ(path_of_ack(*s.s, s.ch()), path);
    ack_left(*s.s, s.ch(), s.path(path));
  }
  s.hear(2);
  EXPECT_EQ(path_of_ack(*s.s, s.ch()), 2) << "1 would be next";
}

// ---- what goes again -------------------------------------------------------------------------------------------

// How it comes that the packet 100, of 100 to 104, goes again.
struct Cause {
  const char* name;
  void (*happen)(SeveralPaths& s);
};
void probe(SeveralPaths& s) {
  recovery_block(*s.s, s.ch());
  ASSERT_TRUE(queue_resend(s.recovery(), Psn(100)));
}
void overtake(SeveralPaths& s) {
  s.pass(kRoundTrip);
  s.sack(99, {101, 102, 103, 104});
}
constexpr Cause kCauses[] = {
    {"others have overtaken it", overtake},
    {"a probe asks with it, and it is not known as lost", probe},
    {"a timeout", [](SeveralPaths& s) { s.timeout(); }},
    {"it was overtaken, and then a probe asks with it",
     [](SeveralPaths& s) {
       overtake(s);
       ASSERT_EQ(s.resend(), Psns{100});
       s.pass(kRoundTrip / 2);
       probe(s);
     }},
    {"two probes",
     [](SeveralPaths& s) {
       probe(s);
       ASSERT_EQ(s.resend(), Psns{100});
       s.pass(kRoundTrip / 2);
       probe(s);
     }},
};

// Whatever made it go again, an answer that comes too soon may be that to the departure before.
TEST(PacketThatGoesAgain, tells_nothing_sooner_than_a_round_trip_later) {
  for (const Cause& cause : kCauses) {
    SCOPED_TRACE(cause.name);
    SeveralPaths s(3);
    s.send_on(1, 5);
    cause.happen(s);
    ASSERT_EQ(s.resend().at(0), 100u);
    EXPECT_TRUE(s.departure(100).again);
    const Path& p = s.path(s.path_of(100));
    const uint32_t reach = p.reach;
    const Instant news_at = p.news_at;
    s.pass(kRoundTrip - nanoseconds(1 << LeftAt::kShift));
    s.ack(100);
    EXPECT_EQ(p.reach, reach);
    EXPECT_EQ(p.news_at, news_at);
    EXPECT_EQ(p.round_trip.smoothed, kRoundTrip);
  }
}

TEST(PacketThatGoesAgain, tells_of_its_last_path_a_round_trip_later) {
  for (const Cause& cause : kCauses) {
    SCOPED_TRACE(cause.name);
    SeveralPaths s(3);
    s.send_on(1, 5);
    cause.happen(s);
    ASSERT_EQ(s.resend().at(0), 100u);
    const Path& p = s.path(s.path_of(100));
    s.pass(kRoundTrip);
    s.ack(100);
    EXPECT_EQ(p.news_at, s.now);
  }
}

// ---- what tools are told of the paths together -----------------------------------------------------------------

// Path n has a window of 10 << n packets, and a rate of 1000 << n.
struct DescribedPaths : SeveralPaths {
  DescribedPaths() : SeveralPaths(3, cc::Algorithm::kDcqcn) {
    for (uint8_t path = 0; path < 3; ++path) {
      this->path(path).flow.dcqcn.rate_kbytes_per_second = 1000u << path;
      limit(path, static_cast<uint16_t>(10u << path));
    }
  }
  ChannelInfo described() {
    ChannelInfo info{};
    describe_congestion(*s, ch(), &info);
    return info;
  }
};

TEST(DescribedPaths, are_those_that_live_now) {
  for (uint8_t dead = 0; dead < 3; ++dead) {
    DescribedPaths s;
    EXPECT_EQ(s.described().window_packets, 70u);
    EXPECT_EQ(s.described().rate_kbytes_per_second, 7000u);
    suspect_path(*s.s, s.channel, dead, s.now);
    look_at_paths(*s.s, s.channel, s.now);
    EXPECT_EQ(s.described().window_packets, 70u - (10u << dead)) << "it has the window from when it lived";
    EXPECT_EQ(s.described().window_packets, s.ch().send_window) << "what the channel goes by";
    EXPECT_EQ(s.described().rate_kbytes_per_second, 7000u - (1000u << dead));
    EXPECT_EQ(s.described().paths, 3u) << "there are as many";
    EXPECT_FALSE(info_of(s.ch(), s.path(dead)).live);
    path_answers(*s.s, s.channel, dead, s.now, kRoundTrip);
    EXPECT_EQ(s.described().window_packets, 70u);
    EXPECT_EQ(s.described().rate_kbytes_per_second, 7000u);
  }
}

TEST(DescribedPaths, may_have_no_more_than_the_peer_takes) {
  DescribedPaths s;
  s.ch().agreed_window = 15;
  EXPECT_EQ(s.described().window_packets, 15u);
  EXPECT_EQ(info_of(s.ch(), s.path(0)).window_packets, 10u);
  EXPECT_EQ(info_of(s.ch(), s.path(1)).window_packets, 15u);
}

}  // namespace
}  // namespace ub::tp
