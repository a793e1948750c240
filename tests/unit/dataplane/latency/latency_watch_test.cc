// SPDX-License-Identifier: Apache-2.0
//
// Two Cores in the hands of a test, which moves the time: how long stages take is known beforehand.
#include <gtest/gtest.h>

#include "dataplane/latency_watch.h"
#include "lib/transport/ta/copy_tag.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

using enum LatencyStage;

class WatchedPair : public UbPair {
 protected:
  explicit WatchedPair(const UbOptions& options = {}) : UbPair(options) {
    connect();
    watch(a, at_a);
    watch(b, at_b);
  }

  void watch(UbNode& node, LatencyWatch& by) {
    node.host.on_note = [this, &by](const Note& note) { by.hear(now.ns, note); };
    node.core->look(true);
  }
  void pass(uint64_t ns) { now = now + nanoseconds(static_cast<int64_t>(ns)); }

  // A turn of a node that sends.
  void turn(UbNode& node, LatencyWatch& by) {
    by.begin_turn(now.ns);
    drain(node);
    by.end_turn(now.ns);
  }
  // A turn of a node that takes what the other one sent; each frame takes so long.
  void take(UbNode& from, UbNode& to, LatencyWatch& by, uint64_t ns_each = 0) {
    by.begin_turn(now.ns);
    by.received(now.ns);
    while (!from.host.frames.empty()) {
      const Bytes frame = std::move(from.host.frames.front());
      from.host.frames.pop_front();
      to.core->on_packet(now, to.link, frame);
      pass(ns_each);
      by.handled(now.ns, frame);
    }
    by.end_turn(now.ns);
  }
  // To b and back.
  void round_trip(uint64_t there_ns, uint64_t back_ns, uint64_t place_ns = 0) {
    turn(a, at_a);
    pass(there_ns);
    take(a, b, at_b, place_ns);
    turn(b, at_b);
    pass(back_ns);
    take(b, a, at_a);
    turn(a, at_a);
  }

  static const Histogram& times(const LatencyWatch& watch, LatencyStage stage,
                                TrafficClass traffic = TrafficClass::kSmall) {
    return watch.latencies().histogram(stage, traffic);
  }
  static LatencyMisses misses(LatencyWatch& watch, LatencyStage stage) { return watch.latencies().misses(stage); }

  LatencyWatch at_a{a.core->state(), nullptr}, at_b{b.core->state(), nullptr};
};

TEST_F(WatchedPair, a_write_is_posted_sent_acknowledged_and_completed) {
  request(WrOp::kWrite, 8);
  pass(50);
  round_trip(100, 200);
  EXPECT_EQ(times(at_a, kPostedToSent).count(), 1u);
  EXPECT_EQ(times(at_a, kPostedToSent).max(), 50u);
  EXPECT_EQ(times(at_a, kSentToAcknowledged).max(), 300u);
  EXPECT_EQ(times(at_a, kPostedToCompleted).count(), 1u);
  EXPECT_EQ(times(at_a, kPostedToCompleted).max(), 350u);
  for (size_t i = 0; i < kLatencyStages; ++i) EXPECT_EQ(misses(at_a, static_cast<LatencyStage>(i)), LatencyMisses{});
}

TEST_F(WatchedPair, its_bytes_are_placed_where_it_arrives_and_answers_place_nothing) {
  request(WrOp::kWrite, 8);
  round_trip(100, 200, 70);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).count(), 1u);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).max(), 70u);
  EXPECT_EQ(times(at_a, kReceivedToPlaced).count(), 0u);
}

TEST_F(WatchedPair, a_frame_waits_for_those_of_its_burst) {
  request(WrOp::kWrite, 8);
  request(WrOp::kWrite, 8);
  round_trip(100, 200, 70);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).count(), 2u);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).max(), 140u);
}

TEST_F(WatchedPair, a_completion_is_polled_when_the_next_turn_sees_that_it_was_taken) {
  request(WrOp::kWrite, 8);
  round_trip(100, 200);
  pass(30);
  EXPECT_EQ(a.poll().size(), 1u);
  pass(10);
  EXPECT_EQ(times(at_a, kCompletedToPolled).count(), 0u);
  turn(a, at_a);
  EXPECT_EQ(times(at_a, kCompletedToPolled).count(), 1u);
  EXPECT_EQ(times(at_a, kCompletedToPolled).max(), 40u);
}

