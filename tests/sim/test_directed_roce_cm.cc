// SPDX-License-Identifier: Apache-2.0
//
// Connections by RDMA-CM, message by message: what is lost, doubled, late or comes from nobody. That both ends think
// the same, that private data is what was said and a request is heard once, connections.h sees.
#include "tests/sim/connections.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using roce::CmType;
using State = Connections::Side::State;

Options cm_options() {
  Options o = directed_options();
  o.work.qp_pairs = 1;
  o.work.roce_timeout = 8;
  return o;
}

// Two nodes; the first asks, the second listens. Applications answer when the test says so.
struct CmStage : Stage {
  explicit CmStage(Options o = cm_options())
      : Stage(o),
        connections(world, {.make_qp = [this](Node& node, App& app) { return make_qp(node, app); },
                            .established = [this](Queue*) { ++established; }}) {
    connections.answers = false;
    connections.listen(*b().node, *b().app);
  }
  Queue* make_qp(Node& node, App& app) {
    Jfr* jfr = node.add_jfr(app, app.jfcs.front(), {.mode = Mode::kRc, .depth = 8, .buffer_bytes = 4096, .token = {}});
    Queue* q = node.add_qp(app, app.jfcs.front(), jfr, {});
    node.get_ready(q);
    return q;
  }
  Connections::Side* ask() {
    asks = connections.ask(*a().node, *a().app, 1);
    UB_ASSERT(asks != nullptr);
    known = connections.sides().size();
    return asks;
  }
  // The one that was asked, when it hears of it.
  Connections::Side* asked() {
    EXPECT_TRUE(world.run_until([&] { return connections.sides().size() > known; }, seconds(5)));
    known = connections.sides().size();
    was_asked = connections.sides().back().get();
    EXPECT_FALSE(was_asked->active);
    return was_asked;
  }
  bool wait(const Connections::Side* side, State state, Duration limit = seconds(60)) {
    return world.run_until([=] { return side->state == state; }, limit);
  }
  void meet() {
    ask();
    connections.accept(asked());
    EXPECT_TRUE(wait(asks, State::kEstablished));
    EXPECT_TRUE(wait(was_asked, State::kEstablished));
  }
  // Both ends agree, nothing is left.
  void part() {
    std::string why;
    EXPECT_TRUE(world.run_until([&] { return connections.settled(&why); }, seconds(10))) << why;
    connections.part_all();
    EXPECT_TRUE(world.run_until([&] { return connections.at_rest(); }, seconds(10)));
    quiet();
  }
  const Wr& send_from(const Connections::Side* side) {
    RequestSpec s;
    s.op = WrOp::kSend;
    s.length = 3000;
    s.to = {side->qp->peer, side->qp->peer->jfr};
    const Wr* w = post(world, side->qp, s);
    UB_ASSERT(w != nullptr);
    return *w;
  }
  void give(const Connections::Side* side) {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.node(side->node).post_receive(side->qp->jfr, 4096, 1));
  }
  TamperRule& tamper(TamperRule r) { return world.network.tamper.add(std::move(r)); }

  Connections connections;
  Connections::Side *asks = nullptr, *was_asked = nullptr;
  size_t known = 0;
  uint32_t established = 0;
};

Matcher message(CmType type) {
  return [=](const PacketInfo& p) {
    roce::CmHead head;
    if (!p.roce || p.roce_packet.bth.dest_qp != roce::kGsiQp) return false;
    return roce::CmHead::read({p.roce_packet.payload, p.roce_packet.payload_bytes}, head) == roce::Drop::kNone &&
           head.type == type;
  };
}

TEST(RoceCm, two_meet_and_part) {
  CmStage s;
  s.meet();
  EXPECT_EQ(s.established, 2u);
  s.give(s.was_asked);
  s.give(s.asks);
  const Wr& there = s.send_from(s.asks);
  const Wr& back = s.send_from(s.was_asked);
  s.a().node->ring(s.asks->qp);
  s.b().node->ring(s.was_asked->qp);
  s.finish();
  EXPECT_EQ(there.status, CrStatus::kSuccess);
  EXPECT_EQ(back.status, CrStatus::kSuccess);
  s.part();
  s.check_memory();
}

TEST(RoceCm, whatever_is_lost__comes_again) {
  for (CmType type : {CmType::kReq, CmType::kRep, CmType::kRtu, CmType::kDreq, CmType::kDrep}) {
    SCOPED_TRACE(static_cast<int>(type));
    CmStage s;
    TamperRule& lost = s.tamper(drop(2, message(type)));
    s.meet();
    s.connections.hang_up(s.asks);
    EXPECT_TRUE(s.wait(s.asks, State::kOver));
    EXPECT_TRUE(s.wait(s.was_asked, State::kOver));
    EXPECT_EQ(lost.hits, 2u);
    s.part();
  }
}

