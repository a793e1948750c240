// SPDX-License-Identifier: Apache-2.0
//
// Go-Back-N (UB Base Specification Rev 2.0, 6.4.1, 6.4.2): what the receiver discards, and how it reports a gap. What
// the sender makes of a TPNAK is in retransmission_test.cc.
#include "lib/transport/tp/gap_report.h"

#include "lib/transport/wire/response_status.h"
#include "tests/unit/tp/receiver.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {
namespace {

struct GoBackReceiver : Receiver {
  explicit GoBackReceiver(uint32_t first_psn = 100) : Receiver(first_psn) {
    ch().go_back_n = true;
    ch().fast = true;
  }
  struct Said {
    bool nak;
    uint32_t psn;
    bool operator==(const Said&) const = default;
  };
  // The acknowledgement that leaves now.
  FusedAck next() const { return ch_().rol ? make_fused_ack(*s, ch_()) : FusedAck{make_ack(*s, ch_()), {}}; }
  Said say() {
    FusedAck ack = next();
    const bool nak = report_gap(ch(), &ack);
    EXPECT_FALSE(ack.content.selective) << "6.4.1: there is nothing to select";
    EXPECT_EQ(nak, ack.status.rspst == wire::kRspError && ack.status.rspinfo == wire::kErrPsn);
    gap_report_sent(ch(), nak);
    ack_sent(ch());
    return {nak, ack.content.cumulative.value()};
  }
  bool demanded() { return ch().ack_wanted; }

