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

TEST(Paced, a_request_waits_before_it_begins_and_never_in_its_middle) {
  Paced p;
  p.post(WrOp::kWrite, 3 * kSegment);
  EXPECT_EQ(p.sent().size(), 3u);
  p.post(WrOp::kWrite);
  EXPECT_TRUE(p.sent().empty());
  p.wait_for_rate();
  EXPECT_EQ(p.sent().size(), 1u);
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
