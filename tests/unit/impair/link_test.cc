// SPDX-License-Identifier: Apache-2.0
#include "lib/impair/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "lib/impair/congestion_mark.h"
#include "tests/unit/impair/link_rig.h"
#include "tests/unit/impair/rtp_frame.h"

namespace ub::impair {
namespace {

constexpr Instant kBegin{1'000'000};

// ---- the line ----

TEST(ImpairLink, without_faults_a_frame_comes_out_at_once_and_unchanged) {
  LinkRig rig("");
  std::vector<std::byte> frame(300, std::byte{7});
  EXPECT_EQ(rig.link.offer(kBegin, frame, 42).fate, Fate::kUnderWay);
  EXPECT_EQ(rig.link.next_due(), kBegin);
  const Arrival a = rig.link.take(kBegin).value();
  EXPECT_EQ(a.tag, 42u);
  EXPECT_TRUE(std::equal(a.frame.begin(), a.frame.end(), frame.begin(), frame.end()));
  EXPECT_EQ(rig.link.under_way(), 0u);
  EXPECT_TRUE(rig.link.next_due().is_never());
}

TEST(ImpairLink, a_frame_is_not_handed_out_before_its_delay_is_over) {
  LinkRig rig("delay=5us");
  rig.offer(kBegin, 0);
  EXPECT_EQ(rig.link.next_due(), kBegin + microseconds(5));
  EXPECT_TRUE(rig.take(kBegin + nanoseconds(4999)).empty());
  EXPECT_EQ(rig.take(kBegin + microseconds(5)).size(), 1u);
}

TEST(ImpairLink, a_rate_is_exact_for_frames_that_take_fractions_of_a_nanosecond) {
  LinkRig rig("rate=300G");  // 100 bytes: 2 2/3 ns
  rig.offer_many(3'000'000 / 8);
  EXPECT_EQ(rig.take().back().due.ns, 1'000'000u);
}

TEST(ImpairLink, a_line_that_was_idle_gains_no_credit) {
  LinkRig rig("rate=800M delay=1us");  // 100 bytes: 1 us
  rig.offer(kBegin, 0);
  rig.offer(kBegin + seconds(1), 1);
  rig.offer(kBegin + seconds(1), 2);
  const std::vector<Out> expected = {{0, kBegin + microseconds(2)},
                                     {1, kBegin + seconds(1) + microseconds(2)},
                                     {2, kBegin + seconds(1) + microseconds(3)}};
  EXPECT_EQ(rig.take(), expected);
  EXPECT_EQ(rig.link.line_free_at(), kBegin + seconds(1) + microseconds(2));
}

TEST(ImpairLink, jitter_makes_frames_late_by_no_more_than_it_and_keeps_their_order) {
  LinkRig rig("jitter=10us delay=1us");
  for (uint64_t i = 0; i < 1000; ++i) rig.offer(kBegin + microseconds(3) * static_cast<int64_t>(i), i);
  Duration most{};
  uint64_t next = 0;
  for (const Out& out : rig.take()) {
    EXPECT_EQ(out.number, next);
    const Duration late = out.due - (kBegin + microseconds(1) + microseconds(3) * static_cast<int64_t>(next++));
    EXPECT_GE(late.ns, 0);
    EXPECT_LE(late, microseconds(10));
    most = std::max(most, late);
  }
  EXPECT_GT(most, microseconds(9));
}

TEST(ImpairLink, a_lost_frame_takes_its_turn_so_that_losses_do_not_make_the_link_faster) {
  LinkRig rig("rate=800M every=2");
  rig.offer_many(4);
  const std::vector<Out> expected = {{0, Instant{1000}}, {2, Instant{3000}}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairLink, a_duplicate_takes_a_turn_of_its_own) {
  LinkRig rig("rate=800M duplicate=100%");
  rig.offer_many(2);
  const std::vector<Out> expected = {{0, Instant{1000}}, {0, Instant{2000}}, {1, Instant{3000}}, {1, Instant{4000}}};
  EXPECT_EQ(rig.take(), expected);
  EXPECT_EQ(rig.link.counts().duplicated, 2u);
  EXPECT_EQ(rig.link.counts().delivered, 4u);
  EXPECT_EQ(rig.link.counts().delivered_bytes, 400u);
}

// ---- the queue ----

TEST(ImpairLink, a_frame_that_finds_the_queue_full_is_dropped__counted_in_frames) {
  LinkRig rig("rate=800M queue=3");
  rig.offer_many(5);
  EXPECT_EQ(rig.link.counts().lost_queue, 2u);
  EXPECT_EQ(rig.offer(Instant{999}, 5).fate, Fate::kQueueFull);
  EXPECT_EQ(rig.offer(Instant{1000}, 6).fate, Fate::kUnderWay);  // the first has left
  EXPECT_EQ(rig.take().back(), (Out{6, Instant{4000}}));         // dropped frames take no turn
}

TEST(ImpairLink, a_queue_in_bytes_has_room_for_a_small_frame_where_a_large_one_is_dropped) {
  LinkRig rig("rate=800M queue=250B");
  rig.offer_many(2);
  EXPECT_EQ(rig.offer({}, 2).fate, Fate::kQueueFull);
  EXPECT_EQ(rig.offer({}, 3, 50).fate, Fate::kUnderWay);
}

TEST(ImpairLink, no_more_frames_are_under_way_than_its_memory_is_for) {
  Link link(script_of("delay=1s duplicate=100%"), 1, {}, 3);
  const std::vector<std::byte> frame(60);
  EXPECT_TRUE(link.offer({}, frame).duplicated);
  EXPECT_FALSE(link.offer({}, frame).duplicated);
  EXPECT_EQ(link.offer({}, frame).fate, Fate::kQueueFull);
  EXPECT_EQ(link.under_way(), 3u);
}

TEST(ImpairLink, no_more_frames_stand_in_the_line_than_its_memory_is_for_even_if_all_are_lost_behind_it) {
  Link link(script_of("rate=1k loss=100%"), 1, {}, 3);
  const std::vector<std::byte> frame(60);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(link.offer({}, frame).fate, Fate::kLostRandom);
  EXPECT_EQ(link.offer({}, frame).fate, Fate::kQueueFull);
}

uint32_t marked_of(Link& link, uint32_t frames, uint8_t ecn) {
  const wire::Bytes frame = wire::frame_of(wire::template_v4(), wire::Bytes(958), ecn);
  EXPECT_EQ(frame.size(), 1004u);
  uint32_t marked = 0;
  for (uint32_t i = 0; i < frames; ++i) marked += link.offer({}, frame).marked;
  return marked;
}

TEST(ImpairLink, marks_begin_at_the_first_threshold_and_reach_every_frame_at_the_second) {
  Link link(script_of("rate=1G mark=10040B/20080B/50%"), 1);
  EXPECT_EQ(marked_of(link, 11, wire::kEcnEct0), 0u);  // the eleventh finds as many as the first threshold: chance 0
  const uint32_t between = marked_of(link, 9, wire::kEcnEct0);
  EXPECT_GT(between, 0u);
  EXPECT_LT(between, 9u);
  EXPECT_EQ(marked_of(link, 100, wire::kEcnEct0), 100u);
  EXPECT_EQ(link.counts().marked, between + 100);
}

TEST(ImpairLink, only_what_its_sender_allows_is_marked) {
  Link link(script_of("rate=1G mark=0B/1B/0%"), 1);
  EXPECT_EQ(marked_of(link, 5, wire::kEcnNotCapable), 0u);
  EXPECT_EQ(marked_of(link, 5, wire::kEcnEct1), 5u);
}

TEST(ImpairLink, a_mark_stands_in_the_frame_that_comes_out) {
  Link link(script_of("rate=1G mark=0B/1B/0%"), 1);
  marked_of(link, 2, wire::kEcnEct0);
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(link.take(Instant{} + seconds(1)).value().frame, net), wire::Drop::kNone);
  EXPECT_EQ(net.ecn(), wire::kEcnEct0);
  ASSERT_EQ(wire::parse_network(link.take(Instant{} + seconds(1)).value().frame, net), wire::Drop::kNone);
  EXPECT_EQ(net.ecn(), wire::kEcnCe);
}

// ---- C-AQM ----

// What a link did with frames of 1004 bytes that came at once, and the code points that they left with.
struct Passed {
  Counts counts;
  std::vector<uint8_t> codes;
};
Passed pass_at_once(const char* text, uint32_t frames, uint8_t ecn) {
  Link link(script_of(text), 1);
  const wire::Bytes frame = wire::frame_of(wire::template_v4(), wire::Bytes(958), ecn);
  for (uint32_t i = 0; i < frames; ++i) link.offer({}, frame);
  Passed passed;
  while (const std::optional<Arrival> a = link.take(Instant{} + seconds(1))) {
    wire::NetHeader net;
    EXPECT_EQ(wire::parse_network(a->frame, net), wire::Drop::kNone);
    passed.codes.push_back(net.ecn());
    link.release(*a);
  }
  passed.counts = link.counts();
  return passed;
}

// The target is ten frames: six find a queue that is not marked, and the eleventh one finds no room.
TEST(ImpairLink, a_hop_of_caqm_grants_up_to_its_target_then_refuses_and_marks) {
  const Passed p = pass_at_once("rate=1G caqm=10040B/80us", 100, wire::kEcnEct1);
  EXPECT_EQ(p.counts.granted + p.counts.refused + p.counts.marked, 100u);
  EXPECT_GE(p.counts.granted, 7u);
  EXPECT_LE(p.counts.granted, 10u);
  EXPECT_NE(p.counts.refused, 0u);
  EXPECT_NE(p.counts.marked, 0u);
  EXPECT_EQ(static_cast<size_t>(std::count(p.codes.begin(), p.codes.end(), wire::kEcnEct1)), p.counts.granted);
  EXPECT_EQ(static_cast<size_t>(std::count(p.codes.begin(), p.codes.end(), wire::kEcnEct0)), p.counts.refused);
  EXPECT_EQ(static_cast<size_t>(std::count(p.codes.begin(), p.codes.end(), wire::kEcnCe)), p.counts.marked);
  EXPECT_TRUE(std::all_of(p.codes.begin(), p.codes.begin() + 7, [](uint8_t c) { return c == wire::kEcnEct1; }));
  EXPECT_TRUE(std::none_of(p.codes.begin() + 10, p.codes.end(), [](uint8_t c) { return c == wire::kEcnEct1; }));
}

TEST(ImpairLink, a_hop_of_caqm_marks_what_asks_for_nothing_and_leaves_alone_what_may_not_be_marked) {
  const Passed silent = pass_at_once("rate=1G caqm=10040B/80us", 100, wire::kEcnEct0);
  EXPECT_EQ(silent.counts.granted + silent.counts.refused, 0u);
  EXPECT_NE(silent.counts.marked, 0u);
  const Passed deaf = pass_at_once("rate=1G caqm=10040B/80us", 100, wire::kEcnNotCapable);
  EXPECT_EQ(deaf.counts.marked, 0u);
  EXPECT_EQ(deaf.codes, std::vector<uint8_t>(100, wire::kEcnNotCapable));
}

TEST(ImpairLink, a_hop_of_caqm_grants_a_part_of_a_hint) {
  Link link(script_of("rate=1G caqm=10kB"), 1);
  wire::Bytes frame(1000);
  wire::cna_template({wire::IpAddress::from_v4(1), 1}, {wire::IpAddress::from_v4(2), 2}, 0).write(frame.data(), 0, 0);
  wire::write_cci(frame.data(), {.enable = true, .increase = true, .hint = 150});
  for (int i = 0; i < 7; ++i) link.offer({}, frame);  // the last one finds 6 kB, and so room for 4 kB
  std::vector<int> hints;
  while (const std::optional<Arrival> a = link.take(Instant{} + seconds(1))) {
    wire::Cci cci;
    ASSERT_TRUE(wire::read_cci(a->frame, cci));
    EXPECT_TRUE(cci.increase && !cci.congested);
    hints.push_back(cci.hint);
    link.release(*a);
  }
  EXPECT_EQ(hints, (std::vector<int>{150, 150, 150, 150, 150, 150, 125}));
  EXPECT_EQ(link.counts().granted, 7u);
}

TEST(ImpairLink, a_link_begins_and_ceases_to_be_a_hop_of_caqm) {
  Link link(script_of("rate=1G; at 1s caqm=10040B; at 2s caqm=0"), 1);
  const wire::Bytes frame = wire::frame_of(wire::template_v4(), wire::Bytes(958), wire::kEcnEct1);
  for (uint64_t granted : {0, 1, 1}) {
    link.offer(Instant{} + seconds(granted == 0 ? 0 : link.counts().offered), frame);
    EXPECT_EQ(link.counts().granted, granted);
  }
}

// ---- losses ----

TEST(ImpairLink, the_share_that_is_lost_is_that_of_the_spec) {
  LinkRig rig("loss=5%");
  rig.offer_many(100'000);
  EXPECT_NEAR(static_cast<double>(rig.link.counts().lost_random), 5000, 300);
  EXPECT_EQ(rig.take().size() + rig.link.counts().lost_random, 100'000u);
}

// The lengths of the runs of lost frames.
std::vector<uint64_t> runs_of(LinkRig& rig, uint64_t frames) {
  std::vector<uint64_t> runs;
  uint64_t run = 0;
  for (uint64_t i = 0; i < frames; ++i) {
    const bool lost = rig.offer({}, i).fate != Fate::kUnderWay;
    if (!lost && run != 0) runs.push_back(std::exchange(run, 0));
    run += lost;
  }
  return runs;
}

TEST(ImpairLink, bursts_have_the_mean_length_and_the_share_of_the_spec) {
  LinkRig rig("loss=5% burst=8", 3);
  const std::vector<uint64_t> runs = runs_of(rig, 400'000);
  uint64_t lost = 0;
  for (uint64_t run : runs) lost += run;
  EXPECT_NEAR(static_cast<double>(lost) / static_cast<double>(runs.size()), 8, 0.5);
  EXPECT_NEAR(static_cast<double>(rig.link.counts().lost_burst), 20'000, 1500);
  EXPECT_EQ(rig.link.counts().lost_random, 0u);
}

TEST(ImpairLink, bursts_of_one_frame_never_lose_two_in_a_row) {
  LinkRig rig("loss=20% burst=1");
  for (uint64_t run : runs_of(rig, 10'000)) EXPECT_EQ(run, 1u);
}

TEST(ImpairLink, each_n_th_of_the_kinds_is_lost_and_the_others_neither_lost_nor_counted) {
  Link link(script_of("every=3 kind=ack"), 1);
  const wire::Bytes data = rtp_frame(wire::TpOpcode::kData), ack = rtp_frame(wire::TpOpcode::kAck);
  for (int i = 1; i <= 9; ++i) {
    EXPECT_EQ(link.offer({}, data).fate, Fate::kUnderWay);
    EXPECT_EQ(link.offer({}, ack).fate, i % 3 == 0 ? Fate::kLostNth : Fate::kUnderWay) << i;
  }
  EXPECT_EQ(link.counts().lost_nth, 3u);
}

TEST(ImpairLink, a_kind_that_is_not_concerned_comes_once_unharmed_and_in_time) {
  Link link(script_of("kind=roce loss=100% duplicate=100% corrupt=100% reorder=5 late=100%"), 1);
  const wire::Bytes data = rtp_frame(wire::TpOpcode::kData);
  link.offer({}, data);
  const Arrival a = link.take({}).value();
  EXPECT_TRUE(std::equal(a.frame.begin(), a.frame.end(), data.begin(), data.end()));
  EXPECT_EQ(link.under_way(), 0u);
}

// ---- damage ----

TEST(ImpairLink, one_bit_flips_and_never_in_the_addresses_of_ethernet) {
  Link link(script_of("corrupt=100%"), 1);
  const std::vector<std::byte> frame(20);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(link.offer({}, frame).corrupted);
    const Arrival a = link.take({}).value();
    int bits = 0;
    for (size_t at = 0; at < a.frame.size(); ++at) {
      bits += std::popcount(static_cast<uint8_t>(a.frame[at]));
      if (at < wire::kEthSize) {
        EXPECT_EQ(bits, 0);
      }
    }
    EXPECT_EQ(bits, 1);
    link.release(a);
  }
}

TEST(ImpairLink, one_bit_flips_behind_the_udp_header_so_that_the_frame_goes_where_it_was_meant_to) {
  Link link(script_of("corrupt=100%"), 1);
  const wire::Bytes frame = rtp_frame(wire::TpOpcode::kData);
  for (int i = 0; i < 1000; ++i) {
    link.offer({}, frame);
    const Arrival a = link.take({}).value();
    const size_t headers = wire::NetTemplate::kSizeV4;
    EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + headers, a.frame.begin()));
    EXPECT_FALSE(std::equal(frame.begin(), frame.end(), a.frame.begin()));
    link.release(a);
  }
}

TEST(ImpairLink, a_frame_without_anything_behind_its_ethernet_header_stays_as_it_is) {
  Link link(script_of("corrupt=100%"), 1);
  link.offer({}, std::vector<std::byte>(wire::kEthSize));
  const Arrival a = link.take({}).value();
  for (std::byte b : a.frame) EXPECT_EQ(b, std::byte{});
}

// ---- cuts and scripts ----

TEST(ImpairLink, a_cut_loses_what_comes_while_it_lasts_and_not_what_is_under_way) {
  LinkRig rig("delay=10ms; at 2s down; at 3s up");
  rig.offer(Instant{} + seconds(2) + nanoseconds(-1), 0);
  EXPECT_EQ(rig.offer(Instant{} + seconds(2), 1).fate, Fate::kDown);
  EXPECT_EQ(rig.offer(Instant{} + seconds(3) + nanoseconds(-1), 2).fate, Fate::kDown);
  EXPECT_EQ(rig.offer(Instant{} + seconds(3), 3).fate, Fate::kUnderWay);
  EXPECT_EQ(rig.take().size(), 2u);
  EXPECT_EQ(rig.link.counts().lost_down, 2u);
}

TEST(ImpairLink, changes_that_nobody_saw_are_skipped) {
  LinkRig rig("at 1s down; at 2s up; at 3s delay=1us");
  EXPECT_EQ(rig.link.spec_at(Instant{} + seconds(10)), script_of("delay=1us").first);
}

TEST(ImpairLink, another_script_counts_its_time_from_then_on) {
  LinkRig rig("down");
  rig.link.set(kBegin, script_of("at 1ms down"));
  EXPECT_EQ(rig.offer(kBegin, 0).fate, Fate::kUnderWay);
  EXPECT_EQ(rig.offer(kBegin + milliseconds(1), 1).fate, Fate::kDown);
}

TEST(ImpairLink, a_shorter_delay_holds_for_frames_under_way_too_so_that_none_passes_them_or_waits_for_them) {
  LinkRig rig("delay=1ms; at 10us delay=5us");
  rig.offer({}, 0);
  rig.offer(Instant{9'000}, 1);
  EXPECT_EQ(rig.link.next_due(), Instant{10'000});  // the change
  rig.offer(Instant{11'000}, 2);
  const std::vector<Out> expected = {{0, Instant{15'000}}, {1, Instant{15'000}}, {2, Instant{16'000}}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairLink, a_longer_delay_makes_no_frame_later_that_is_under_way) {
  LinkRig rig("delay=1ms; at 10us delay=5ms");
  rig.offer({}, 0);
  rig.offer(Instant{20'000}, 1);
  const std::vector<Out> expected = {{0, Instant{1'000'000}}, {1, Instant{5'020'000}}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairLink, less_jitter_holds_for_frames_under_way_too) {
  LinkRig rig("jitter=1000s");
  rig.offer_many(10, kBegin);
  rig.link.set(kBegin, script_of("jitter=1us"));
  rig.offer(kBegin + seconds(1), 10);
  const std::vector<Out> out = rig.take();
  ASSERT_EQ(out.size(), 11u);
  EXPECT_LE(out[9].due, kBegin + microseconds(1));
  EXPECT_LE(out[10].due, kBegin + seconds(1) + microseconds(1));
}

TEST(ImpairLink, clear_mends_a_slow_link_at_once_for_what_waits_and_for_what_comes) {
  LinkRig rig("rate=1k");  // 100 bytes: 0.8 s
  rig.offer_many(1000, kBegin);
  const Instant mended = kBegin + seconds(1);
  EXPECT_EQ(rig.take(mended).size(), 1u);
  rig.link.set(mended, script_of("clear"));
  rig.offer(mended, 1000);
  EXPECT_EQ(rig.link.line_free_at(), mended);
  const std::vector<Out> out = rig.take(mended);
  ASSERT_EQ(out.size(), 1000u);
  for (uint64_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], (Out{i + 1, mended}));
}

TEST(ImpairLink, what_waits_for_its_turn_leaves_at_a_higher_rate_in_its_order_as_soon_as_that_holds) {
  LinkRig rig("rate=8k; at 150ms rate=800k");  // 100 bytes: 100 ms, then 1 ms
  rig.offer_many(4);
  rig.offer(Instant{} + milliseconds(151), 4);
  const Instant change = Instant{} + milliseconds(150);  // 1 is leaving, and begins again
  const std::vector<Out> expected = {{0, Instant{} + milliseconds(100)},
                                     {1, change + milliseconds(1)},
                                     {2, change + milliseconds(2)},
                                     {3, change + milliseconds(3)},
                                     {4, change + milliseconds(4)}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairLink, what_waits_for_its_turn_keeps_its_time_when_the_rate_becomes_lower) {
  LinkRig rig("rate=300G; at 1ns rate=8k");
  rig.offer_many(3);
  rig.offer(Instant{2}, 3);
  const std::vector<Out> expected = {
      {0, Instant{2}}, {1, Instant{5}}, {2, Instant{8}}, {3, Instant{8} + milliseconds(100)}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairLink, a_queue_has_the_room_that_a_higher_rate_made) {
  LinkRig rig("rate=8k queue=2; at 1ms rate=800k queue=2");
  rig.offer_many(2);
  EXPECT_EQ(rig.offer(Instant{} + milliseconds(1), 2).fate, Fate::kQueueFull);
  EXPECT_EQ(rig.offer(Instant{} + milliseconds(2), 3).fate, Fate::kUnderWay);
}

TEST(ImpairLink, a_change_that_gives_no_other_times_leaves_what_is_under_way_alone) {
  const auto run = [](const char* text) {
    LinkRig rig(text);
    rig.offer_many(100);
    return rig.take();
  };
  constexpr const char* kBefore = "rate=7M delay=5us jitter=70us reorder=8 late=10%";
  EXPECT_EQ(run(kBefore), run((std::string(kBefore) + "; at 10us loss=50%; at 20us down; at 30us up").c_str()));
}

TEST(ImpairLink, a_change_takes_effect_at_its_time_however_seldom_the_link_is_looked_at) {
  const auto run = [](Duration step) {
    LinkRig rig("rate=8M delay=2ms jitter=1ms reorder=4; at 300us rate=80M; at 500us delay=1ms; at 900us clear");
    rig.offer_many(20);
    std::vector<Out> all;
    for (Instant now; now < Instant{} + milliseconds(5); now += step) {
      for (const Out& out : rig.take(now)) all.push_back(out);
    }
    return all;
  };
  EXPECT_EQ(run(microseconds(1)).size(), 20u);
  EXPECT_EQ(run(microseconds(1)), run(milliseconds(4)));
}

// ---- chance and memory ----

TEST(ImpairLink, the_same_seed_gives_the_same_results_and_another_one_others) {
  constexpr const char* kAll = "rate=1G jitter=5us loss=5% duplicate=5% corrupt=5% reorder=8 late=10%";
  const auto run = [&](uint64_t seed) {
    LinkRig rig(kAll, seed);
    rig.offer_many(1000);
    return rig.take();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(ImpairLink, one_more_fault_does_not_change_which_frames_are_lost) {
  const auto lost = [](const char* text) {
    LinkRig rig(text);
    std::vector<uint64_t> numbers;
    for (uint64_t i = 0; i < 1000; ++i) {
      if (rig.offer({}, i).fate == Fate::kLostRandom) numbers.push_back(i);
    }
    return numbers;
  };
  EXPECT_EQ(lost("loss=5%"), lost("loss=5% duplicate=20% corrupt=20% reorder=9 jitter=1us"));
}

TEST(ImpairLink, memory_of_frames_that_were_released_is_used_again) {
  LinkRig rig("delay=1us");
  for (uint64_t i = 0; i < 1000; ++i) {
    rig.offer(Instant{i * 1000}, i);
    const Arrival a = rig.link.take(Instant{i * 1000 + 1000}).value();
    EXPECT_EQ(a.slot, 0u);
    rig.link.release(a);
  }
}

TEST(ImpairLink, bytes_of_a_frame_that_came_out_stay_until_it_is_released) {
  LinkRig rig("");
  rig.offer({}, 1);
  const Arrival a = rig.link.take({}).value();
  for (uint64_t i = 2; i < 100; ++i) rig.offer({}, i);
  uint64_t number = 0;
  std::memcpy(&number, a.frame.data(), sizeof number);
  EXPECT_EQ(number, 1u);
}

}  // namespace
}  // namespace ub::impair
