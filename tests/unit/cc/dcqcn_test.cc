// SPDX-License-Identifier: Apache-2.0
//
// DCQCN's rate, by the numbers of its paper (Zhu et al., SIGCOMM 2015), and how often a receiver tells of congestion
// (InfiniBand Architecture Specification, annex A17).
#include "lib/transport/cc/dcqcn.h"

#include <gtest/gtest.h>

#include "lib/transport/wire/network_header.h"

namespace ub::cc {
namespace {

constexpr DcqcnConstants kUsual;
constexpr uint32_t kLine = 1'000'000;  // KB/s: 1 byte in a nanosecond

struct Rate : Dcqcn {
  Rate() { begin(v, path, Psn(0)); }
  void mark(Instant now = {}) { marked(v, path, now, {}); }
  void send(Instant now, uint32_t bytes) { sent(v, path, now, bytes); }
  void tick(Instant now) { timer(v, path, now); }
  uint32_t rate() const { return rate_kbytes_per_second; }
  uint32_t target() const { return target_kbytes_per_second; }

  Path path{.line_kbytes_per_second = kLine};
  Verdict v;
};

TEST(Dcqcn, unlimited_until_told_otherwise) {
  Rate s;
  s.send({}, 1 << 30);
  s.tick({1'000'000'000});
  EXPECT_EQ(s.v.next_packet, Instant{});
  EXPECT_TRUE(s.v.timer_at.is_never());
  EXPECT_EQ(s.v.window_packets, kNoWindow) << "packets are counted by others";
}

TEST(Dcqcn, its_data_may_be_marked) {
  Rate s;
  EXPECT_EQ(s.v.ecn, wire::kEcnEct0);
  s.mark();
  EXPECT_EQ(s.v.ecn, wire::kEcnEct0);
}

TEST(Dcqcn, a_new_flow_forgets_the_one_before) {
  Rate s;
  s.mark();
  s.tick(s.v.timer_at);
  s.send({}, kUsual.bytes_per_step);
  s.begin(s.v, s.path, Psn(0));
  EXPECT_EQ(s.rate(), 0u);
  EXPECT_EQ(s.target(), 0u);
  EXPECT_EQ(s.time_steps + s.byte_steps + s.bytes_to_step + s.alpha, 0u);
}

TEST(Dcqcn, the_first_cut_is_by_half) {
  Rate s;
  s.mark({1000});
  EXPECT_EQ(s.rate(), kLine / 2);
  EXPECT_EQ(s.target(), kLine);
  EXPECT_EQ(s.v.next_packet, Instant{1000}) << "the next one may leave at once";
  s.send({1000}, 1000);
  EXPECT_EQ(s.v.next_packet, Instant{3000});
  s.send({10'000}, 1000);
  EXPECT_EQ(s.v.next_packet, Instant{12'000}) << "nothing is saved up";
  EXPECT_EQ(s.v.timer_at, Instant{1000} + kUsual.step);
}

// g is 1/256: a cut is by half of alpha, and alpha goes up by 1/256 of what is missing, here to what it was.
TEST(Dcqcn, a_quiet_time_makes_the_next_cut_smaller) {
  Rate s;
  s.mark();
  EXPECT_EQ(s.alpha, Dcqcn::kAlphaOne);
  s.tick(s.v.timer_at);
  EXPECT_EQ(s.alpha, Dcqcn::kAlphaOne - Dcqcn::kAlphaOne / 256);
  const uint32_t rate = s.rate();
  const auto cut = static_cast<uint32_t>(uint64_t{rate} * s.alpha / (2 * Dcqcn::kAlphaOne));
  s.mark(s.v.timer_at);
  EXPECT_EQ(s.rate(), rate - cut);
  EXPECT_EQ(s.target(), rate);
}

TEST(Dcqcn, marks_make_the_cuts_larger_again) {
  Rate s;
  s.mark();
  s.alpha = Dcqcn::kAlphaOne / 2;
  s.mark();
  EXPECT_EQ(s.alpha, Dcqcn::kAlphaOne / 2 - Dcqcn::kAlphaOne / 512 + Dcqcn::kAlphaOne / 256);
}

TEST(Dcqcn, comes_back_half_of_the_way_five_times_then_beyond) {
  Rate s;
  s.mark();
  s.mark();  // target: half of the line
  const uint32_t target = s.target();
  EXPECT_EQ(target, kLine / 2);
  Instant now{};
  for (int i = 0; i < 5; ++i) {
    const uint32_t before = s.rate();
    s.tick(now);
    EXPECT_EQ(s.rate(), before);  // early
    now = s.v.timer_at;
    s.tick(now);
    EXPECT_EQ(s.rate(), before + (target - before + 1) / 2);
    EXPECT_EQ(s.v.timer_at, now + kUsual.step);
  }
  EXPECT_EQ(s.target(), target);
  s.tick(s.v.timer_at);
  EXPECT_EQ(s.target(), target + kUsual.add_kbytes_per_second);
  for (int i = 0; i < 1000 && s.rate() != 0; ++i) s.tick(s.v.timer_at);
  EXPECT_EQ(s.rate(), 0u) << "as fast as the line";
  EXPECT_EQ(s.target(), kLine);
  EXPECT_EQ(s.v.next_packet, Instant{});
  EXPECT_TRUE(s.v.timer_at.is_never());
}

TEST(Dcqcn, as_fast_as_the_line_it_makes_no_packet_wait_for_those_before) {
  Rate s;
  s.mark({1000});
  s.send({1000}, 1'000'000);
  ASSERT_GT(s.v.next_packet, Instant{1000});
  while (s.rate() != 0) s.tick(s.v.timer_at);
  EXPECT_EQ(s.v.next_packet, Instant{});
}

TEST(Dcqcn, bytes_count_too) {
  Rate s;
  s.mark();
  const uint32_t before = s.rate();
  s.send({}, kUsual.bytes_per_step - 1);
  EXPECT_EQ(s.rate(), before);
  s.send({}, 1);
  EXPECT_EQ(s.rate(), before + (kLine - before + 1) / 2);
  EXPECT_EQ(s.bytes_to_step, kUsual.bytes_per_step);
}

// More than five steps of both kinds: ten times as fast. Of one kind alone there may be any number.
TEST(Dcqcn, where_both_have_taken_six_steps_it_climbs_ten_times_as_fast) {
  Rate s;
  for (int i = 0; i < 4; ++i) s.mark();
  for (int i = 0; i < 20; ++i) s.tick(s.v.timer_at);
  const uint32_t by_time = s.target();
  EXPECT_EQ(by_time, kLine / 8 + 15 * kUsual.add_kbytes_per_second);
  for (int i = 0; i < 5; ++i) s.send({}, kUsual.bytes_per_step);
  EXPECT_EQ(s.target(), by_time + 5 * kUsual.add_kbytes_per_second);
  s.send({}, kUsual.bytes_per_step);
  EXPECT_EQ(s.target(), by_time + 5 * kUsual.add_kbytes_per_second + kUsual.add_much_kbytes_per_second);
}

TEST(Dcqcn, a_cut_begins_all_over) {
  Rate s;
  for (int i = 0; i < 3; ++i) s.mark();
  for (int i = 0; i < 8; ++i) s.tick(s.v.timer_at), s.send({}, kUsual.bytes_per_step);
  s.send({}, 1000);
  const Instant now = s.v.timer_at;
  s.mark(now);
  EXPECT_EQ(s.bytes_to_step, kUsual.bytes_per_step);
  EXPECT_EQ(s.v.timer_at, now + kUsual.step);
  const uint32_t target = s.target();
  for (int i = 0; i < 5; ++i) s.tick(s.v.timer_at), s.send({}, kUsual.bytes_per_step);
  EXPECT_EQ(s.target(), target);
}

TEST(Dcqcn, never_below_the_least) {
  Rate s;
  for (int i = 0; i < 1000; ++i) s.mark();
  EXPECT_EQ(s.rate(), kUsual.least_kbytes_per_second);
}

// However fast the line is, a step up never leads down.
TEST(Dcqcn, climbs_to_the_fastest_line_that_can_be_named) {
  Rate s;
  s.path.line_kbytes_per_second = UINT32_MAX;
  s.mark();
  uint32_t before = s.rate();
  EXPECT_EQ(before, UINT32_MAX / 2 + 1);
  for (int i = 0; i < 100; ++i) {
    s.tick(s.v.timer_at);
    EXPECT_EQ(s.target(), UINT32_MAX);
    if (s.rate() == 0) break;
    EXPECT_GT(s.rate(), before);
    before = s.rate();
  }
  EXPECT_EQ(s.rate(), 0u) << "as fast as the line";
}

TEST(Dcqcn, a_line_below_the_least_rate_is_as_slow_as_it_gets) {
  Rate s;
  s.path.line_kbytes_per_second = kUsual.least_kbytes_per_second / 2;
  s.mark();
  EXPECT_EQ(s.rate(), kUsual.least_kbytes_per_second / 2);
  s.tick(s.v.timer_at);
  EXPECT_EQ(s.rate(), 0u) << "as fast as the line";
}

TEST(Dcqcn, a_receiver_tells_once_in_50_us) {
  Instant next{};
  EXPECT_TRUE(is_to_be_told(kUsual, next, {1000}));
  EXPECT_FALSE(is_to_be_told(kUsual, next, {1000}));
  EXPECT_FALSE(is_to_be_told(kUsual, next, Instant{999} + microseconds(50)));
  EXPECT_TRUE(is_to_be_told(kUsual, next, Instant{1000} + microseconds(50)));
  EXPECT_FALSE(is_to_be_told(kUsual, next, Instant{1000} + microseconds(99)));
}

// ---- other constants ----------------------------------------------------------------------------------------------

TEST(Dcqcn, goes_by_the_constants_that_it_is_given) {
  Constants constants;
  constants.dcqcn.gain_shift = 4;
  constants.dcqcn.fast_steps = 1;
  constants.dcqcn.step = microseconds(10);
  constants.dcqcn.bytes_per_step = 1000;
  constants.dcqcn.least_kbytes_per_second = 300'000;
  constants.dcqcn.add_kbytes_per_second = 7'000;
  constants.dcqcn.add_much_kbytes_per_second = 9'000;
  Rate s;
  s.path.constants = &constants;
  s.mark();
  EXPECT_EQ(s.rate(), kLine / 2);
  EXPECT_EQ(s.v.timer_at, Instant{} + microseconds(10));
  s.alpha = Dcqcn::kAlphaOne / 2;
  s.mark();
  EXPECT_EQ(s.alpha, Dcqcn::kAlphaOne / 2 - Dcqcn::kAlphaOne / 32 + Dcqcn::kAlphaOne / 16);
  s.alpha = Dcqcn::kAlphaOne;
  s.mark();
  EXPECT_EQ(s.rate(), 300'000u);
  const uint32_t target = s.target();
  s.send({}, 1000);
  EXPECT_EQ(s.target(), target);
  s.send({}, 1000);
  EXPECT_EQ(s.target(), target + 7'000);
  s.tick(s.v.timer_at);
  EXPECT_EQ(s.target(), target + 14'000);
  s.tick(s.v.timer_at);
  EXPECT_EQ(s.target(), target + 23'000) << "both time and bytes have made more than one step";
}

TEST(Notification, pauses_as_long_as_it_is_told) {
  DcqcnConstants constants;
  constants.notification_pause = microseconds(7);
  Instant next{};
  EXPECT_TRUE(is_to_be_told(constants, next, {1000}));
  EXPECT_FALSE(is_to_be_told(constants, next, Instant{999} + microseconds(7)));
  EXPECT_TRUE(is_to_be_told(constants, next, Instant{1000} + microseconds(7)));
}

}  // namespace
}  // namespace ub::cc
