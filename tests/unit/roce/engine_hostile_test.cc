// SPDX-License-Identifier: Apache-2.0
// A peer that keeps to no rule: well-formed and damaged packets of every kind at a connected queue pair. Whatever
// comes, nothing outside the segment is touched, and the Core goes on.
#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

class HostileTest : public EnginePair {
 protected:
  /// A packet for `y` that is not far from what it expects.
  Bytes packet_for(TestQp& y, Psn expected, Psn in_flight) {
    Opcode op = kAllOpcodes[rng.below(std::size(kAllOpcodes))];
    if (y.type == QpType::kUc && op <= Opcode::kRcWriteOnlyImm) op = unreliable(op);
    const std::vector<size_t> lengths = payload_lengths(op);
    const size_t bytes = lengths[rng.below(lengths.size())];
    Packet p = random_packet(op, bytes, rng);
    p.bth.dest_qp = rng.chance(0.98) ? y.qpn : static_cast<uint32_t>(rng.below(2000));
    p.bth.pkey = rng.chance(0.98) ? kDefaultPkey : 1;
    const Psn near = p.has(kShapeRequest) ? expected : in_flight;
    p.bth.psn = near + static_cast<int64_t>(rng.below(5)) - (rng.chance(0.3) ? 3 : 0);
    if (rng.chance(0.6)) p.bth.psn = near;
    const uint64_t at = TestQp::kAddress + (rng.chance(0.9) ? rng.below(y.memory.size()) : rng.next_u64());
    const uint32_t rkey = rng.chance(0.8) ? y.rkey : rng.next_u32();
    if (op == Opcode::kRcReadRequest) p.reth.length = static_cast<uint32_t>(rng.below(20'000));
    p.reth.address = at;
    p.atomic.address = rng.chance(0.9) ? at & ~uint64_t{7} : at;
    p.reth.rkey = p.atomic.rkey = rkey;
    if (rng.chance(0.5)) p.invalidated_rkey = make_rkey(1 + static_cast<uint32_t>(rng.below(4)), TestQp::kKey);
    Bytes frame = frame_of(packet_bytes(p, random_bytes(bytes, rng)));
    if (rng.chance(0.05)) frame[rng.below(frame.size())] ^= std::byte{1};
    return frame;
  }

  /// Connected pairs of that type, one after another; returns how many ended in ERROR.
  uint64_t live(QpType type, int lives);

  Prng rng{11};
};

uint64_t HostileTest::live(QpType type, int lives) {
  uint64_t errors = 0;
  hold_copies = true;
  for (int life = 0; life < lives; ++life) {
    TestQp x(a, {.type = type}), y(b, {.type = type});
    connect(x, y, static_cast<uint8_t>(1 + rng.below(5)));
    a.host.slow = b.host.slow = rng.chance(0.5);
    for (int i = 0; i < 400 && state_of(y) != QpState::kError; ++i) {
      QpAttributes at;
      EXPECT_EQ(b.roce().query_qp(y.qpn, &at), Status::kOk);
      if (rng.chance(0.3))
        y.post_receive(static_cast<uint32_t>(rng.below(1000)), static_cast<uint32_t>(rng.below(9000)));
      if (y.rq.produced.load() - y.rq.consumed.load() > 32) y.rq.produced.store(y.rq.consumed.load());
      if (rng.chance(0.1) && y.sq.produced.load() - y.sq.consumed.load() < 16) {
        const WrOp ops[] = {WrOp::kSend, WrOp::kWrite, WrOp::kRead};
        y.post(ops[rng.below(type == QpType::kUc ? 2 : 3)], 0, static_cast<uint32_t>(rng.below(5000)), x.rkey);
        y.ring(now);
      }
      b.core->on_packet(now, b.link,
                        packet_for(y, Psn(at.rq_psn), Psn(at.sq_psn - static_cast<uint32_t>(rng.below(3)))));
      now += microseconds(static_cast<int64_t>(rng.below(50)));
      if (rng.chance(0.2)) b.host.finish_copies(*b.core, now);
      if (b.core->next_deadline() <= now) b.core->on_timer(now);
      drain(b);
      b.host.frames.clear();
      y.poll();
      b.core->on_completions_read(now, y.jfc);
    }
    errors += state_of(y) == QpState::kError;
    if (rng.chance(0.5)) b.host.finish_copies(*b.core, now);
    EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
    EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), Status::kOk);
    while (b.host.finish_copies(*b.core, now)) drain(b);
    for (TestQp* q : {&x, &y}) {
      EXPECT_EQ(q->node.core->destroy_jfr(now, q->jfr), Status::kOk);
      EXPECT_EQ(q->node.core->destroy_jfc(q->jfc), Status::kOk);
      EXPECT_EQ(q->node.core->unregister_segment(now, q->segment), Status::kOk);
    }
    drain(b);
    EXPECT_EQ(b.host.open_frames(), 0u);
    now += seconds(3);
  }
  EXPECT_EQ(b.core->roce_state()->kept.in_use(), 0u);
  EXPECT_EQ(b.core->state().receives.in_use(), 0u);
  return errors;
}

TEST_F(HostileTest, nothing_breaks) {
  EXPECT_GT(live(QpType::kRc, 3000), 1000u);
  EXPECT_GT(count(b, Counter::kRoceRxRequest), 500u);
}

TEST_F(HostileTest, an_unreliable_connection_is_not_even_broken) {
  EXPECT_EQ(live(QpType::kUc, 1000), 0u);
  EXPECT_GT(count(b, Counter::kRoceRxRequest), 500u);
}

}  // namespace
}  // namespace ub::roce
