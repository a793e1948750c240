// SPDX-License-Identifier: Apache-2.0
//
// READs being served and the answers that wait on a channel (UB Base Specification Rev 2.0, 7.3.1.1).
#include <gtest/gtest.h>

#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/test_state.h"

namespace ub::ta {
namespace {

using tp::MessageKind;
using tp::TxMessage;
using wire::TaOpcode;

struct Answers : TestState {
  Answers() : TestState(config()) {
    for (int i = 0; i < 2; ++i) s->channels[s->channels.alloc()] = tp::Channel{};
  }
  static CoreConfig config() {
    CoreConfig c = small_tables();
    c.max_channels = 16;
    return c;
  }
  static wire::Btah request(uint32_t tassn, uint32_t rc_id = 5) {
    wire::Btah r;
    r.tassn = Tassn(tassn);
    r.rc_id = rc_id;
    return r;
  }
  void taack(uint32_t tassn, uint32_t rc_id = 5) {
    answer(*s, 1, request(tassn, rc_id), TaOpcode::kTaack, wire::kRspOk, 0);
  }
  uint32_t waiting(uint32_t channel = 1) { return s->channels[channel].answers.size(); }
  // Takes places for answers until so many chunks are free.
  void leave(uint32_t chunks) {
    while (s->answers.capacity() - s->answers.in_use() > chunks) s->answers.alloc();
  }
  TxMessage& newest(uint32_t channel = 1) { return s->channels[channel].answers.back(s->answers); }
  uint32_t read(uint32_t channel = 1, uint32_t segment = 7) {
    ReadJob job{};
    job.channel = channel;
    job.segment = segment;
    job.source = 5;
    job.tassn = Tassn(9);
    job.length = 100;
    return start_read_job(*s, channel, job);
  }
};

TEST(Answers, successes_of_consecutive_segments_share_one) {
  Answers a;
  a.taack(0xFFFF);
  a.taack(0);
  a.taack(1);
  EXPECT_EQ(a.waiting(), 1u);
  EXPECT_EQ(a.newest().tassn, Tassn(0xFFFF));
  EXPECT_EQ(a.newest().rspinfo, 2) << "two more";
  EXPECT_TRUE(a.s->channels[1].on_active_list);
}

TEST(Answers, what_is_not_consecutive_has_its_own) {
  Answers a;
  a.taack(10);
  a.taack(12);
  EXPECT_EQ(a.waiting(), 2u);
  a.taack(12);
  EXPECT_EQ(a.waiting(), 3u);
  a.taack(13, 6);
  EXPECT_EQ(a.waiting(), 4u) << "of another queue";
}

TEST(Answers, one_stands_for_at_most_32) {
  Answers a;
  for (uint32_t i = 0; i < 33; ++i) a.taack(i);
  EXPECT_EQ(a.waiting(), 2u);
  EXPECT_EQ(a.s->channels[1].answers.front(a.s->answers).rspinfo, wire::kRspInfoMax);
  EXPECT_EQ(a.newest().tassn, Tassn(32));
}

TEST(Answers, errors_and_refusals_are_never_merged) {
  Answers a;
  a.taack(10);
  answer(*a.s, 1, Answers::request(11), TaOpcode::kTaack, wire::kRspError, wire::kErrRemoteAbort);
  answer(*a.s, 1, Answers::request(12), TaOpcode::kTaack, wire::kRspRnr, 3);
  a.taack(13);
  EXPECT_EQ(a.waiting(), 4u);
  EXPECT_EQ(a.count(Counter::kTaTxError), 1u);
  EXPECT_EQ(a.count(Counter::kTaTxRnr), 1u);
}

TEST(Answers, refusals_are_no_errors_and_an_errors_reason_is_no_number) {
  Answers a;
  answer(*a.s, 1, Answers::request(10), TaOpcode::kTaack, wire::kRspRnr, 3);
  EXPECT_EQ(a.count(Counter::kTaTxError), 0u);
  answer(*a.s, 1, Answers::request(11), TaOpcode::kTaack, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(a.count(Counter::kTaTxError), 1u);
  a.taack(11 + wire::kErrRemoteAbort + 1);
  EXPECT_EQ(a.waiting(), 3u);
  EXPECT_EQ(a.newest().rspst, wire::kRspOk);
}

TEST(Answers, of_a_read_that_failed_says_nothing_of_a_place) {
  Answers a;
  answer(*a.s, 1, Answers::request(3), TaOpcode::kReadResponse, wire::kRspError, wire::kErrRemoteAbort);
  a.s->channels[1].read_meta = true;
  wire::TaPacket packet;
  packet.taid = 7;
  packet.ofst.offset_kib = 7;
  Payload payload;
  EXPECT_TRUE(describe(*a.s, a.s->channels[1], a.newest(), 0, &packet, &payload));
  EXPECT_TRUE(packet.has_taid && packet.has_ofst);
  EXPECT_EQ(packet.taid, 0);
  EXPECT_EQ(packet.ofst.offset_kib, 0u);
}

TEST(Answers, of_an_atomic_has_the_old_value) {
  Answers a;
  answer_atomic(*a.s, 1, Answers::request(3), make_uint128(11, 22), 16);
  EXPECT_EQ(a.newest().opcode, TaOpcode::kAtomicResponse);
  EXPECT_EQ(a.newest().value, 11u);
  EXPECT_EQ(a.newest().value_high, 22u);
  EXPECT_EQ(a.newest().value_bytes, 16);
  EXPECT_EQ(a.newest().source, 5u);
  a.taack(4);
  EXPECT_EQ(a.waiting(), 2u) << "no TAACK joins it";
}

TEST(Answers, opcodes) {
  EXPECT_EQ(answer_opcode(TaOpcode::kRead), TaOpcode::kReadResponse);
  EXPECT_EQ(answer_opcode(TaOpcode::kAtomicFetchAdd), TaOpcode::kAtomicResponse);
  EXPECT_EQ(answer_opcode(TaOpcode::kWrite), TaOpcode::kTaack);
  EXPECT_EQ(answer_opcode(TaOpcode::kSend), TaOpcode::kTaack);
}

// Requests are refused while what was begun can still be answered.
TEST(Answers, some_room_is_kept_for_what_was_begun) {
  Answers a;
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[1]));
  a.s->jobs.alloc();
  a.leave(66);
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[1]));
  a.leave(65);
  EXPECT_FALSE(room_for_answer(*a.s, a.s->channels[1])) << "64, and one for the READ";
  a.s->jobs.free(1);
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[1]));
}

