// SPDX-License-Identifier: Apache-2.0
//
// Messages of a channel and the transactions behind them: what acknowledged packets mean for these (UB Base
// Specification Rev 2.0, 7.3), and transactions that end with a message half sent.
#include "lib/transport/ta/sent_messages.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/transport/test_state.h"

namespace ub::ta {
namespace {

struct Sent : TestState {
  explicit Sent(const CoreConfig& config = small_tables()) : TestState(config) {
    channel = s->channels.alloc();
    ch() = tp::Channel{};
    ch().state = tp::ChannelState::kOpen;
    ch().next_psn = ch().oldest_unacked = Psn(100);
    ch().rto_at = Instant::never();
    queue = s->queues.alloc();
    q() = SendQueue{};
    q().work = work.data();
    q().work_mask = 3;
    q().started_tail = 3;
    q().generation = 4;
    q().in_use = true;
    q().request_timeout = milliseconds(5);
  }
  tp::Channel& ch() { return s->channels[channel]; }
  SendQueue& q() { return s->queues[queue]; }

  void send(tp::MessageKind kind, uint32_t source, uint32_t work_request, uint32_t packets, bool complete = true) {
    tp::TxMessage& m = *tp::begin_message(*s, ch());
    m.kind = kind;
    m.source = source;
    m.work_request = work_request;
    m.generation = 4;
    ch().mid_message = true;
    for (uint32_t i = 0; i < packets; ++i) tp::packet_sent(*s, channel, m, s->now);
    if (!complete) return;
    tp::message_sent(ch(), m);
    ch().mid_message = false;
  }
  void ack(uint32_t psn) {
    wire::RtpHeader rtp;
    rtp.psn = Psn(psn);
    on_acknowledged(*s, channel, tp::on_ack(*s, channel, s->now, rtp));
  }
  uint32_t add_job() {
    const uint32_t job = s->jobs.alloc();
    s->jobs[job] = ReadJob{};
    s->jobs[job].channel = channel;
    s->jobs[job].generation = 4;
    s->jobs[job].in_use = true;
    ++ch().read_jobs;
    return job;
  }
  bool ends() { return ch().in_flight.back(s->messages).vanished && ch().on_active_list; }