TEST(RoceCm, whatever_is_doubled__means_nothing_more) {
  CmStage s;
  for (CmType type : {CmType::kReq, CmType::kRep, CmType::kRtu, CmType::kDreq, CmType::kDrep})
    s.tamper(duplicate(kAlways, milliseconds(3), message(type)));
  s.ask();
  s.connections.accept(s.asked());
  EXPECT_TRUE(s.wait(s.was_asked, State::kEstablished));
  s.world.run_for(milliseconds(10));
  s.connections.hang_up(s.was_asked);
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  s.part();
  EXPECT_EQ(s.connections.sides().size(), 2u);
}

TEST(RoceCm, request_that_waits_for_its_answer__is_heard_once) {
  CmStage s;
  TamperRule& again = s.tamper(watch(message(CmType::kReq)));
  s.ask();
  s.asked();
  s.world.run_for(seconds(3));
  EXPECT_GT(again.hits, 3u);
  s.connections.accept(s.was_asked);
  EXPECT_TRUE(s.wait(s.was_asked, State::kEstablished));
  EXPECT_EQ(s.connections.sides().size(), 2u);
  s.part();
}

TEST(RoceCm, refusal__says_why) {
  CmStage s;
  s.ask();
  s.connections.refuse(s.asked());
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  s.part();
}

TEST(RoceCm, lost_refusal__is_asked_for_by_asking_again) {
  CmStage s;
  s.tamper(drop(1, message(CmType::kRej)));
  s.ask();
  s.connections.refuse(s.asked());
  s.connections.refuse(s.asked());
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  s.part();
}

TEST(RoceCm, nobody_listens__is_said) {
  CmStage s;
  s.connections.part_all();
  s.ask();
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  EXPECT_FALSE(s.asks->unreachable);
  s.part();
}

TEST(RoceCm, silence__ends_it_after_all_tries) {
  CmStage s;
  TamperRule& asked = s.tamper(drop(kAlways, message(CmType::kReq)));
  s.ask();
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  EXPECT_TRUE(s.asks->unreachable);
  EXPECT_EQ(asked.hits, 15u);
  s.part();
}

TEST(RoceCm, silence_behind_the_answer__ends_both) {
  CmStage s;
  s.tamper(drop(kAlways, message(CmType::kRtu)));
  s.ask();
  s.connections.accept(s.asked());
  EXPECT_TRUE(s.wait(s.was_asked, State::kOver));
  EXPECT_TRUE(s.was_asked->unreachable);
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  s.part();
}

TEST(RoceCm, data__says_what_a_lost_message_would_have) {
  CmStage s;
  s.tamper(drop(kAlways, message(CmType::kRtu)));
  s.ask();
  s.connections.accept(s.asked());
  EXPECT_TRUE(s.wait(s.asks, State::kEstablished));
  s.give(s.was_asked);
  const Wr& w = s.send_from(s.asks);
  s.a().node->ring(s.asks->qp);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kSuccess);
  EXPECT_EQ(s.was_asked->state, State::kEstablished);
  s.part();
}

TEST(RoceCm, whoever_asked_gives_up__and_the_answer_finds_nobody) {
  CmStage s;
  s.ask();
  s.asked();
  s.connections.hang_up(s.asks);
  s.connections.accept(s.was_asked);
  EXPECT_TRUE(s.wait(s.was_asked, State::kOver));
  s.part();
}

TEST(RoceCm, both_hang_up_at_once) {
  CmStage s;
  s.meet();
  s.connections.hang_up(s.asks);
  s.connections.hang_up(s.was_asked);
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  EXPECT_TRUE(s.wait(s.was_asked, State::kOver));
  s.part();
}

TEST(RoceCm, answer_overtaken_by_the_goodbye__makes_no_connection) {
  CmStage s;
  s.tamper(delay(1, milliseconds(5), message(CmType::kRep)));
  s.ask();
  s.connections.accept(s.asked());
  s.connections.hang_up(s.was_asked);
  EXPECT_TRUE(s.wait(s.was_asked, State::kOver));
  EXPECT_TRUE(s.wait(s.asks, State::kOver, seconds(1)));
  s.part();
}

TEST(RoceCm, application_dies_while_it_is_asked) {
  CmStage s;
  s.ask();
  s.asked();
  s.b().node->kill_app(*s.b().app);
  s.b().node->bury_app(*s.b().app);
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  s.part();
}

TEST(RoceCm, peer_starts_anew__and_the_goodbye_still_ends_it) {
  CmStage s;
  s.meet();
  s.b().node->crash();
  s.b().node->boot();
  s.connections.hang_up(s.asks);
  EXPECT_TRUE(s.wait(s.asks, State::kOver, seconds(1)));
  s.part();
}

TEST(RoceCm, full_table__refuses) {
  Options o = cm_options();
  o.work.cm_table = 1;
  CmStage s(o);
  s.ask();
  Connections::Side* first = s.asks;
  s.asked();
  EXPECT_EQ(s.connections.ask(*s.a().node, *s.a().app, 1), nullptr);
  s.connections.hang_up(first);
  s.ask();
  EXPECT_TRUE(s.wait(s.asks, State::kOver));
  EXPECT_FALSE(s.asks->unreachable);
  s.connections.accept(s.was_asked);
  EXPECT_TRUE(s.wait(s.was_asked, State::kOver));
  s.part();
}

}  // namespace
}  // namespace ub::sim