TEST(Answers, a_channel_has_a_share_of_the_room) {
  Answers a;
  for (uint32_t n = 0; room_for_answer(*a.s, a.s->channels[1]); ++n) a.taack(2 * n);  // no two of them go together
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[2]));
  EXPECT_LE(a.s->answers.in_use(), a.s->answers.capacity() / 2);
  EXPECT_GE(a.s->answers.in_use(), a.s->answers.capacity() / 3);
}

TEST(Answers, a_channel_leaves_one_more_chunk_free_for_every_16_that_wait_on_it) {
  Answers a;
  for (uint32_t n = 0; n < 16; ++n) a.taack(2 * n);
  a.leave(66);
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[1]));
  a.leave(65);
  EXPECT_FALSE(room_for_answer(*a.s, a.s->channels[1]));
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[2]));
}

TEST(Answers, that_grant_a_sequence_context_are_not_about_one) {
  Answers a;
  const auto header = [&] {
    wire::TaPacket packet{};
    Payload payload;
    EXPECT_TRUE(describe(*a.s, a.s->channels[1], a.newest(), 0, &packet, &payload));
    EXPECT_EQ(packet.rsp.rc_id, 5u);
    return packet.rsp;
  };
  a.taack(3);
  const wire::Atah plain = header();
  EXPECT_FALSE(plain.sv);
  answer_with_context(*a.s, 1, Answers::request(4));
  EXPECT_TRUE(header().sv);
  EXPECT_EQ(header().rc_type, plain.rc_type);
  a.taack(0, 5 | kAnswerToContext);
  EXPECT_FALSE(header().sv);
  EXPECT_EQ(header().rc_type, wire::kRcTypeSequenceContext);
}

