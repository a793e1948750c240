// SPDX-License-Identifier: Apache-2.0
//
// ROL by the compact transport (UB Base Specification Rev 2.0, 6.2.1, 7.3.3): queues of RC whose order the wire keeps,
// and requests that want no answer (No_TAACK).
#include "lib/transport/ta/silent_requests.h"
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
  drain(a);  // and the REQ for a channel of RTP
  EXPECT_EQ(count(a, Counter::kCtpTx), 1u);
  EXPECT_EQ(rtp_data(a), 0u);
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

// ---- the initiator of requests that want no answer --------------------------------------------------------------

class CompactSilent : public CompactRol {
 protected:
  static UbOptions silent() {
    UbOptions o = rol();
    o.core.compact_answers = false;
    return o;
  }
  explicit CompactSilent(const UbOptions& o = silent()) : CompactRol(o) {}
  Wqe& unsignaled(WrOp op = WrOp::kWrite, uint32_t length = 8) {
    Wqe& w = request(op, length);
    w.flags &= static_cast<uint8_t>(~kWrSignaled);
    return w;
  }
  // For each packet that a sends: does it want an answer?
  std::vector<bool> wanted() {
    std::vector<bool> all;
    for (const SeenCompact& p : compact_from(a)) all.push_back(!p.ta.req.no_taack);
    deliver(a, b);
    return all;
  }
  uint32_t under_way() const { return state(a).peers[1].lanes[kOrderedCompactLane].unanswered; }
  void expect_all_ended() {
    EXPECT_EQ(under_way(), 0u);
    EXPECT_EQ(a.sends.indices.consumed.load(), a.sends.indices.produced.load());
    EXPECT_EQ(count(a, Counter::kTaRxStaleAnswer), 0u);
    expect_at_rest();
  }
};

using Wanted = std::vector<bool>;

TEST_F(CompactSilent, short_writes_without_a_completion_want_no_answer_and_that_to_a_later_request_ends_them) {
  unsignaled();
  EXPECT_EQ(wanted(), Wanted{false});
  unsignaled(WrOp::kWrite, 0);
  EXPECT_EQ(wanted(), Wanted{false});
  exchange();
  EXPECT_EQ(under_way(), 2u) << "they are requests like all others until they end";
  request(WrOp::kWrite, 8);
  EXPECT_EQ(wanted(), Wanted{true});
  exchange();
  expect_success(1);
  EXPECT_EQ(count(b, Counter::kCtpTx), 1u);
  EXPECT_EQ(count(a, Counter::kCtpTxSilent), 2u);
  EXPECT_EQ(count(b, Counter::kCtpRxSilent), 2u);
  expect_all_ended();
}

TEST_F(CompactSilent, others_want_an_answer) {
  give_receives(3);
  for (const WrOp op : {WrOp::kRead, WrOp::kFetchAdd, WrOp::kSend, WrOp::kWriteImm}) {
    unsignaled(op);
    EXPECT_EQ(wanted(), Wanted{true}) << static_cast<int>(op);
    exchange();
  }
  unsignaled(WrOp::kWrite, 2 * kMtu);
  EXPECT_EQ(wanted(), (Wanted{true, true})) << "one answer does for all packets";
  exchange();
  expect_all_ended();
}

TEST_F(CompactSilent, each_answer_ends_them_whatever_it_says) {
  for (const WrOp op : {WrOp::kRead, WrOp::kFetchAdd, WrOp::kSend}) {
    unsignaled();
    unsignaled(op);
    exchange();
    EXPECT_EQ(under_way(), 0u) << static_cast<int>(op) << ", a refused request is not under way";
  }
  give_receives(1);
  settle(milliseconds(100));
  unsignaled();
  unsignaled(WrOp::kRead).token_value ^= 1;
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kRemAccessAbort);
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 0u);
  expect_all_ended();
}

TEST_F(CompactSilent, every_sixteenth_in_a_row_wants_one) {
  for (uint32_t i = 0; i < 2 * (ta::kMostSilent + 1); ++i) {
    unsignaled();
    EXPECT_EQ(wanted(), Wanted{i % (ta::kMostSilent + 1) == ta::kMostSilent}) << i;
  }
  exchange();
  EXPECT_EQ(count(b, Counter::kCtpTx), 2u);
  expect_all_ended();
}

TEST_F(CompactSilent, a_ring_that_is_half_full_wants_answers) {
  filter = [&](UbNode& from, Bytes&) { return &from == &a; };
  uint32_t silent = 0;
  for (uint32_t i = 0; i < UbNode::kDepth; ++i) unsignaled();
  for (const bool answer : wanted()) silent += !answer;
  EXPECT_EQ(silent, UbNode::kDepth / 2 - 2) << "and two of the first half";
}

