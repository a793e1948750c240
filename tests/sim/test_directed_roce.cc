// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs of RoCE, packet by packet: what the requester and the responder of docs/roce-design.md promise when one
// packet is lost, doubled or late. What is executed once, in order, and completed, the oracle sees.
#include "tests/sim/roce_stage.h"

namespace ub::sim {
namespace {

using roce::Opcode;
constexpr CrStatus kSuccess = CrStatus::kSuccess;

// Memory answers later, and the timer is far away.
Options slow_options() {
  Options o = roce_options();
  o.host.pending = 1;
  o.host.pending_ns = 50'000;
  o.work.roce_timeout = 14;
  return o;
}

// Packets of one node with this opcode.
Matcher packet(uint32_t from, Opcode op) {
  return [=](const PacketInfo& p) { return p.from == from && p.roce && p.roce_packet.bth.opcode == op; };
}

// ---- requester -------------------------------------------------------------------------------------------------

TEST(Roce, acknowledgement__is_asked_for_every_sixteen_packets_and_at_the_end) {
  RoceStage s;
  TamperRule& asked = s.tamper(watch([](const PacketInfo& p) { return p.roce && p.roce_packet.bth.ack_req; }));
  s.go(WrOp::kWrite, 60 * 1024);
  s.finish();
  EXPECT_EQ(asked.hits, 4u);  // PSNs ffffff, f, 1f, and the last, 2b
  s.check_memory();
}

TEST(Roce, lost_middle__is_repaired_by_one_nak) {
  RoceStage s;
  s.tamper(drop(1, packet(0, Opcode::kRcWriteMiddle), 20));
  const Wr& w = s.go(WrOp::kWrite, 60 * 1024);
  const double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.got(Counter::kRoceTxNakSequence), 1u);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  EXPECT_LT(took, 0.001);
  s.check_memory();
}

TEST(Roce, lost_tail__is_repaired_by_the_timer) {
  RoceStage s;
  s.tamper(drop(1, packet(0, Opcode::kRcWriteLast)));
  const Wr& w = s.go(WrOp::kWrite, 3000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 1u);
  s.check_memory();
}

TEST(Roce, lost_acknowledgement__is_given_again_without_executing_again) {
  RoceStage s;
  s.give(1);
  s.tamper(drop(1, packet(1, Opcode::kRcAck)));
  const Wr& w = s.go(WrOp::kSend, 100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.got(Counter::kRoceRxDuplicate), 1u);
  s.check_memory();
}

TEST(Roce, lost_nak__is_repaired_by_the_timer) {
  RoceStage s;
  s.tamper(drop(1, packet(0, Opcode::kRcWriteMiddle)));
  s.tamper(drop(1, packet(1, Opcode::kRcAck)));
  const Wr& w = s.go(WrOp::kWrite, 5000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 1u);
  s.check_memory();
}

TEST(Roce, lost_read_response__is_asked_for_from_there_on) {
  RoceStage s;
  s.tamper(drop(1, packet(1, Opcode::kRcReadReplyMiddle), 3));
  std::vector<uint32_t> asked;
  s.tamper(watch([&](const PacketInfo& p) {
    if (packet(0, Opcode::kRcReadRequest)(p)) asked.push_back(p.roce_packet.reth.length);
    return false;
  }));
  const Wr& w = s.go(WrOp::kRead, 10'000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(asked, (std::vector<uint32_t>{10'000, 10'000 - 4 * 1024}));
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  s.check_memory();
}

TEST(Roce, lost_answer_of_an_atomic__comes_from_its_slot) {
  RoceStage s;
  s.tamper(drop(1, packet(1, Opcode::kRcAtomicAck)));
  s.add(WrOp::kFetchAdd, 8);
  const Wr& w = s.go(WrOp::kFetchAdd, 8);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(s.got(Counter::kRoceRxDuplicate), 1u);
  s.check_memory();
}

TEST(Roce, doubled_and_late_packets__change_nothing) {
  RoceStage s;
  s.give(8);
  s.tamper(duplicate(kAlways, milliseconds(3), [](const PacketInfo& p) { return p.roce; }));
  for (int i = 0; i < 8; ++i) {
    s.add(WrOp::kSend, 2000);
    s.add(WrOp::kFetchAdd, 8);
    s.add(WrOp::kRead, 3000);
  }
  s.ring();
  s.finish();
  s.check_memory();
  EXPECT_GT(s.sent(Counter::kRoceRxStale), 0u);
}

TEST(Roce, swapped_packets__are_asked_for_again) {
  RoceStage s;
  s.tamper(swap_with_next(3, packet(0, Opcode::kRcWriteMiddle), 5));
  const Wr& w = s.go(WrOp::kWrite, 60 * 1024);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(s.got(Counter::kRoceTxNakSequence), 1u);
  s.check_memory();
}

TEST(Roce, swapped_tail__is_asked_for_again_without_the_timer) {
  RoceStage s(slow_options());  // the NAK waits for memory, and the gap closes meanwhile
  s.tamper(swap_with_next(1, packet(0, Opcode::kRcWriteMiddle)));
  const Wr& w = s.go(WrOp::kWrite, 3000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  s.check_memory();
}

TEST(Roce, request_behind_a_read__is_acknowledged_without_the_timer) {
  RoceStage s(slow_options());
  s.give(1);
  s.add(WrOp::kRead, 8000);
  const Wr& w = s.go(WrOp::kSend, 100);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  s.check_memory();
}

TEST(Roce, damaged_packets__are_dropped_and_counted) {
  RoceStage s;
  s.tamper(corrupt(1, packet(0, Opcode::kRcWriteOnly)));
  const Wr& w = s.go(WrOp::kWrite, 500);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTxRetransmit), 1u);
  s.check_memory();
}

TEST(Roce, silence__ends_it_after_the_retries) {
  RoceStage s;
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  TamperRule& lost = s.tamper(drop(kAlways, [](const PacketInfo& p) { return p.roce; }));
  const Wr& first = s.add(WrOp::kWrite, 100);
  const Wr& second = s.go(WrOp::kWrite, 100);
  const double took = s.finish();
  EXPECT_EQ(first.status, CrStatus::kAckTimeout);
  EXPECT_EQ(second.status, CrStatus::kWrFlush);
  EXPECT_EQ(lost.hits, 2u * 8);
  EXPECT_GT(took, 0.008);
}

// ---- receives --------------------------------------------------------------------------------------------------

TEST(Roce, no_receive__is_waited_for) {
  RoceStage s;
  const Wr& w = s.go(WrOp::kSend, 100);
  s.world.run_for(milliseconds(2));
  EXPECT_GT(s.got(Counter::kRoceTxRnr), 0u);
  s.give(1);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  s.check_memory();
}

TEST(Roce, no_receive__fails_when_the_retries_are_used_up) {
  RoceStage s(roce_options(), 2);
  const Wr& w = s.go(WrOp::kSend, 100);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kRnrRetryExceeded);
  EXPECT_EQ(s.got(Counter::kRoceTxRnr), 3u);
}