 private:
  const Channel& ch_() const { return s->channels[channel]; }
};
using Said = GoBackReceiver::Said;

// ---- what is accepted ------------------------------------------------------------------------------------------

TEST(GoBackN, a_packet_ahead_of_a_gap_is_discarded) {
  GoBackReceiver r;
  EXPECT_EQ(r.receive(102), RxVerdict::kAhead);
  EXPECT_EQ(r.ch().expected, Psn(100));
  EXPECT_EQ(r.ch().highest_seen, Psn(99));
  EXPECT_EQ(r.s->reorder.in_use(), 0u);
  EXPECT_EQ(r.count(Counter::kTpRxDiscarded), 1u);
  r.receive_all({100, 101});
  EXPECT_EQ(r.receive(102), RxVerdict::kInOrder) << "it has to come again";
  EXPECT_EQ(r.delivered, (Psns{100, 101, 102}));
}

TEST(GoBackN, packets_behind_a_delivery_that_waits_are_accepted_in_order) {
  GoBackReceiver r;
  r.stalled = true;
  r.receive_all({100, 101});
  EXPECT_EQ(r.ch().expected, Psn(102));
  EXPECT_EQ(r.say(), (Said{false, 101}));
}

// ---- what is reported ------------------------------------------------------------------------------------------

TEST(GoBackN, a_gap_is_reported_at_once_and_once) {
  GoBackReceiver r;
  r.receive(100);
  r.receive(102);
  EXPECT_TRUE(r.demanded());
  EXPECT_TRUE(r.ch().on_ack_list);
  EXPECT_EQ(r.say(), (Said{true, 101})) << "the packet that is missing";
  r.receive_all({103, 104, 102});
  EXPECT_FALSE(r.demanded());
  EXPECT_EQ(r.count(Counter::kTpRxDiscarded), 4u);
}

TEST(GoBackN, one_report_is_of_all_packets_that_came_before_it_left) {
  GoBackReceiver r;
  r.receive_all({102, 103, 104});
  EXPECT_EQ(r.say(), (Said{true, 100}));
  r.receive(105);
  EXPECT_FALSE(r.demanded());
}

TEST(GoBackN, the_next_gap_is_reported_anew) {
  GoBackReceiver r;
  r.receive(102);
  EXPECT_EQ(r.say(), (Said{true, 100}));
  r.receive(100);
  EXPECT_EQ(r.say(), (Said{false, 100}));
  r.receive(102);
  EXPECT_EQ(r.say(), (Said{true, 101}));
}

TEST(GoBackN, the_next_gap_is_reported_even_if_no_acknowledgement_left_in_between) {
  GoBackReceiver r;
  r.receive(102);
  EXPECT_EQ(r.say(), (Said{true, 100}));
  r.receive_all({100, 102});
  EXPECT_EQ(r.say(), (Said{true, 101}));
}

TEST(GoBackN, a_gap_that_closes_before_its_report_leaves_is_not_reported) {
  GoBackReceiver r;
  r.receive_all({101, 100});
  EXPECT_EQ(r.say(), (Said{false, 100}));
}

// 6.4.1: once, until the next TPACK has been sent.
TEST(GoBackN, a_gap_may_be_reported_again_after_an_acknowledgement) {
  GoBackReceiver r;
  r.receive(102);
  EXPECT_EQ(r.say(), (Said{true, 100}));
  EXPECT_EQ(r.receive(99), RxVerdict::kDuplicate);
  EXPECT_EQ(r.say(), (Said{false, 99})) << "a duplicate is acknowledged";
  r.receive(103);
  EXPECT_EQ(r.say(), (Said{true, 100}));
}

TEST(GoBackN, a_gap_at_the_wrap_is_reported_with_its_number) {
  GoBackReceiver r(0xFFFFFF);
  r.receive(1);
  EXPECT_EQ(r.say(), (Said{true, 0xFFFFFF}));
  r.receive_all({0xFFFFFF, 1});
  EXPECT_EQ(r.say(), (Said{true, 0}));
}

TEST(GoBackN, without_fast_retransmission_nothing_is_reported) {
  GoBackReceiver r;
  r.ch().fast = false;
  r.receive(102);
  EXPECT_FALSE(r.demanded() || r.ch().on_ack_list);
  EXPECT_EQ(r.count(Counter::kTpRxDiscarded), 1u);
}

// ---- ROL: 6.8.2 ------------------------------------------------------------------------------------------------

// All before the PSN of a TPNAK counts as executed.
TEST(GoBackN, of_rol_reports_the_packet_behind_what_was_executed) {
  GoBackReceiver r;
  r.ch().rol = true;
  r.receive(100);
  r.stalled = true;
  r.receive_all({101, 102});
  EXPECT_EQ(r.say(), (Said{false, 100}));
  r.receive(104);
  EXPECT_EQ(r.say(), (Said{true, 101}));
  r.stalled = false;
  r.deliver();
  r.receive(99);
  EXPECT_EQ(r.say(), (Said{false, 102}));
  r.receive(104);
  EXPECT_EQ(r.say(), (Said{true, 103}));
}

TEST(GoBackN, of_rol_says_that_all_was_executed_while_nothing_is_missing) {
  GoBackReceiver r;
  r.ch().rol = true;
  r.receive(100);
  r.stalled = true;
  r.receive(101);
  const FusedAck ack = r.next();
  EXPECT_EQ(ack.status.rspst, wire::kRspFused);
  EXPECT_EQ(ack.status.rspinfo, wire::kFusedOk);
}

TEST(GoBackN, of_rol_a_failure_is_said_first_and_the_gap_afterwards) {
  GoBackReceiver r;
  r.ch().rol = true;
  r.receive(100);
  ASSERT_TRUE(freeze(*r.s, r.channel, r.now, {Psn(100), Tpmsn(0), wire::kRspRnr, 6}));
  r.receive(102);
  EXPECT_EQ(r.say(), (Said{false, 100}));
  r.ch().fused.frozen = false;
  EXPECT_EQ(r.say(), (Said{true, 101}));
}

// ---- sender ----------------------------------------------------------------------------------------------------

// No acknowledgement says which of them arrived, so there is nothing to judge them by.
TEST(GoBackN, the_sender_keeps_no_records_of_what_it_sends_again) {
  Sender s;
  s.ch().go_back_n = true;
  s.send_one_by_one(5);
  s.nak(102);
  EXPECT_EQ(s.resend(), psns(102, 3));
  EXPECT_TRUE(s.records().empty());
  s.ack(104);
  EXPECT_EQ(s.ch().recovery, 0u);
}

TEST(GoBackN, the_sender_goes_back_again_when_a_later_packet_of_its_repetition_is_missing) {
  Sender s;
  s.ch().go_back_n = true;
  s.send_one_by_one(5);
  s.nak(101);
  EXPECT_EQ(s.resend(), psns(101, 4));
  s.nak(103);
  EXPECT_EQ(s.resend(), psns(103, 2));
}

}  // namespace
}  // namespace ub::tp
