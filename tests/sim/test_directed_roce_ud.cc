// SPDX-License-Identifier: Apache-2.0
//
// Datagrams between UD queue pairs. That each is whole, meant for who got it, and behind the header that it came with,
// the oracle sees.
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using roce::Opcode;

// Two nodes, a UD queue pair on each; receives of 1200 bytes where a test posts them.
struct UdStage : Stage {
  explicit UdStage(Options o = directed_options()) : Stage(o) {
    for (End& e : ends) {
      jfr.push_back(
          e.node->add_jfr(*e.app, e.jfc, {.mode = Mode::kUm, .depth = 64, .buffer_bytes = 1200, .token = {}}));
      qp.push_back(e.node->add_qp(*e.app, e.jfc, jfr.back(), {.type = roce::QpType::kUd, .depth = 64, .qkey = 0x1100}));
      e.node->get_ready(qp.back());
    }
  }
  void give(uint32_t count, uint32_t sges = 1) {
    for (uint32_t i = 0; i < count; ++i) ASSERT_TRUE(ends[1].node->post_receive(jfr[1], 1200, sges));
  }
  const Wr& go(uint32_t length, RequestSpec s = {}) {
    s.op = s.op == WrOp::kSendImm ? WrOp::kSendImm : WrOp::kSend;
    s.length = length;
    s.to = {qp[1], jfr[1]};
    const Wr* w = post(world, qp[0], s);
    UB_ASSERT(w != nullptr);
    ends[0].node->ring(qp[0]);
    return *w;
  }
  // Everybody has seen what came.
  void settle() {
    quiet();
    world.run_for(milliseconds(1));
  }
  uint64_t got(Counter c) { return ends[1].node->counter(c); }

  std::vector<Jfr*> jfr;
  std::vector<Queue*> qp;
};

bool is_datagram(const PacketInfo& p) { return p.roce && p.roce_packet.bth.opcode == Opcode::kUdSendOnly; }

TEST(RoceUd, datagrams__arrive_in_pieces_of_receives) {
  UdStage s;
  s.give(3);
  s.give(3, 4);
  std::vector<const Wr*> sent;
  for (uint32_t length : {0u, 1u, 1024u, 0u, 7u, 1024u}) {
    RequestSpec spec;
    spec.op = sent.size() % 2 == 0 ? WrOp::kSend : WrOp::kSendImm;
    spec.solicited = length == 7;
    spec.must_arrive = true;
    sent.push_back(&s.go(length, spec));
  }
  s.finish();
  s.settle();
  for (const Wr* w : sent) EXPECT_EQ(w->deliveries, 1u);
  EXPECT_EQ(s.got(Counter::kRoceRxDatagram), 6u);
  s.check_memory();
}

TEST(RoceUd, wrong_qkey_and_wrong_number__reach_nobody) {
  UdStage s;
  s.give(4);
  RequestSpec wrong_key, wrong_number;
  wrong_key.wrong = Wrong::kReceiverToken;
  wrong_number.wrong = Wrong::kTokenId;
  EXPECT_EQ(s.go(100, wrong_key).deliveries, 0u);
  s.go(100, wrong_number);
  const Wr& good = s.go(100);
  s.finish();
  s.settle();
  EXPECT_EQ(good.deliveries, 1u);
  EXPECT_EQ(s.got(Counter::kRoceRxDatagram), 1u);
  EXPECT_EQ(s.got(Counter::kRoceRxDropBadQkey), 1u);
  s.check_memory();
}

TEST(RoceUd, no_receive_or_a_short_one__costs_the_datagram_and_no_more) {
  UdStage s;
  s.go(100);
  s.finish();
  s.settle();
  EXPECT_EQ(s.got(Counter::kRoceRxDropNoReceive), 1u);
  ASSERT_TRUE(s.b().node->post_receive(s.jfr[1], 139, 1));
  s.go(100);
  const Wr& fits = s.go(99);
  s.finish();
  s.settle();
  EXPECT_EQ(s.got(Counter::kRoceRxDropNoFit), 1u);
  EXPECT_EQ(fits.deliveries, 1u);
  s.check_memory();
}

TEST(RoceUd, doubled_datagram__arrives_twice) {
  UdStage s;
  s.world.model.most_deliveries = 2;
  s.give(4);
  s.world.network.tamper.add(duplicate(1, microseconds(50), is_datagram));
  const Wr& w = s.go(500);
  s.finish();
  s.settle();
  EXPECT_EQ(w.deliveries, 2u);
  s.check_memory();
}

TEST(RoceUd, slow_memory__drops_what_comes_meanwhile) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 500'000;
  UdStage s(o);
  s.give(8);
  for (int i = 0; i < 8; ++i) s.go(300);
  s.finish();
  s.settle();
  EXPECT_EQ(s.got(Counter::kRoceRxDatagram) + s.got(Counter::kRoceRxDropBusy), 8u);
  EXPECT_GT(s.got(Counter::kRoceRxDatagram), 0u);
  s.check_memory();
}

TEST(RoceUd, error__gives_everything_back) {
  UdStage s;
  s.give(5);
  RequestSpec nowhere;
  nowhere.wrong = Wrong::kLocalHandle;
  const Wr& bad = s.go(100, nowhere);
  s.finish();
  EXPECT_EQ(bad.status, CrStatus::kLocOperation);
  s.b().node->flush(s.qp[1]);
  EXPECT_TRUE(s.world.run_until([&] { return s.jfr[1]->posted.empty(); }, seconds(1)));
  s.check_memory();
}

TEST(RoceUd, failed_send__ends_sending_for_a_while) {
  UdStage s;
  s.give(5);
  RequestSpec nowhere;
  nowhere.wrong = Wrong::kLocalHandle;
  s.go(100, nowhere);
  const Wr& behind = s.go(100);
  s.finish();
  EXPECT_EQ(behind.status, CrStatus::kWrFlush);
  s.world.run_for(milliseconds(10));  // the node has told it to go on
  RequestSpec again;
  again.must_arrive = true;
  const Wr& w = s.go(100, again);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kSuccess);
  s.settle();
  s.check_memory();
}

TEST(RoceUd, destroyed_in_the_middle__its_receive_is_not_written_any_more) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 100'000;
  UdStage s(o);
  s.give(1);
  s.go(1000);
  EXPECT_TRUE(s.world.run_until([&] { return s.b().node->copies_pending() != 0; }, seconds(1)));
  s.b().node->destroy(s.qp[1]);
  s.finish();
  s.settle();
  s.check_memory();
}

}  // namespace
}  // namespace ub::sim
