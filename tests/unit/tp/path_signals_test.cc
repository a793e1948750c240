// SPDX-License-Identifier: Apache-2.0
//
// To which of several paths a signal belongs (docs/paths-design.md): each is heard by the flow of one path and by no
// other, whatever paths other packets take. And what tools are told of the paths together.
#include <functional>
#include <string>

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
