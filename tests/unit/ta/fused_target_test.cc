// SPDX-License-Identifier: Apache-2.0
//
// ROL at the target (UB Base Specification Rev 2.0, 6.8.2, 7.3.3): WRITEs and SENDs have no TAACK, acknowledgements
// stop short of what has not executed and freeze at a failure, and a strong request is never placed before its time.
#include "lib/transport/tp/fused_ack.h"
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

struct Target : Delivery {
  explicit Target(bool slow = false, bool rol = true)
      : Delivery({.mode = Mode::kRc, .pinned = true, .slow_memory = slow, .rol = rol}) {
    host.slow = slow;
  }
  tp::FusedAck ack() { return tp::make_fused_ack(*s, ch()); }
  /// The highest PSN that is acknowledged; 0xFFFFFF: none.
  uint32_t acknowledged() { return ack().content.cumulative.value(); }
  std::pair<int, int> status() {
    const tp::FusedAck a = ack();
    return {a.status.rspst, a.status.rspinfo};
  }
  uint32_t failed_message() { return ack().status.message.value(); }
  /// The peer confirms the failure that is reported; such a packet is a fake.
  void confirm(bool fake = true) {
    const tp::FusedAck a = ack();
    wire::RtpHeader rtp;
    rtp.last = true;
    rtp.fake = fake;
    rtp.psn = a.content.cumulative;
    rtp.tpmsn = a.status.message;
    rtp.rspst = a.status.rspst;
    rtp.rspinfo = a.status.rspinfo;
    receiver.on_data(channel, rtp, {});
  }
  wire::TaPacket strong_write(uint32_t length, uint64_t offset = 0) const {
    wire::TaPacket p = on_memory(wire::TaOpcode::kWrite, length, offset);
    p.req.odr = wire::kOdrStrong;
    return p;
  }
  wire::TaPacket write(uint32_t length, uint64_t offset = 0) const {
    return on_memory(wire::TaOpcode::kWrite, length, offset);
  }
  wire::TaPacket malformed() const {
    wire::TaPacket p = write(8);
    p.req.opcode = static_cast<wire::TaOpcode>(0x3E);
    return p;
  }
  wire::TaPacket wrong_write() const {
    wire::TaPacket p = write(8);
    p.token_value ^= 1;
    return p;
  }
};

const std::pair<int, int> kFusedFine{wire::kRspFused, wire::kFusedOk};

TEST(FusedTarget, a_write_and_a_send_have_no_other_answer) {
  Target t;
  t.post_receive(64);
  t.give(t.write(64), 64);
  EXPECT_TRUE(t.ch().ack_wanted) << "somebody waits for it";
  t.give(t.send(), 64);
  EXPECT_TRUE(t.answers().empty());
  EXPECT_EQ(t.acknowledged(), 1u);
  EXPECT_EQ(t.status(), kFusedFine);
  EXPECT_EQ(t.receive_completions().size(), 1u);
}

TEST(FusedTarget, reads_and_atomics_are_answered_as_ever) {
  Target t;
  t.give(t.on_memory(wire::TaOpcode::kRead, 64), 0);
  t.give(t.on_memory(wire::TaOpcode::kAtomicFetchAdd, 8), 16);
  wire::TaPacket wrong = t.on_memory(wire::TaOpcode::kRead, 64);
  wrong.token_value ^= 1;
  t.give(wrong, 0);
  EXPECT_EQ(t.answers().size(), 3u);
  EXPECT_EQ(t.acknowledged(), 2u);
  EXPECT_EQ(t.status(), kFusedFine);
}

TEST(FusedTarget, a_failure_freezes_until_it_is_confirmed) {
  Target t;
  t.give(t.write(8), 8);
  t.give(t.wrong_write(), 8);
  t.give(t.write(8, 64), 8);
  EXPECT_TRUE(t.answers().empty());
  EXPECT_EQ(t.acknowledged(), 1u);
  EXPECT_EQ(t.status(), kAborted);
  EXPECT_EQ(t.failed_message(), 1u);
  EXPECT_TRUE(t.holds(8, 64)) << "execution goes on";
  t.confirm();
  EXPECT_EQ(t.acknowledged(), 2u);
  EXPECT_EQ(t.status(), kFusedFine);
}

