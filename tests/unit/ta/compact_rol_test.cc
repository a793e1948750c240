// SPDX-License-Identifier: Apache-2.0
//
// ROL by the compact transport (UB Base Specification Rev 2.0, 6.2.1, 7.3.3): queues of RC whose order the wire keeps,
// and requests that want no answer (No_TAACK).
#include "tests/unit/ta/compact_pair.h"

namespace ub {
namespace {

constexpr uint8_t kStrong = 2;
constexpr std::byte kNoTaack{0x80};  // in the fifth byte of BTAH

class CompactRol : public CompactPair {
 protected:
  static UbOptions rol() {
    UbOptions o = options();
    o.rol = o.core.rol = true;
    return o;
  }
  explicit CompactRol(const UbOptions& o = rol()) : CompactPair(o) {}
  void give_receives(uint32_t number, uint32_t bytes = 64) {
    for (uint32_t i = 0; i < number; ++i) {
      b.post_receive(b.receive_indices[0], b.receives[0], 4096 * given_++, bytes);
    }
    b.core->on_posted(now, b.jetty);
  }
  // What a sends arrives, changed by `change` and sealed again.
  void deliver_changed(const std::function<void(Bytes&)>& change) {
    drain(a);
    for (Bytes& frame : a.host.frames) {
      change(frame);
      seal(frame);
    }
    deliver(a, b);
  }
  void expect_success(size_t completions) {
    const std::vector<Cqe> done = a.poll();
    EXPECT_EQ(done.size(), completions);
    for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kSuccess);
  }

 private:
  uint32_t given_ = 0;
};

void without_taack(TestHost::Bytes& frame) { frame[wire::kEthSize + 4 + 10 + 1 + 4] |= kNoTaack; }

// ---- order -----------------------------------------------------------------------------------------------------

TEST_F(CompactRol, has_a_channel_of_its_own_and_each_request_is_answered) {
  EXPECT_EQ(channel(a).lane, kOrderedCompactLane);
  EXPECT_EQ(channel(b).lane, kOrderedCompactLane);
  EXPECT_FALSE(channel(a).rol) << "it has no acknowledgements that could answer";
  request(WrOp::kWrite, 5);
  const std::vector<SeenCompact> out = compact_from(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_FALSE(out[0].ta.req.no_taack);
  deliver(a, b);
  const std::vector<SeenCompact> back = compact_from(b);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].ta.opcode(), wire::TaOpcode::kTaack);
  exchange();
  expect_success(1);
  EXPECT_TRUE(arrived(5));
  expect_at_rest();
}

TEST_F(CompactRol, a_strong_request_follows_writes_and_atomics_at_once) {
  request(WrOp::kWrite, 3 * kMtu).place_order = 1;
  request(WrOp::kFetchAdd, 8).place_order = kStrong;
  request(WrOp::kWrite, 8).place_order = kStrong;
  EXPECT_EQ(compact_from(a).size(), 5u);
  exchange();
  expect_success(3);
  expect_at_rest();
}

// Its bytes are read when the response leaves.
TEST_F(CompactRol, a_strong_request_waits_for_reads_before_it) {
  request(WrOp::kRead, 8).place_order = 1;
  request(WrOp::kWrite, 8).place_order = kStrong;
  EXPECT_EQ(compact_from(a).size(), 1u);
  exchange();
  expect_success(2);
  expect_at_rest();
}

TEST_F(CompactRol, messages_behind_a_refused_one_are_refused_until_it_comes_again) {
  for (uint32_t i = 1; i <= 3; ++i) request(WrOp::kSend, i);
  drain(a);
  deliver(a, b);
  ASSERT_EQ(compact_from(b).size(), 3u);
  give_receives(3);
  settle(milliseconds(100));
  expect_success(3);
  const std::vector<Cqe> got = b.poll();
  ASSERT_EQ(got.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].length, i + 1);
  EXPECT_EQ(rtp_data(a), 0u);
  expect_at_rest();
}

// Two channels have no order between them.
TEST_F(CompactRol, the_first_long_request_waits_for_those_before_it_and_rtp_carries_all_behind_it) {
  request(WrOp::kWrite, 8);
  request(WrOp::kRead, 2 * kMtu);
  request(WrOp::kWrite, 8);
  EXPECT_EQ(compact_from(a).size(), 1u);
  settle(seconds(1));
  expect_success(3);
  request(WrOp::kWrite, 8);
  settle(seconds(1));
  expect_success(1);
  EXPECT_EQ(count(a, Counter::kCtpTx), 1u);
  EXPECT_EQ(rtp_data(a), 3u);
}