// Nothing follows: the initiator asks.
TEST_F(CompactSilent, the_last_ones_are_asked_about) {
  for (int i = 0; i < 3; ++i) unsignaled();
  exchange();
  EXPECT_EQ(under_way(), 3u);
  const Instant sent = now;
  while (count(a, Counter::kCtpTxQuestion) == 0 && now - sent < seconds(1)) {
    wake(a);
    drain(a);
  }
  EXPECT_EQ(now - sent, ta::kAskAfter);
  const std::vector<SeenCompact> out = compact_from(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].ta.opcode(), wire::TaOpcode::kWrite);
  EXPECT_EQ(out[0].ta.ma.length, 0u);
  EXPECT_EQ(out[0].ta.payload_len, 0u);
  EXPECT_EQ(out[0].ta.req.tassn, Tassn(2));
  EXPECT_FALSE(out[0].ta.req.no_taack);
  exchange();
  expect_all_ended();
  settle(milliseconds(100));
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 1u);
}

TEST_F(CompactSilent, nobody_asks_where_an_answer_is_under_way) {
  unsignaled();
  request(WrOp::kWrite, 8);
  b.host.full = true;
  exchange();
  for (const Instant begin = now; now - begin < seconds(1);) wake(a);
  drain(a);
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 0u);
  b.host.full = false;
  exchange();
  expect_all_ended();
}

TEST_F(CompactSilent, the_answer_to_an_older_request_ends_none_that_left_later) {
  request(WrOp::kRead, 8);
  unsignaled();
  EXPECT_EQ(wanted(), (Wanted{true, false}));
  exchange();
  expect_success(1);
  EXPECT_EQ(under_way(), 1u);
  settle(milliseconds(100));
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 1u);
  expect_all_ended();
}

// It leaves behind a request that was posted later, the answer to which says nothing about it.
TEST_F(CompactSilent, a_request_that_was_overtaken_wants_an_answer) {
  request(WrOp::kRead, 8).place_order = 1;
  unsignaled().place_order = kStrong;  // waits for the READ
  unsignaled();
  EXPECT_EQ(wanted(), (Wanted{true, false}));
  drain(b);
  deliver(b, a);
  EXPECT_EQ(wanted(), Wanted{true});
  settle(milliseconds(100));
  expect_success(1);
  expect_all_ended();
}

// ---- failures --------------------------------------------------------------------------------------------------

TEST_F(CompactSilent, one_that_fails_completes_with_its_error_and_those_around_it_do_not) {
  unsignaled();
  unsignaled().token_value ^= 1;
  unsignaled();
  EXPECT_EQ(wanted(), (Wanted{false, false, false}));
  exchange();
  EXPECT_EQ(under_way(), 1u) << "the error was said at once, and told of the first one, too";
  settle(milliseconds(100));
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kRemAccessAbort);
  EXPECT_EQ(done[0].user_ctx, 2u);
  expect_all_ended();
}

// The error waits in a full port while the initiator asks.
TEST_F(CompactSilent, a_question_does_not_turn_a_failure_into_a_success) {
  unsignaled().token_value ^= 1;
  drain(a);
  b.host.full = true;
  deliver(a, b);
  for (const Instant begin = now; now - begin < milliseconds(10);) wake(a);
  drain(a);
  deliver(a, b);
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 1u);
  b.host.full = false;
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kRemAccessAbort);
  EXPECT_EQ(count(a, Counter::kTaRxStaleAnswer), 1u) << "the answer to the question";
}

TEST_F(CompactSilent, a_dead_peer_fails_them_all) {
  filter = [](UbNode&, Bytes&) { return false; };
  for (int i = 0; i < 3; ++i) unsignaled();
  for (const Instant begin = now; channel(a).is_up() && now - begin < seconds(6);) {
    wake(a);
    exchange();
  }
  EXPECT_FALSE(channel(a).is_up());
  const std::vector<Cqe> done = a.poll();
  EXPECT_EQ(done.size(), 3u);
  for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kAckTimeout);
  EXPECT_EQ(state(a).answers.in_use(), 0u);
}