TEST(FusedTarget, a_second_failure_waits_for_the_end_of_the_first) {
  for (const bool slow : {false, true}) {
    Target t(slow);
    t.host.slow = false;
    t.give(t.wrong_write(), 8);
    t.give(t.wrong_write(), 8);
    t.give(t.write(8, 64), 8);
    EXPECT_EQ(t.failed_message(), 0u);
    t.confirm();
    EXPECT_EQ(t.failed_message(), 1u);
    EXPECT_EQ(t.status(), kAborted);
    t.confirm();
    EXPECT_EQ(t.acknowledged(), 2u);
    EXPECT_EQ(t.status(), kFusedFine);
    EXPECT_TRUE(t.holds(8, 64));
    EXPECT_EQ(t.count(Counter::kTaTxError), 2u) << "each is counted once";
  }
}

TEST(FusedTarget, a_message_without_a_receive_is_refused_by_the_acknowledgement) {
  Target t;
  t.give(t.send(), 8);
  EXPECT_EQ(t.status().first, wire::kRspRnr);
  EXPECT_EQ(t.count(Counter::kTaTxRnr), 1u);
  t.confirm();
  t.post_receive(64);
  t.give(t.send(), 8);
  EXPECT_EQ(t.status().first, wire::kRspRnr) << "RC: those behind it are refused, too";
  t.confirm();
  wire::TaPacket again = t.send();
  again.req.retry = true;
  t.give(again, 8);
  EXPECT_EQ(t.status(), kFusedFine);
  EXPECT_EQ(t.receive_completions().size(), 1u);
}

// On other channels a receiver that is not ready for anyone gives no answer. Here silence would be success.
TEST(FusedTarget, a_receiver_that_is_not_ready_is_no_success) {
  Target t;
  t.the_jfr().state = QueueState::kError;
  t.give(t.send(), 8);
  EXPECT_EQ(t.status(), (std::pair<int, int>(wire::kRspFused, wire::kFusedFatal)));
  EXPECT_EQ(t.count(Counter::kRxTargetNotReady), 1u);
}

TEST(FusedTarget, a_malformed_message_is_no_success) {
  Target t;
  t.give(t.wrong_write(), 8);
  t.give(t.malformed(), 8);
  EXPECT_EQ(t.failed_message(), 0u);
  t.confirm();
  EXPECT_EQ(t.status(), kNotSupported);
  EXPECT_EQ(t.failed_message(), 1u);
  t.confirm();
  EXPECT_EQ(t.acknowledged(), 1u);
  EXPECT_EQ(t.status(), kFusedFine) << "it has failed once";
  EXPECT_TRUE(t.answers().empty());
}

TEST(FusedTarget, a_malformed_message_fails_with_its_last_packet) {
  Target t;
  t.give(t.malformed(), 8, false);
  EXPECT_EQ(t.status(), kFusedFine);
  t.give(t.malformed(), 8);
  EXPECT_EQ(t.status(), kNotSupported);
  EXPECT_EQ(t.acknowledged(), 1u);
}

TEST(FusedTarget, a_malformed_response_is_no_failure) {
  Target t;
  t.give(t.response(wire::TaOpcode::kTaack, 9), 4);
  EXPECT_EQ(t.count(wire::drop_counter(wire::Drop::kUnexpectedPayload)), 1u);
  EXPECT_EQ(t.status(), kFusedFine);
  EXPECT_EQ(t.acknowledged(), 0u);
}

TEST(FusedTarget, malformed_messages_of_other_channels_are_answered_one_by_one) {
  Target t(false, false);
  t.give(t.malformed(), 8);
  t.give(t.malformed(), 8);
  EXPECT_EQ(t.answers().size(), 2u);
  EXPECT_FALSE(t.ch().fused.frozen);
}