// Whoever has too many requests unanswered has lost his channel before (PacketReceiver::admits_request()).
TEST(Answers, of_ctp_have_a_place_among_the_messages) {
  Answers a;
  a.leave(0);
  ASSERT_FALSE(room_for_answer(*a.s, a.s->channels[1]));
  a.s->channels[1].compact = true;
  EXPECT_TRUE(room_for_answer(*a.s, a.s->channels[1]));
  a.taack(10);
  EXPECT_EQ(a.s->channels[1].in_flight.size(), 1u);
  EXPECT_EQ(a.waiting(), 0u);
}

TEST(Answers, of_ctp_grant_no_sequence_context) {
  Answers a;
  a.s->channels[1].compact = true;
  answer_with_context(*a.s, 1, Answers::request(3));
  const TxMessage& m = a.s->channels[1].in_flight.back(a.s->messages);
  EXPECT_EQ(m.source, 5u);
  EXPECT_EQ(m.tassn, Tassn(3));
  EXPECT_EQ(a.s->contexts.in_use(), 0u);
}

TEST(Answers, of_rol_grant_no_sequence_context) {
  Answers a;
  a.s->channels[1].rol = true;
  answer_with_context(*a.s, 1, Answers::request(3));
  EXPECT_EQ(a.waiting(), 0u) << "an acknowledgement says it";
  EXPECT_EQ(a.s->contexts.in_use(), 0u);
}

// ---- READs -----------------------------------------------------------------------------------------------------

TEST(ReadJobs, a_read_waits_on_its_channel_until_its_response_is_acknowledged) {
  Answers a;
  const uint32_t job = a.read();
  const TxMessage m = a.newest();
  EXPECT_EQ(m.kind, MessageKind::kReadResponse);
  EXPECT_EQ(m.source, job);
  EXPECT_NE(job_of(*a.s, m), nullptr);
  EXPECT_EQ(a.s->channels[1].read_jobs, 1u);
  finish_read_job(*a.s, m);
  EXPECT_EQ(job_of(*a.s, m), nullptr);
  EXPECT_EQ(a.s->channels[1].read_jobs, 0u);
  finish_read_job(*a.s, m);
  EXPECT_EQ(a.s->jobs.in_use(), 0u) << "once";
}

TEST(ReadJobs, a_message_of_an_earlier_read_does_not_find_the_next_one) {
  Answers a;
  a.read();
  const TxMessage old = a.newest();
  finish_read_job(*a.s, old);
  EXPECT_EQ(a.read(), old.source) << "the same record";
  EXPECT_EQ(job_of(*a.s, old), nullptr);
  finish_read_job(*a.s, old);
  EXPECT_EQ(a.s->jobs.in_use(), 1u);
}

TEST(ReadJobs, one_channel_gets_half_of_the_records) {
  Answers a;
  for (int i = 0; i < 4; ++i) EXPECT_NE(a.read(1), 0u);
  EXPECT_EQ(a.read(1), 0u);
  for (int i = 0; i < 2; ++i) EXPECT_NE(a.read(2), 0u);
  EXPECT_EQ(a.read(2), 0u);
  drop_jobs_of_channel(*a.s, 1);
  EXPECT_EQ(a.s->channels[1].read_jobs, 0u);
  EXPECT_EQ(a.s->channels[2].read_jobs, 2u);
  EXPECT_EQ(a.s->jobs.in_use(), 2u);
}

TEST(ReadJobs, a_read_whose_segment_is_gone_ends_with_an_error_once) {
  Answers a;
  a.read(1, 7);
  const TxMessage m = a.newest();
  a.read(1, 8);
  abort_jobs_of_segment(*a.s, 7);
  EXPECT_EQ(job_of(*a.s, m), nullptr);
  EXPECT_EQ(a.waiting(), 3u);
  EXPECT_EQ(a.newest().kind, MessageKind::kAnswer);
  EXPECT_EQ(a.newest().opcode, TaOpcode::kReadResponse);
  EXPECT_EQ(a.newest().rspst, wire::kRspError);
  EXPECT_EQ(a.newest().rspinfo, wire::kErrRemoteAbort);
  EXPECT_EQ(a.newest().tassn, Tassn(9));
  abort_jobs_of_segment(*a.s, 7);
  EXPECT_EQ(a.waiting(), 3u);
  EXPECT_EQ(a.s->jobs.in_use(), 2u) << "its record stays until its packets are acknowledged";
}

}  // namespace
}  // namespace ub::ta
