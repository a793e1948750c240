// SPDX-License-Identifier: Apache-2.0
//
// Who receives a message of a peer: tokens, states, jettys that are bound, and those that keep the order of receives
// (UB Base Specification Rev 2.0, 7.3).
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

// ---- who receives ----------------------------------------------------------------------------------------------

TEST(Receiver, who_is_not_ready_says_nothing) {
  const auto silent = [](void (*change)(Delivery&)) {
    Delivery d;
    d.post_receive(64);
    change(d);
    d.give(d.send(), 5);
    EXPECT_EQ(d.ch().expected, Psn(1));
    return d.answers().empty() && d.count(Counter::kRxTargetNotReady) == 1;
  };
  EXPECT_FALSE(silent([](Delivery&) {}));
  EXPECT_TRUE(silent([](Delivery& d) { d.the_jfr().state = QueueState::kReset; }));
  EXPECT_TRUE(silent([](Delivery& d) { d.the_jfr().state = QueueState::kError; }));
  EXPECT_TRUE(silent([](Delivery& d) { d.q().state = QueueState::kReset; }));
  EXPECT_TRUE(silent([](Delivery& d) { d.q().state = QueueState::kError; }));
}

TEST(Receiver, a_token_is_checked_where_one_is_asked_for) {
  Delivery d;
  for (int i = 0; i < 4; ++i) d.post_receive(64);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kFine) << "none is asked for";
  d.the_jfr().token = Token{true, 0x77};
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kAborted);
  wire::TaPacket p = d.send();
  p.token_value = 0x77;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kFine);
  p.tv = false;
  EXPECT_FALSE(token_fits(d.the_jfr().token, p)) << "it is not there";
  wire::TaPacket write = d.of(TaOpcode::kWriteImmediate);
  write.imm = {0, 0x77, 0};
  write.token_value = 0;
  EXPECT_TRUE(token_fits(d.the_jfr().token, write)) << "that of a WRITE with immediate lies beside it";
  write.imm.token_value = 0x78;
  EXPECT_FALSE(token_fits(d.the_jfr().token, write));
}

// 9.4, 11.4
TEST(Receiver, two_tokens_are_valid_while_one_takes_the_place_of_the_other) {
  Delivery d;
  for (int i = 0; i < 4; ++i) d.post_receive(64);
  d.the_jfr().token = Token{true, 0x77};
  const auto verdict = [&](uint32_t value) {
    wire::TaPacket p = d.send();
    p.token_value = value;
    d.give(p, 5);
    return d.verdict();
  };
  ASSERT_EQ(set_queue_token(*d.s, d.the_jfr().id, 0x88, 0x77), Status::kOk);
  EXPECT_EQ(verdict(0x77), kFine);
  EXPECT_EQ(verdict(0x88), kFine);
  EXPECT_EQ(verdict(0x99), kAborted);
  wire::TaPacket write = d.of(TaOpcode::kWriteImmediate);
  write.imm = {0, 0x88, 0};
  EXPECT_TRUE(token_fits(d.the_jfr().token, write));
  write.imm.token_value = 0x77;
  EXPECT_TRUE(token_fits(d.the_jfr().token, write));
  ASSERT_EQ(set_queue_token(*d.s, d.the_jfr().id, 0x88, 0x88), Status::kOk);
  EXPECT_EQ(verdict(0x77), kAborted);
  EXPECT_EQ(verdict(0x88), kFine);
  EXPECT_FALSE(token_fits(d.the_jfr().token, write));
}

TEST(Receiver, an_id_that_receives_nothing_is_an_error) {
  Delivery d;
  wire::TaPacket p = d.send();
  p.mt.tc_id = d.id + 1;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kAborted);
  p = d.send();
  p.mt.tc_type = wire::kTcTypeGroup;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kAborted) << "no group";
}

// RC: a jetty that is bound hears its own peer alone.
TEST(Receiver, a_bound_jetty_hears_nobody_else) {
  const auto verdict = [](void (*change)(Delivery&, Target&), Mode mode = Mode::kRc) {
    Delivery d({.mode = mode});
    d.post_receive(64);
    Target& t = d.s->targets[d.target];
    t.id = kPeerRcid;
    d.jetty(d.id).bound_target = d.target;
    change(d, t);
    d.give(d.send(), 5);
    return d.verdict();
  };
  EXPECT_EQ(verdict([](Delivery&, Target&) {}), kFine);
  EXPECT_EQ(verdict([](Delivery&, Target& t) { t.id = kPeerRcid + 1; }), kNotSupported);
  EXPECT_EQ(verdict([](Delivery&, Target& t) { t.instance.eid.bytes[0] = 9; }), kNotSupported);
  EXPECT_EQ(verdict([](Delivery&, Target& t) { t.instance.uasid = 9; }), kNotSupported);
  EXPECT_EQ(verdict([](Delivery&, Target& t) { t.instance.uasid = 0; }), kFine) << "any of that EID";
  EXPECT_EQ(verdict([](Delivery& d, Target& t) { t.id = 1, d.jetty(d.id).bound_target = 0; }), kFine) << "not bound";
  EXPECT_EQ(verdict([](Delivery&, Target& t) { t.id = 1; }, Mode::kRm), kFine) << "RM binds nobody";
}

// 7.3.1.1: receives are taken in the order of their requests.
TEST(Receiver, an_ordered_jetty_that_refused_refuses_until_the_retry_comes) {
  Delivery d({.mode = Mode::kRc});
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict().first, wire::kRspRnr);
  d.post_receive(64);
  d.post_receive(64, 64);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict().first, wire::kRspRnr) << "it may not overtake";
  wire::TaPacket p = d.send();
  p.req.rc_id = kPeerRcid + 1;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kFine) << "another queue";
  p = d.send();
  p.req.retry = true;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kFine);
  d.post_receive(64);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kFine) << "from then on as ever";
}

TEST(Receiver, an_ordered_jetty_that_got_the_retry_refuses_nobody) {
  Delivery d({.mode = Mode::kRc});
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict().first, wire::kRspRnr);
  for (uint32_t i = 0; i < 3; ++i) d.post_receive(64, 64 * i);
  wire::TaPacket p = d.send();
  p.req.retry = true;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kFine);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kFine);
  p = d.send();
  p.req.rc_id = 1;
  d.give(p, 5);
  EXPECT_EQ(d.verdict(), kFine) << "any RCID";
}

TEST(Receiver, a_refusal_holds_for_the_channel_that_it_was_told_on) {
  Delivery d({.mode = Mode::kRc});
  d.give(d.send(), 5);
  d.answers();
  d.jetty(d.id).refused_channel ^= 1u << tp::kTpnIndexBits;
  d.post_receive(64);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(Receiver, an_unordered_jetty_takes_what_comes_next) {
  Delivery d;
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict().first, wire::kRspRnr);
  d.post_receive(64);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kFine);
}

}  // namespace
}  // namespace ub::ta