TEST(FusedTarget, a_packet_that_is_no_fake_confirms_nothing) {
  Target t;
  t.give(t.wrong_write(), 8);
  t.confirm(false);
  EXPECT_EQ(t.status(), kAborted);
  t.confirm();
  EXPECT_EQ(t.status(), kFusedFine);
}

TEST(FusedTarget, a_fake_packet_that_confirms_nothing_resumes_nothing) {
  Target t;
  t.park_nothing();
  t.s->looker.begin(t.host);
  t.give(t.wrong_write(), 8);
  t.give(t.wrong_write(), 8);
  EXPECT_EQ(t.host.noted(Stage::kMessageWaits).size(), 1u);
  t.psn = 0;
  t.give_fake(0);
  EXPECT_EQ(t.count(Counter::kTpRxDuplicate), 1u);
  EXPECT_EQ(t.host.noted(Stage::kMessageWaits).size(), 1u);
}

// What its peer sends again waits for an acknowledgement that was lost: data, a fake packet in place of data, and one
// that only asks whether we live. Only a confirmation waits for nothing.
TEST(FusedTarget, all_that_comes_twice_is_acknowledged_but_a_confirmation) {
  for (const bool rol : {false, true}) {
    Target t(false, rol);
    t.give(t.write(8), 8);
    t.give(t.write(2 * kMtu), kMtu, false);
    t.give_fake(t.tpmsn++);
    t.give_fake(t.tpmsn - 1);  // of no message
    ASSERT_EQ(t.ch().expected, Psn(4));
    const auto comes_again = [&](wire::RtpHeader rtp) {
      tp::ack_sent(t.ch());
      rtp.last = true;
      t.receiver.on_data(t.channel, rtp, {});
      return tp::is_owed(t.ch());
    };
    const Tpmsn messages[] = {Tpmsn(0), Tpmsn(1), Tpmsn(1), Tpmsn(1)};
    for (uint32_t psn = 0; psn < 4; ++psn) {
      wire::RtpHeader rtp;
      rtp.psn = Psn(psn);
      rtp.tpmsn = messages[psn];
      rtp.fake = psn >= 2;
      EXPECT_TRUE(comes_again(rtp)) << psn << ' ' << rol;
      rtp.rspst = wire::kRspError;
      const bool confirms = rol && rtp.fake;  // what was confirmed before
      EXPECT_EQ(comes_again(rtp), !confirms) << psn << ' ' << rol;
    }
    EXPECT_EQ(t.count(Counter::kTpRxDuplicate), 8u);
  }
}

TEST(FusedTarget, delivery_that_goes_on_is_acknowledged_at_once) {
  Target t;
  t.give(1, t.on_memory(wire::TaOpcode::kRead, 64), 0, true, 1);
  std::vector<uint32_t> taken;
  while (room_for_answer(*t.s, t.ch())) taken.push_back(t.s->answers.alloc());
  t.give(0, t.response(wire::TaOpcode::kTaack, 0), 0, true, 0);
  ASSERT_TRUE(t.ch().stalled);
  for (const uint32_t index : taken) t.s->answers.free(index);
  t.ch().ack_wanted = false;
  t.receiver.resume(t.channel);
  EXPECT_EQ(t.acknowledged(), 1u);
  EXPECT_TRUE(t.ch().ack_wanted);
}

TEST(FusedTarget, a_message_that_its_sender_ended_is_no_failure) {
  Target t;
  t.give(t.write(2 * kMtu), kMtu, false);
  t.give_fake(0);
  EXPECT_EQ(t.acknowledged(), 1u);
  EXPECT_EQ(t.status(), kFusedFine);
}

// ---- memory that answers later ---------------------------------------------------------------------------------

