// SPDX-License-Identifier: Apache-2.0
//
// Requests that are held back: what is said about it, those that wait for the rate of their owner, and the place of
// their queue in the line of its channel.
#include "lib/transport/resource/owner_limits.h"
#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/looking.h"

namespace ub::ta {
namespace {

// ---- what is said ----------------------------------------------------------------------------------------------

/// Why the requests of the queue waited, as far as it was said; each reason once.
std::vector<RequestWaits> reasons(const Requests& r, const Looking& looking) {
  std::vector<RequestWaits> all;
  for (const Note& n : looking.notes) {
    if (n.stage != Stage::kRequestWaits) continue;
    EXPECT_EQ(n.object, r.queue_index);
    if (all.empty() || all.back() != RequestWaits(n.a)) all.push_back(RequestWaits(n.a));
  }
  return all;
}

TEST(RequestWaits, its_reason_is_said) {
  const auto why = [](void (*post)(Requests&)) {
    Requests r({.lanes = 2});
    r.open(setup::channel_to(*r.s, r.s->targets[r.target].peer, true));
    Looking looking;
    r.s->looker.begin(looking);
    post(r);
    r.sent();
    return reasons(r, looking);
  };
  using Reasons = std::vector<RequestWaits>;
  EXPECT_EQ(why([](Requests& r) { r.post(WrOp::kRead); }), Reasons{});
  EXPECT_EQ(why([](Requests& r) {
              r.post(WrOp::kRead);
              r.write(WrOp::kWrite).flags |= kWrFence;
            }),
            Reasons{RequestWaits::kFence});
  EXPECT_EQ(why([](Requests& r) {
              for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite, 8, 2);
            }),
            Reasons{RequestWaits::kOrder});
  EXPECT_EQ(why([](Requests& r) {
              r.post(WrOp::kSend);
              r.sent();
              r.refuse(0);
              r.post(WrOp::kSend);
            }),
            Reasons{RequestWaits::kReceive});
  EXPECT_EQ(why([](Requests& r) {
              r.q().unanswered_segments = kQueueSegmentsInFlight;
              r.post(WrOp::kWrite);
            }),
            Reasons{RequestWaits::kAnswers});
  EXPECT_EQ(why([](Requests& r) {
              r.post(WrOp::kSend);
              r.post(WrOp::kSend, 20 * kMtu);
            }),
            Reasons{RequestWaits::kLane});
}

// ---- the rate of the owner -------------------------------------------------------------------------------------

struct Paced : Requests {
  Paced() {
    limits.pacer.bytes_per_second = 1'000'000;
    q().limits = &limits;
  }
  void wait_for_rate() {
    s->now = limits.pacer.ready_at();
    timer();
  }
  OwnerLimits limits;
};

// A program whose requests are as long as it likes sends no more than its rate, one millisecond and one segment.
TEST(Paced, long_requests_leave_at_an_even_pace) {
  constexpr uint32_t kSegments = 7;
  for (const WrOp op : {WrOp::kWrite, WrOp::kRead}) {
    Paced p;
    const Instant began = p.s->now;
    for (int request = 0; request < 3; ++request) p.post(op, kSegments * kSegment);
    uint64_t bytes = 0;
    for (uint32_t left = 3 * kSegments; left != 0;) {
      const size_t now = p.sent().size();
      ASSERT_GT(now, 0u);
      left -= static_cast<uint32_t>(now);
      bytes += now * kSegment;
      const auto by_rate = static_cast<uint64_t>((p.s->now - began).us());  // a byte in a microsecond
      ASSERT_LE(bytes, by_rate + 1000 + kSegment);
      for (uint32_t tassn = 0; tassn < 3 * kSegments; ++tassn) p.answer(tassn);
      p.wait_for_rate();
    }
    EXPECT_GE((p.s->now - began).us(), 3 * kSegments * kSegment - 1000) << "and not much less";
    EXPECT_LE((p.s->now - began).us(), 3 * kSegments * (kSegment + 256));
  }
}

TEST(Paced, a_segment_costs_its_bytes_and_those_of_its_headers) {
  Paced p;
  p.post(WrOp::kWrite, 2 * kSegment + 100);
  for (const uint32_t bytes : {kSegment, kSegment, 100u}) {
    const Instant paid = later(p.limits.pacer.next, p.s->now);
    EXPECT_EQ(p.sent().size(), 1u);
    EXPECT_EQ(p.limits.pacer.next, paid + microseconds(bytes + cc::Pacer::kRequestBytes));
    p.wait_for_rate();
  }
}

// What is refused goes again at no price, since it was paid for.
TEST(Paced, a_refused_segment_costs_nothing_again) {
  Paced p;
  p.post(WrOp::kSend);
  EXPECT_EQ(p.sent().size(), 1u);
  const Instant next = p.limits.pacer.next;
  p.refuse(0, 1);
  p.pass(seconds(1));
  p.timer();
  EXPECT_EQ(p.sent().size(), 1u);
  EXPECT_EQ(p.limits.pacer.next, next);
}

TEST(Paced, a_queue_that_waits_for_the_rate_of_its_owner_alone_waits_for_no_answers) {
  Paced p;
  p.limits.pacer.charge(p.s->now, kSegment);
  p.post(WrOp::kWrite);
  EXPECT_EQ(p.q().waits_for, 0u);
  EXPECT_FALSE(p.q().held_back);
}

TEST(Paced, a_request_whose_gate_opened_waits_like_a_new_one_and_pays_when_it_goes) {
  Paced p;
  p.post(WrOp::kWrite, 8, 1);
  p.post(WrOp::kWrite, 24, 2);
  EXPECT_EQ(p.sent().size(), 1u);
  EXPECT_EQ(p.limits.pacer.next, p.s->now + microseconds(8 + cc::Pacer::kRequestBytes)) << "the other one has not";
  p.limits.pacer.charge(p.s->now, kSegment);
  p.answer(0);
  EXPECT_TRUE(p.sent().empty());
  const Instant next = p.limits.pacer.next;
  p.wait_for_rate();
  EXPECT_EQ(p.sent().size(), 1u);
  EXPECT_EQ(p.limits.pacer.next, next + microseconds(24 + cc::Pacer::kRequestBytes));
}

TEST(Paced, what_needs_no_packet_passes_a_request_that_waits_for_the_rate) {
  Paced p;
  p.post(WrOp::kWrite, 8, 1);
  p.post(WrOp::kWrite, 8, 2);
  p.sent();
  p.limits.pacer.charge(p.s->now, kSegment);
  p.answer(0);
  p.write(WrOp::kWrite).flags |= kWrDead;
  p.ring_bell();
  EXPECT_EQ(p.q().started_tail, 3u);
  EXPECT_TRUE(p.state_of(2).done);
  p.wait_for_rate();
  EXPECT_EQ(p.sent().size(), 1u);
}

// ---- the line of a channel -------------------------------------------------------------------------------------

TEST(Line, a_doorbell_does_not_cost_a_queue_its_place) {
  Requests r;
  const uint32_t other = r.make_jetty(r.make_jfr());
  r.post(WrOp::kWrite);
  Objects::SendRingMemory& its_ring = r.send_rings.back();
  its_ring.slots[0] = r.ring[0];
  its_ring.indices.produced.store(1);
  schedule_queue(*r.s, r.jetty(other).queue);
  r.ring_bell();
  const std::vector<tp::TxMessage> m = r.sent();
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].source, r.queue_index);
  EXPECT_EQ(m[1].source, r.jetty(other).queue);
}

}  // namespace
}  // namespace ub::ta