class CompactRolRefused : public CompactRol {
 protected:
  static UbOptions not_at_b() {
    UbOptions o = rol();
    o.rol_at_b = false;
    return o;
  }
  explicit CompactRolRefused(const UbOptions& o = not_at_b()) : CompactRol(o) {}
  void SetUp() override {
    to_b = a.import(now, b);
    ASSERT_EQ(a.core->bind(now, a.jetty, to_b), Status::kOk);
    settle(seconds(1));
  }
  void expect_all_by_rtp() {
    request(WrOp::kWrite, 8).place_order = kStrong;
    settle(seconds(1));
    expect_success(1);
    EXPECT_EQ(count(a, Counter::kCtpTx), 0u);
    EXPECT_EQ(rtp_data(a), 1u);
  }
};
TEST_F(CompactRolRefused, a_peer_without_rol_gets_all_by_rtp_and_keeps_ctp_for_others) {
  expect_all_by_rtp();
  const Peer& peer = state(a).peers[1];
  EXPECT_TRUE(peer.refuses_compact_rol);
  EXPECT_FALSE(peer.compact_rol || peer.refuses_compact);
  EXPECT_EQ(peer.compact_mtu, kMtu);
}

class CompactRolLossy : public CompactRolRefused {
 protected:
  static UbOptions lossy() {
    UbOptions o = rol();
    o.link.lossless = false;
    return o;
  }
  CompactRolLossy() : CompactRolRefused(lossy()) {}
};
TEST_F(CompactRolLossy, a_wire_that_may_change_the_order_of_packets_carries_rol_by_rtp_alone) { expect_all_by_rtp(); }

// ---- the target of a request that wants no answer ---------------------------------------------------------------

TEST_F(CompactRol, the_success_of_a_request_that_wants_no_answer_has_none) {
  give_receives(1);
  request(WrOp::kWrite, 8);
  request(WrOp::kSend, 8);
  deliver_changed(without_taack);
  EXPECT_FALSE(drain(b));
  EXPECT_EQ(count(b, Counter::kCtpRxSilent), 2u);
  EXPECT_TRUE(arrived(8));
  EXPECT_EQ(only_status(b), CrStatus::kSuccess);
}

// No TAACK could say what they found.
TEST_F(CompactRol, reads_and_atomics_are_answered_whatever_they_want) {
  request(WrOp::kRead, 8);
  request(WrOp::kFetchAdd, 8);
  deliver_changed(without_taack);
  EXPECT_EQ(compact_from(b).size(), 2u);
  EXPECT_EQ(count(b, Counter::kCtpRxSilent), 0u);
  exchange();
  expect_success(2);
}

TEST_F(CompactRol, a_failure_is_answered_although_no_answer_was_wanted) {
  request(WrOp::kWrite, 8).token_value ^= 1;
  request(WrOp::kSend, 8);
  deliver_changed(without_taack);
  const std::vector<SeenCompact> back = compact_from(b);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].ta.rsp.rspst, wire::kRspError);
  EXPECT_EQ(back[0].ta.rsp.rspinfo, wire::kErrRemoteAbort);
  EXPECT_EQ(back[1].ta.rsp.rspst, wire::kRspRnr);
  EXPECT_EQ(count(b, Counter::kCtpRxSilent), 0u);
}

TEST_F(CompactRol, what_cannot_be_understood_is_answered_although_no_answer_was_wanted) {
  request(WrOp::kWrite, 8);
  deliver_changed([](Bytes& frame) {
    without_taack(frame);
    frame[kBtah] = std::byte{0x2F};
  });
  const std::vector<SeenCompact> back = compact_from(b);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].ta.rsp.rspst, wire::kRspError);
}

// An answer that waits takes no other with it.
TEST_F(CompactRol, a_request_that_wants_no_answer_does_not_join_the_answer_to_those_around_it) {
  for (int i = 0; i < 3; ++i) request(WrOp::kWrite, 8);
  uint32_t n = 0;
  deliver_changed([&n](Bytes& frame) {
    if (n++ == 1) without_taack(frame);
  });
  const std::vector<SeenCompact> back = compact_from(b);
  ASSERT_EQ(back.size(), 2u);
  for (const SeenCompact& p : back) EXPECT_EQ(p.ta.rsp.rspinfo, 0);
  EXPECT_EQ(back[1].ta.rsp.tassn, back[0].ta.rsp.tassn + 2);
}

// They need no place for an answer.
TEST_F(CompactRol, no_number_of_them_is_too_many) {
  b.host.full = true;
  for (uint32_t i = 0; i < 3 * state(b).config.window_packets; i += 8) {
    request(WrOp::kWrite, 8 * kMtu);
    deliver_changed(without_taack);
    ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kReset), Status::kOk);
    ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kReady), Status::kOk);
    a.poll();
  }
  EXPECT_TRUE(channel(b).is_up());
  EXPECT_GE(count(b, Counter::kCtpRxSilent), 3 * state(b).config.window_packets);
}

class CompactRoi : public CompactPair {};
TEST_F(CompactRoi, the_bit_means_nothing_outside_of_rol) {
  request(WrOp::kWrite, 8);
  drain(a);
  Bytes& frame = a.host.frames.back();
  without_taack(frame);
  seal(frame);
  deliver(a, b);
  EXPECT_EQ(compact_from(b).size(), 1u);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(b, Counter::kCtpRxSilent), 0u);
}

}  // namespace
}  // namespace ub