TEST(Roce, credits__hold_messages_back) {
  RoceStage s;
  s.give(3);
  s.go(WrOp::kSend, 100);
  s.finish();  // its acknowledgement says: two more
  TamperRule& sends = s.tamper(watch(packet(0, Opcode::kRcSendOnly)));
  for (int i = 0; i < 8; ++i) s.add(WrOp::kSend, 100);
  s.ring();
  s.world.run_for(microseconds(15));
  EXPECT_EQ(sends.hits, 2u);
  s.give(6);
  s.finish();
  s.check_memory();
}

// ---- responder -------------------------------------------------------------------------------------------------

TEST(Roce, other_protection_domain__is_refused) {
  RoceStage s;
  App* stranger = s.b().node->add_app(4096, 4096);
  RequestSpec spec;
  spec.remote = s.b().node->add_target(*stranger, {.length = 8192, .token = {true, 0x123}});
  const Wr& w = s.go(WrOp::kWrite, 100, spec);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kRemAccessAbort);
}

TEST(Roce, segment_gone_in_the_middle_of_a_read) {
  RoceStage s;
  s.tamper(delay(kAlways, milliseconds(1), packet(1, Opcode::kRcReadReplyMiddle), 3));
  const Wr& w = s.go(WrOp::kRead, 500'000);
  s.world.run_for(microseconds(12));
  s.b().node->unregister(s.target[1]);
  s.finish();
  EXPECT_NE(w.state, Wr::State::kOutstanding);
}

TEST(Roce, slow_memory__is_not_acknowledged_early) {
  RoceStage s(slow_options());
  s.give(10);
  for (int i = 0; i < 10; ++i) {
    s.add(WrOp::kSend, 3000);
    s.add(WrOp::kWrite, 5000);
    s.add(WrOp::kRead, 5000);
    s.add(WrOp::kFetchAdd, 8);
  }
  s.ring();
  s.finish();
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  EXPECT_EQ(s.sent(Counter::kRoceTxRetransmit), 0u) << "no acknowledgement came before the answer to a READ";
  s.check_memory();
}

TEST(Roce, slow_memory__goes_back_as_any_other) {
  RoceStage s(slow_options());
  s.tamper(drop(1, packet(0, Opcode::kRcWriteMiddle), 20));
  const Wr& w = s.go(WrOp::kWrite, 60 * 1024);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.got(Counter::kRoceTxNakSequence), 1u);
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  s.check_memory();
}