TEST(FusedTarget, is_not_acknowledged_before_memory_has_answered) {
  Target t(true);
  t.give(t.write(8), 8);
  t.give(t.write(8, 64), 8);
  EXPECT_EQ(t.acknowledged(), 0xFFFFFFu);
  t.finish_copy(1);
  EXPECT_EQ(t.acknowledged(), 0xFFFFFFu) << "the older one has not executed";
  t.ch().ack_wanted = false;
  t.finish_copy(0);
  EXPECT_EQ(t.acknowledged(), 1u);
  EXPECT_TRUE(t.ch().ack_wanted);
}

TEST(FusedTarget, earlier_packets_of_a_message_are_acknowledged_at_once) {
  Target t(true);
  t.give(t.write(2 * kMtu), kMtu, false);
  EXPECT_EQ(t.acknowledged(), 0u);
  t.give(t.write(2 * kMtu, kMtu), kMtu, true);
  EXPECT_EQ(t.acknowledged(), 0u);
  t.finish_copies();
  t.finish_copies();
  EXPECT_EQ(t.acknowledged(), 1u);
}

TEST(FusedTarget, what_its_sender_ended_is_acknowledged_before_memory_has_answered) {
  Target t(true);
  t.give(t.write(2 * kMtu), kMtu, false);
  t.give_fake(t.tpmsn++);
  t.give(t.write(8, 4 * kMtu), 8);
  EXPECT_EQ(t.acknowledged(), 1u) << "nobody executes it; the next one has not executed";
  EXPECT_EQ(t.ack().status.message, Tpmsn(0));
  t.finish_copies();
  EXPECT_EQ(t.acknowledged(), 2u);
  EXPECT_EQ(t.ack().status.message, Tpmsn(1));
}

TEST(FusedTarget, a_malformed_message_fails_behind_those_that_wait_for_memory) {
  Target t(true);
  t.give(t.write(8), 8);
  t.give(t.malformed(), 8);
  EXPECT_FALSE(t.ch().fused.frozen);
  EXPECT_EQ(t.acknowledged(), 0xFFFFFFu);
  t.finish_copies();
  EXPECT_EQ(t.status(), kNotSupported);
  EXPECT_EQ(t.failed_message(), 1u);
}

TEST(FusedTarget, a_write_waits_at_its_first_packet_only_if_it_is_strong_and_the_channel_is_one_of_rol) {
  for (const bool rol : {false, true}) {
    Target t(true, rol);
    t.give(t.write(8), 8);
    t.give(rol ? t.write(2 * kMtu, kMtu) : t.strong_write(2 * kMtu, kMtu), kMtu, false);
    EXPECT_EQ(t.host.pending_copies(), 2u);
  }
}

TEST(FusedTarget, a_strong_write_waits_at_its_first_packet) {
  Target t(true);
  t.give(t.write(8), 8);
  t.give(t.strong_write(2 * kMtu, kMtu), kMtu, false);
  EXPECT_EQ(t.host.pending_copies(), 1u) << "the WRITE before it has not executed";
  t.finish_copy();
  EXPECT_EQ(t.host.pending_copies(), 1u) << "its own";
}

TEST(FusedTarget, a_strong_write_is_not_placed_ahead_of_a_gap) {
  Target t;
  wire::TaPacket relaxed = t.write(2 * kMtu, 64 * kMtu);
  relaxed.req.odr = wire::kOdrRelaxed;
  t.give(1, relaxed, kMtu, false, 1);
  EXPECT_TRUE(t.holds(kMtu, 64 * kMtu)) << "another one is";
  t.give(3, t.strong_write(2 * kMtu, 128 * kMtu), kMtu, false, 2);
  EXPECT_FALSE(t.holds(kMtu, 128 * kMtu));
  Target other(false, false);
  other.give(3, other.strong_write(2 * kMtu, 128 * kMtu), kMtu, false, 2);
  EXPECT_TRUE(other.holds(kMtu, 128 * kMtu)) << "where the initiator keeps the order";
}

}  // namespace
}  // namespace ub::ta