TEST_F(WatchedPair, one_that_is_taken_while_nobody_drives_is_not_measured) {
  request(WrOp::kWrite, 8);
  round_trip(100, 200);
  EXPECT_EQ(a.poll().size(), 1u);
  pass(LatencyWatch::kLongestPauseNs + 1);
  turn(a, at_a);
  EXPECT_EQ(times(at_a, kCompletedToPolled).count(), 0u);
  EXPECT_EQ(misses(at_a, kCompletedToPolled).unseen, 1u);
}

TEST_F(WatchedPair, a_long_turn_is_no_pause) {
  request(WrOp::kWrite, 8);
  round_trip(100, 200);
  at_a.begin_turn(now.ns);
  pass(LatencyWatch::kLongestPauseNs + 1);
  at_a.end_turn(now.ns);
  EXPECT_EQ(a.poll().size(), 1u);
  pass(10);
  turn(a, at_a);
  EXPECT_EQ(times(at_a, kCompletedToPolled).max(), LatencyWatch::kLongestPauseNs + 11);
  EXPECT_EQ(misses(at_a, kCompletedToPolled).unseen, 0u);
}

TEST_F(WatchedPair, a_receive_completes_at_its_target_too) {
  b.post_receive(b.receive_indices[0], b.receives[0], 0, 64);
  request(WrOp::kSend, 8);
  round_trip(100, 200);
  pass(25);
  EXPECT_EQ(b.poll().size(), 1u);
  turn(b, at_b);
  EXPECT_EQ(times(at_b, kCompletedToPolled).count(), 1u);
}

TEST_F(WatchedPair, requests_are_counted_by_kind) {
  request(WrOp::kWrite, 8);
  request(WrOp::kRead, 8);
  exchange();
  uint64_t kinds[kOperationKinds];
  at_a.copy_kinds_to(kinds);
  EXPECT_EQ(kinds[static_cast<size_t>(OperationKind::kWrite)], 1u);
  EXPECT_EQ(kinds[static_cast<size_t>(OperationKind::kRead)], 1u);
  at_a.clear();
  at_a.copy_kinds_to(kinds);
  EXPECT_EQ(kinds[static_cast<size_t>(OperationKind::kWrite)], 0u);
  EXPECT_EQ(times(at_a, kPostedToCompleted).count(), 0u);
}

// ---- what does not match -----------------------------------------------------------------------------------------

TEST_F(WatchedPair, what_began_before_anybody_looked_ends_without_a_beginning) {
  a.core->look(false);
  request(WrOp::kWrite, 8);
  drain(a);
  a.core->look(true);
  exchange();
  EXPECT_EQ(times(at_a, kSentToAcknowledged).count(), 0u);
  EXPECT_EQ(misses(at_a, kSentToAcknowledged).no_start, 1u);
  EXPECT_EQ(misses(at_a, kPostedToCompleted).no_start, 1u);
}

