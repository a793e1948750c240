// SPDX-License-Identifier: Apache-2.0
//
// Acknowledgements of a channel of ROL (UB Base Specification Rev 2.0, 6.8.2): they stop short of what has not
// executed, freeze at a failure until it is confirmed, and are asked for by a probe when everything has arrived.
#include "lib/transport/tp/fused_ack.h"

#include "lib/transport/wire/response_status.h"
#include "tests/unit/tp/receiver.h"
#include "tests/unit/tp/sender.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

struct RolReceiver : Receiver {
  RolReceiver() { ch().rol = true; }
  FusedAck ack() { return make_fused_ack(*s, ch()); }
  // The PSNs beyond the cumulative one that the acknowledgement reports.
  Psns beyond() {
    Psns all;
    const AckContent content = ack().content;
    for (uint32_t bit = 1; content.selective && bit < wire::sack_bits(content.size_code); ++bit) {
      if (test_bit(content.bitmap, bit)) all.push_back((content.cumulative + bit).value());
    }
    return all;
  }
  bool fail(uint32_t psn, uint32_t message) {
    return freeze(*s, channel, now, {Psn(psn), Tpmsn(message), wire::kRspRnr, 6});
  }
  bool confirm(uint32_t psn, uint32_t message, uint8_t rspst = wire::kRspRnr, uint8_t rspinfo = 6) {
    wire::RtpHeader rtp;
    rtp.fake = true;
    rtp.psn = Psn(psn);
    rtp.tpmsn = Tpmsn(message);
    rtp.rspst = rspst;
    rtp.rspinfo = rspinfo;
    return thaw(ch(), rtp);
  }
};

// 6.8.2: RSPST 101 with RSPINFO 2 says that the message of this number, and all before it, were executed.
TEST(FusedAck, says_that_everything_delivered_was_executed) {
  RolReceiver r;
  r.receive_all({100, 101});
  r.ch().message = Tpmsn(8);
  const FusedAck ack = r.ack();
  EXPECT_EQ(ack.content.cumulative, Psn(101));
  EXPECT_FALSE(ack.content.selective);
  EXPECT_EQ(ack.status.rspst, wire::kRspFused);
  EXPECT_EQ(ack.status.rspinfo, wire::kFusedOk);
  EXPECT_EQ(ack.status.message, Tpmsn(7));
}

TEST(FusedAck, stops_short_of_what_was_accepted_and_not_delivered) {
  RolReceiver r;
  r.receive(100);
  r.stalled = true;
  r.receive_all({101, 102, 104});
  EXPECT_EQ(r.ack().content.cumulative, Psn(100));
  EXPECT_EQ(r.beyond(), (Psns{101, 102, 104})) << "received, and not executed";
  EXPECT_EQ(r.ack().status.rspst, wire::kRspOk) << "6.2.1: a TPSACK has no status";
}

TEST(FusedAck, stops_short_of_the_last_packet_of_a_message_that_waits) {
  RolReceiver r;
  r.receive_all({100, 101, 102, 104});
  r.ch().fused.holds = true;
  r.ch().fused.unexecuted = Psn(101);
  EXPECT_EQ(r.ack().content.cumulative, Psn(100));
  EXPECT_EQ(r.beyond(), (Psns{101, 102, 104})) << "those that were delivered have no bit of their own";
  r.ch().fused.holds = false;
  EXPECT_EQ(r.ack().content.cumulative, Psn(102));
}

TEST(FusedAck, is_frozen_at_a_failure_until_that_is_confirmed) {
  RolReceiver r;
  r.receive_all({100, 101, 103});
  ASSERT_TRUE(r.fail(100, 5));
  EXPECT_TRUE(r.ch().ack_wanted);
  const FusedAck ack = r.ack();
  EXPECT_EQ(ack.content.cumulative, Psn(100));
  EXPECT_FALSE(ack.content.selective) << "a TPSACK has no place for the status";
  EXPECT_EQ(ack.status.message, Tpmsn(5));
  EXPECT_EQ(ack.status.rspst, wire::kRspRnr);
  EXPECT_EQ(ack.status.rspinfo, 6);
  EXPECT_FALSE(r.fail(101, 6)) << "one at a time";
  EXPECT_EQ(r.ack().status.message, Tpmsn(5));
  EXPECT_FALSE(r.confirm(101, 5) || r.confirm(100, 6) || r.confirm(100, 5, wire::kRspError) ||
               r.confirm(100, 5, wire::kRspRnr, 7))
      << "of something else";
  EXPECT_TRUE(r.ch().fused.frozen);
  EXPECT_TRUE(r.confirm(100, 5));
  EXPECT_EQ(r.ack().content.cumulative, Psn(101));
  EXPECT_FALSE(r.confirm(100, 5)) << "once more";
  EXPECT_TRUE(r.fail(101, 6));
}

TEST(FusedAck, is_owed_at_once_when_a_message_has_failed) {
  RolReceiver r;
  TestHost host;
  r.s->looker.begin(host);
  ASSERT_TRUE(r.fail(100, 5));
  EXPECT_TRUE(r.ch().ack_wanted && r.ch().on_ack_list);
  EXPECT_EQ(host.noted(Stage::kChannelFrozen),
            (std::vector<Note>{{Stage::kChannelFrozen, r.channel, 5, wire::kRspRnr}}));
}

TEST(FusedAck, is_owed_at_once) {
  RolReceiver r;
  demand_ack(*r.s, r.channel, r.now);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
  EXPECT_TRUE(r.ch().on_ack_list);
}

// ---- the sender ------------------------------------------------------------------------------------------------

TEST(FusedAck, a_reported_failure_is_to_be_confirmed_as_it_came) {
  Sender r;
  r.send_one_by_one(2);
  wire::RtpHeader report;
  report.psn = Psn(100);
  report.tpmsn = Tpmsn(0);
  report.rspst = wire::kRspError;
  report.rspinfo = wire::kErrRemoteAbort;
  confirm(*r.s, r.channel, r.now, report);
  const FusedState& f = r.ch().fused;
  EXPECT_TRUE(f.confirm_owed && r.ch().on_ack_list);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
  EXPECT_FALSE(is_owed(r.ch())) << "the peer does not wait for an acknowledgement";
  EXPECT_EQ(f.confirmed.last, Psn(100));
  EXPECT_EQ(f.confirmed.message, Tpmsn(0));
  EXPECT_EQ(f.confirmed.rspst, wire::kRspError);
  EXPECT_EQ(f.confirmed.rspinfo, wire::kErrRemoteAbort);
}

TEST(Probe, goes_if_everything_has_arrived_and_was_not_executed_in_time) {
  Sender r;
  r.send_one_by_one(3);
  r.sack(99, {100, 101, 102});
  r.timeout();
  EXPECT_EQ(r.resend(), (Psns{100})) << "the oldest packet";
  r.sack(99, {100, 101, 102});
  EXPECT_EQ(r.resend(), (Psns{})) << "the peer has said how far it is";
  r.timeout();
  r.timeout();
  EXPECT_EQ(r.resend(), (Psns{100})) << "once, although two timeouts have passed";
  r.ack(102);
  EXPECT_EQ(r.ch().outstanding(), 0u);
}

TEST(Probe, is_no_sign_of_congestion) {
  Sender r;
  r.govern(cc::Algorithm::kLossWindow);
  r.send_one_by_one(3);
  const uint32_t window = r.ch().send_window;
  r.sack(99, {100, 101, 102});
  r.timeout();
  EXPECT_EQ(r.ch().send_window, window);
}

}  // namespace
}  // namespace ub::tp