  std::vector<WrState> work = std::vector<WrState>(4);
  uint32_t channel, queue;
};

TEST(SentMessages, a_request_gets_on_when_packets_of_its_own_are_acknowledged) {
  Sent t;
  t.send(tp::MessageKind::kRequest, t.queue, 0, 2);
  t.send(tp::MessageKind::kRequest, t.queue, 1, 2);
  t.send(tp::MessageKind::kReadResponse, t.queue, 2, 2);  // whose job has the queue's number
  t.ack(100);
  EXPECT_EQ(t.work[0].deadline, t.s->now + milliseconds(5));
  EXPECT_EQ(t.work[1].deadline, Instant{}) << "nothing of it";
  t.s->now += milliseconds(1);
  t.ack(100);
  EXPECT_EQ(t.work[0].deadline, t.s->now + milliseconds(4)) << "nothing new";
  t.ack(101);
  EXPECT_EQ(t.work[1].deadline, t.s->now + milliseconds(5)) << "it is next";
  t.s->now += milliseconds(1);
  t.ack(102);
  EXPECT_EQ(t.work[1].deadline, t.s->now + milliseconds(5)) << "half of it";
  t.ack(105);
  EXPECT_EQ(t.work[2].deadline, Instant{}) << "that was a response";
}

TEST(SentMessages, a_read_is_done_with_when_its_whole_response_is_acknowledged) {
  Sent t;
  const uint32_t job = t.add_job();
  t.send(tp::MessageKind::kReadResponse, job, 0, 2);
  t.ack(100);
  EXPECT_TRUE(t.s->jobs[job].in_use);
  t.ack(101);
  EXPECT_FALSE(t.s->jobs[job].in_use);
  EXPECT_EQ(t.ch().read_jobs, 0u);
}

TEST(SentMessages, an_answer_or_a_fake_names_no_job) {
  Sent t;
  const uint32_t job = t.add_job();
  t.send(tp::MessageKind::kAnswer, job, 0, 1);
  t.send(tp::MessageKind::kFake, job, 0, 1);
  t.ack(101);
  EXPECT_TRUE(t.s->jobs[job].in_use);
  EXPECT_TRUE(t.ch().in_flight.empty());
}

TEST(HalfSentMessage, ends_with_the_request_that_it_belongs_to) {
  Sent t;
  t.send(tp::MessageKind::kRequest, t.queue, 7, 2, false);
  stop_request(*t.s, t.channel, t.queue, 8);
  EXPECT_FALSE(t.ends()) << "another request";
  stop_request(*t.s, t.channel, t.queue + 1, 7);
  EXPECT_FALSE(t.ends()) << "of another queue";
  t.s->queues[t.s->queues.alloc()].generation = 4;
  stop_request(*t.s, t.channel, t.queue + 1, 7);
  EXPECT_FALSE(t.ends()) << "of another one that looks like it";
  t.q().generation = 5;
  stop_request(*t.s, t.channel, t.queue, 7);
  EXPECT_FALSE(t.ends()) << "of a queue that had this record before";
  t.q().generation = 4;
  stop_response(*t.s, t.channel, t.queue);
  EXPECT_FALSE(t.ends()) << "it is no response";
  stop_request(*t.s, t.channel, t.queue, 7);
  EXPECT_TRUE(t.ends());
}

TEST(HalfSentMessage, ends_with_the_read_that_it_answers) {
  Sent t;
  t.send(tp::MessageKind::kReadResponse, t.queue, 7, 2, false);
  stop_request(*t.s, t.channel, t.queue, 7);
  stop_response(*t.s, t.channel, t.queue + 1);
  EXPECT_FALSE(t.ends());
  stop_response(*t.s, t.channel, t.queue);
  EXPECT_TRUE(t.ends());
}

TEST(HalfSentMessage, one_that_was_sent_does_not_end_again) {
  Sent t;
  t.send(tp::MessageKind::kRequest, t.queue, 7, 2, false);
  tp::packet_sent(*t.s, t.channel, t.ch().in_flight.back(t.s->messages), t.s->now);
  tp::message_sent(t.ch(), t.ch().in_flight.back(t.s->messages));
  t.ch().mid_message = false;
  stop_request(*t.s, t.channel, t.queue, 7);
  stop_response(*t.s, t.channel, t.queue);
  EXPECT_FALSE(t.ends());
}

// ---- what networks say -----------------------------------------------------------------------------------------

// The packets that acknowledge and say what the network said (6.2.2), to a flow that notes it.
struct Listening : Sent {
  Listening() : Sent(listening()) {
    tp::begin_flow(*s, ch(), cc::Algorithm::kListener);
    ch().feedback = wire::CcAlgorithm::kCaqm;
    ch().fast = true;
    send(tp::MessageKind::kAnswer, 0, 0, 4);
  }
  static CoreConfig listening() {
    CoreConfig c = small_tables();
    c.listen_to_network = true;
    return c;
  }
  struct Told {
    wire::TpOpcode opcode = wire::TpOpcode::kAckCc;
    uint32_t psn = 100;
    bool nak = false;
  };
  // One mark; `rest`: behind the CETPH.
  void hear(const Told& told, const std::vector<std::byte>& rest = {}) {
    wire::RtpHeader rtp;
    rtp.opcode = told.opcode;
    rtp.psn = Psn(told.psn);
    if (told.nak) rtp.rspst = wire::kRspError, rtp.rspinfo = wire::kErrPsn;
    std::vector<std::byte> packet(wire::RtpHeader::kSize + wire::CetphCaqm::kSize);
    wire::CetphCaqm{.marks = 1}.write(packet.data() + wire::RtpHeader::kSize);
    packet.insert(packet.end(), rest.begin(), rest.end());
    wire::NetHeader net{};
    net.tph = packet.data();
    net.end = packet.data() + packet.size();
    on_congestion(*s, channel, rtp, net);
  }
  uint32_t marks() { return ch().flow.listener.marks; }
};

TEST(NetworkSays, what_an_acknowledgement_brings_is_told) {
  Listening t;
  t.hear({.psn = 101});
  EXPECT_EQ(t.marks(), 1u);
  EXPECT_EQ(t.ch().oldest_unacked, Psn(102));
  t.hear({.psn = 101});
  EXPECT_EQ(t.marks(), 2u) << "nothing new is acknowledged, and yet it speaks of what is in flight";
  t.hear({.psn = 103, .nak = true});
  EXPECT_EQ(t.marks(), 3u);
  EXPECT_EQ(t.ch().oldest_unacked, Psn(103));
}

TEST(NetworkSays, what_does_not_fit_what_is_in_flight_brings_nothing) {
  Listening t;
  t.hear({.psn = 104});
  t.hear({.psn = 98});
  t.hear({.psn = 105, .nak = true});
  t.hear({.psn = 104, .nak = true});  // that one never left
  t.hear({.psn = 99, .nak = true});
  EXPECT_EQ(t.marks(), 0u);
  EXPECT_EQ(t.ch().oldest_unacked, Psn(100));
  EXPECT_GE(t.count(Counter::kTpRxStaleAck), 4u);
}

TEST(NetworkSays, a_selective_one_is_read_to_its_end_before_it_is_believed) {
  Listening t;
  std::vector<std::byte> sack(wire::sack_size(0));
  const uint64_t bits[wire::kSackMaxWords] = {1 | 1 << 2};
  wire::write_sack(sack.data(), 0, Psn(102), bits);
  sack.pop_back();
  t.hear({.opcode = wire::TpOpcode::kSackCc}, sack);
  EXPECT_EQ(t.marks(), 0u);
  EXPECT_EQ(t.count(Counter::kRxDropTruncatedHeader), 1u);
  sack.push_back({});
  t.hear({.opcode = wire::TpOpcode::kSackCc, .psn = 104}, sack);
  EXPECT_EQ(t.marks(), 0u);
  t.hear({.opcode = wire::TpOpcode::kSackCc}, sack);
  EXPECT_EQ(t.marks(), 1u);
  EXPECT_EQ(t.ch().flow.listener.losses, 1u);
}

TEST(NetworkSays, a_selective_one_reports_no_other_gap) {
  Listening t;
  std::vector<std::byte> sack(wire::sack_size(0));
  const uint64_t bits[wire::kSackMaxWords] = {1 | 1 << 2};
  wire::write_sack(sack.data(), 0, Psn(102), bits);
  t.hear({.opcode = wire::TpOpcode::kSackCc, .psn = 99, .nak = true}, sack);
  EXPECT_EQ(t.marks(), 1u);
}

TEST(NetworkSays, a_selective_one_in_a_form_that_was_not_agreed_acknowledges_nothing) {
  Listening t;
  t.ch().feedback = wire::CcAlgorithm::kNone;
  std::vector<std::byte> sack(wire::sack_size(0));
  const uint64_t bits[wire::kSackMaxWords] = {1 | 1 << 2};
  wire::write_sack(sack.data(), 0, Psn(102), bits);
  t.hear({.opcode = wire::TpOpcode::kSackCc, .psn = 101}, sack);
  EXPECT_EQ(t.count(Counter::kRxDropBadTpOpcode), 1u);
  EXPECT_EQ(t.ch().oldest_unacked, Psn(100));
}

TEST(NetworkSays, nothing_in_a_form_that_was_not_agreed) {
  Listening t;
  t.ch().feedback = wire::CcAlgorithm::kNone;
  t.hear({.psn = 101});
  EXPECT_EQ(t.marks(), 0u);
  EXPECT_EQ(t.count(Counter::kRxDropBadTpOpcode), 1u);
  EXPECT_EQ(t.ch().oldest_unacked, Psn(100));
}

}  // namespace
}  // namespace ub::ta