TEST_F(WatchedPair, beginnings_without_ends_give_way_and_are_counted) {
  for (uint32_t psn = 0; psn < 100'000; ++psn) at_a.hear(psn + 1, {Stage::kPacketSent, 1, psn});
  EXPECT_GT(misses(at_a, kSentToAcknowledged).forgotten, 60'000u);
  at_a.hear(200'000, {Stage::kPacketsAcknowledged, 1, 0, 99'999});
  const uint64_t found = times(at_a, kSentToAcknowledged).count();
  EXPECT_EQ(found + misses(at_a, kSentToAcknowledged).forgotten, 100'000u);
  EXPECT_EQ(misses(at_a, kSentToAcknowledged).no_start, misses(at_a, kSentToAcknowledged).forgotten);
}

TEST_F(WatchedPair, a_channel_whose_number_is_used_again_gets_nothing_of_the_former_one) {
  const uint32_t former = channel(a).tpn;
  at_a.hear(now.ns, {Stage::kPacketSent, 1, 12'345});
  a.core->link_down(now, a.link);
  a.link = a.core->add_link({.mtu = 1024, .lossless = true});
  b.core->close(now);
  exchange();
  pass(static_cast<uint64_t>(seconds(60).ns));  // numbers rest
  a.core->on_timer(now);
  const uint32_t again = a.import(now, b);
  (void)again;
  exchange();
  ASSERT_NE(channel(a).tpn, former);
  at_a.hear(now.ns, {Stage::kPacketsAcknowledged, 1, 12'345, 12'345});
  EXPECT_EQ(times(at_a, kSentToAcknowledged).count(), 0u);
}

// ---- copies that memory answers later ----------------------------------------------------------------------------

TEST_F(WatchedPair, bytes_that_an_agent_copies_count_until_the_last_copy_is_done) {
  const CopyTag tag = ta::place_tag(channel(b).tpn, Tpmsn(5));
  const Note asked{Stage::kCopyAsked, static_cast<uint32_t>(tag >> 32), static_cast<uint32_t>(tag), 8};
  const Note done{Stage::kCopyDone, asked.object, asked.a};
  at_b.received(1000);
  at_b.hear(1010, asked);
  at_b.hear(1020, asked);
  at_b.hear(1500, done);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).count(), 0u);
  at_b.hear(1800, done);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).max(), 800u);
  at_b.hear(1900, done);
  EXPECT_EQ(misses(at_b, kReceivedToPlaced).no_start, 1u);
}

TEST_F(WatchedPair, copies_of_a_message_count_from_its_newest_packet_on) {
  const CopyTag tag = ta::place_tag(channel(b).tpn, Tpmsn(5));
  const Note asked{Stage::kCopyAsked, static_cast<uint32_t>(tag >> 32), static_cast<uint32_t>(tag), 8};
  const Note done{Stage::kCopyDone, asked.object, asked.a};
  at_b.received(1000);
  at_b.hear(1010, asked);
  at_b.received(5000);
  at_b.hear(5010, asked);
  at_b.hear(5100, done);
  at_b.hear(5200, done);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).count(), 1u);
  EXPECT_EQ(times(at_b, kReceivedToPlaced).max(), 200u);
}

// ---- classes -----------------------------------------------------------------------------------------------------

TEST_F(WatchedPair, datagrams_are_sent_and_completed_and_never_acknowledged) {
  const uint32_t target = a.import(now, b, Mode::kUm);
  b.post_receive(b.receive_indices[1], b.receives[1], 0, 64);
  a.post(a.datagrams, WrOp::kSend, target, 8).flags &= static_cast<uint8_t>(~kWrToken);
  a.core->on_posted(now, a.datagram_jetty);
  pass(40);
  round_trip(100, 0, 70);
  EXPECT_EQ(times(at_a, kPostedToSent, TrafficClass::kDatagrams).max(), 40u);
  EXPECT_EQ(times(at_a, kPostedToCompleted, TrafficClass::kDatagrams).count(), 1u);
  EXPECT_EQ(times(at_a, kSentToAcknowledged, TrafficClass::kDatagrams).count(), 0u);
  EXPECT_EQ(times(at_b, kReceivedToPlaced, TrafficClass::kDatagrams).max(), 70u);
}

class WatchedCompact : public WatchedPair {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.core.lanes = 2;
    o.core.slow_memory = false;
    o.core.window_packets = 128;
    o.link = {.mtu = 1024, .lossless = true, .compact = true};
    return o;
  }
  WatchedCompact() : WatchedPair(options()) {}
};

TEST_F(WatchedCompact, requests_of_ctp_are_sent_when_they_begin_and_acknowledged_when_they_complete) {
  request(WrOp::kWrite, 8);
  exchange();  // its channel is set up
  at_a.clear();
  at_b.clear();
  request(WrOp::kWrite, 8);
  pass(60);
  round_trip(100, 200, 70);
  EXPECT_EQ(times(at_a, kPostedToSent, TrafficClass::kCompact).max(), 60u);
  EXPECT_EQ(times(at_a, kSentToAcknowledged, TrafficClass::kCompact).max(), 370u);
  EXPECT_EQ(times(at_a, kPostedToCompleted, TrafficClass::kCompact).max(), 430u);
  EXPECT_EQ(times(at_b, kReceivedToPlaced, TrafficClass::kCompact).max(), 70u);
}

}  // namespace
}  // namespace ub