TEST(Roce, slow_memory__answers_go_on_from_where_they_are_asked_for_again) {
  RoceStage s(slow_options());
  s.tamper(drop(1, packet(1, Opcode::kRcReadReplyMiddle), 20));
  const Wr& w = s.go(WrOp::kRead, 60 * 1024);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.sent(Counter::kRoceTxRetransmit), 1u) << "it was asked for twice";
  EXPECT_EQ(s.sent(Counter::kRoceTimeout), 0u);
  s.check_memory();
}

TEST(Roce, one_port__carries_both) {
  RoceStage s;
  s.give(1);
  const Wr& ub = s.write(3000);
  const Wr& rc = s.go(WrOp::kSend, 3000);
  s.finish();
  EXPECT_EQ(ub.status, kSuccess);
  EXPECT_EQ(rc.status, kSuccess);
  EXPECT_EQ(s.got(Counter::kRoceRxRequest), 3u);
  EXPECT_EQ(s.got(Counter::kTpRxData), 3u);
  s.check_memory();
}

// ---- congestion ------------------------------------------------------------------------------------------------

uint32_t rate(const End& e, const Queue* q) {
  const auto& core = e.node->core();
  return core.roce_state()->qps[roce::find_qp(core.state(), q->id)].flow.dcqcn.rate_kbytes_per_second;
}

Options marked() {
  Options o = roce_options();
  o.work.dcqcn = true;
  o.work.line_rate = 1'250'000'000;
  o.work.roce_timeout = 17;
  o.net.mark = 1;
  return o;
}

TEST(Roce, congestion__slows_the_sender_down_and_is_forgotten) {
  RoceStage s(marked());
  const Wr& w = s.go(WrOp::kWrite, 300'000);
  const double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GT(s.got(Counter::kRoceTxCnp), 1u);
  EXPECT_EQ(s.got(Counter::kRoceTxCnp), s.sent(Counter::kRoceRxCnp));
  EXPECT_LE(s.got(Counter::kRoceTxCnp), took / 50e-6 + 1);  // not one for each packet
  EXPECT_LT(rate(s.a(), s.qp[0]), 1'250'000u);
  EXPECT_GT(rate(s.a(), s.qp[0]), 0u);
  EXPECT_GT(took, 1e-3);
  s.world.network.heal();
  EXPECT_TRUE(s.world.run_until([&] { return rate(s.a(), s.qp[0]) == 0; }, seconds(1)));
  s.check_memory();
}

TEST(Roce, congestion__slows_whoever_answers_a_read) {
  RoceStage s(marked());
  for (int i = 0; i < 8; ++i) s.add(WrOp::kRead, 200'000);
  s.ring();
  s.finish();
  EXPECT_GT(s.sent(Counter::kRoceTxCnp), 1u);
  EXPECT_GT(rate(s.b(), s.qp[1]), 0u);
  s.world.network.heal();
  EXPECT_TRUE(s.world.run_until([&] { return rate(s.b(), s.qp[1]) == 0; }, seconds(1)));
  s.check_memory();
}

TEST(Roce, without_dcqcn__nothing_may_be_marked) {
  Options o = marked();
  o.work.dcqcn = false;
  RoceStage s(o);
  s.go(WrOp::kWrite, 30'000);
  s.finish();
  EXPECT_EQ(s.world.network.marked(), 0u);
  EXPECT_EQ(s.got(Counter::kRoceTxCnp), 0u);
}

}  // namespace
}  // namespace ub::sim