// A message to it is dropped without an answer, and the WRITE before it must not time out with it.
TEST_F(CompactSilent, a_message_to_a_receiver_that_is_not_ready_answers_for_nobody) {
  ASSERT_EQ(b.core->set_state(now, b.jetty, QueueState::kReset), Status::kOk);
  uint64_t messages = 0;
  for (const WrOp op : {WrOp::kSend, WrOp::kSendImm, WrOp::kSendInvalidate, WrOp::kWriteImm}) {
    SCOPED_TRACE(static_cast<int>(op));
    unsignaled();
    request(op, 8);
    ++messages;
    settle(milliseconds(100));
    EXPECT_EQ(count(b, Counter::kRxTargetNotReady), messages);
    EXPECT_EQ(count(a, Counter::kCtpTxQuestion), messages);
    EXPECT_EQ(under_way(), 1u) << "the message";
    settle(seconds(10));
    EXPECT_EQ(only_status(a), CrStatus::kAckTimeout);
    EXPECT_TRUE(channel(a).is_up());
  }
}

// What vanished before it left asked for no answer on behalf of others.
TEST_F(CompactSilent, a_request_that_never_left_answers_for_nobody) {
  unsignaled();
  EXPECT_EQ(wanted(), Wanted{false});
  request(WrOp::kWrite, 8);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  EXPECT_FALSE(drain(a));
  settle(milliseconds(100));
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 1u);
  EXPECT_EQ(only_status(a), CrStatus::kLocAccess);
  expect_all_ended();
}

TEST_F(CompactSilent, a_question_about_requests_that_were_flushed_is_not_asked) {
  unsignaled();
  exchange();
  a.host.full = true;
  wake(a);
  drain(a);
  EXPECT_EQ(channel(a).answers.size(), 1u) << "it waits for room in the port";
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  a.host.full = false;
  EXPECT_FALSE(drain(a));
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 0u);
  expect_at_rest();
}

TEST_F(CompactSilent, a_question_that_finds_no_room_is_asked_later) {
  unsignaled();
  exchange();
  tp::MessagePool& pool = const_cast<CoreState&>(state(a)).answers;
  std::vector<uint32_t> taken;
  for (uint32_t chunk; (chunk = pool.alloc()) != 0;) taken.push_back(chunk);
  wake(a);
  exchange();
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 0u);
  for (const uint32_t chunk : taken) pool.free(chunk);
  settle(milliseconds(10));
  EXPECT_EQ(count(a, Counter::kCtpTxQuestion), 1u);
  expect_all_ended();
}

// It refuses a WRITE, which ours does not: the page is not there yet. The second try wants an answer of its own.
TEST_F(CompactSilent, one_that_is_refused_comes_again_and_wants_an_answer) {
  unsignaled().token_value ^= 1;
  unsignaled();
  drain(a);
  deliver(a, b);
  drain(b);
  ASSERT_EQ(b.host.frames.size(), 1u);
  b.host.frames[0][kBtah + 4] = std::byte{wire::kRspPageFault << 5};
  seal(b.host.frames[0]);
  deliver(b, a);
  const std::vector<SeenCompact> out = compact_from(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].ta.req.retry);
  EXPECT_FALSE(out[0].ta.req.no_taack);
  settle(milliseconds(100));
  EXPECT_EQ(only_status(a), CrStatus::kRemAccessAbort);
  expect_all_ended();
}

TEST_F(CompactSilent, several_packets_of_a_stream_have_fewer_answers) {
  for (int i = 0; i < 48; ++i) {
    unsignaled();
    exchange();
  }
  EXPECT_EQ(count(a, Counter::kCtpTx), 48u);
  EXPECT_EQ(count(b, Counter::kCtpTx), 3u);
  expect_all_ended();
}

TEST_F(CompactRol, with_answers_on_every_request_wants_one) {
  Wqe& w = request(WrOp::kWrite, 8);
  w.flags &= static_cast<uint8_t>(~kWrSignaled);
  EXPECT_FALSE(compact_from(a)[0].ta.req.no_taack);
  exchange();
  EXPECT_EQ(count(b, Counter::kCtpTx), 1u);
}

// ROI: the target may execute requests in another order.
class CompactRoiSilent : public CompactPair {
 protected:
  static UbOptions silent() {
    UbOptions o = options();
    o.core.compact_answers = false;
    return o;
  }
  CompactRoiSilent() : CompactPair(silent()) {}
};
TEST_F(CompactRoiSilent, every_request_outside_of_rol_wants_an_answer) {
  Wqe& w = request(WrOp::kWrite, 8);
  w.flags &= static_cast<uint8_t>(~kWrSignaled);
  EXPECT_FALSE(compact_from(a)[0].ta.req.no_taack);
  exchange();
  EXPECT_EQ(count(b, Counter::kCtpTx), 1u);
}

}  // namespace
}  // namespace ub
