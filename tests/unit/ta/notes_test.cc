// SPDX-License-Identifier: Apache-2.0
//
// What somebody who looks is told of packets, messages, requests and completions, and with which numbers.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;
using Notes = std::vector<Note>;

uint32_t number(CrStatus status) { return static_cast<uint32_t>(status); }

struct Noted : Delivery {
  explicit Noted(const Options& o = {}) : Delivery(o) {
    s->looker.begin(host);
    host.slow = o.slow_memory;
  }
  static Options slow() { return {.slow_memory = true}; }
  void expect(Stage stage, const Notes& notes) { EXPECT_EQ(host.noted(stage), notes) << kStageNames[unsigned(stage)]; }
  void no_room_for_answers() {
    while (room_for_answer(*s, ch())) s->answers.alloc();
  }
};

// ---- packets and messages at their target ------------------------------------------------------------------------

TEST(NotesOfPackets, name_channel_packet_and_message) {
  Noted d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  d.give(2, d.on_memory(TaOpcode::kWrite, 8), 8, true, 2);
  d.give(600, d.on_memory(TaOpcode::kWrite, 8), 8, true, 5);
  d.expect(Stage::kPacketDuplicate, {{Stage::kPacketDuplicate, d.channel, 0, 0}});
  d.expect(Stage::kPacketAhead, {{Stage::kPacketAhead, d.channel, 2, 2}});
  d.expect(Stage::kPacketTooFarAhead, {{Stage::kPacketTooFarAhead, d.channel, 600, 5}});
  d.expect(Stage::kPacketRefused, {{Stage::kPacketRefused, d.channel, 600}});
}

TEST(NotesOfMessages, one_that_waits_for_its_copies_and_one_behind_it_that_ended) {
  Noted d(Noted::slow());
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.expect(Stage::kMessageParked, {{Stage::kMessageParked, d.channel, 0}});
  d.expect(Stage::kMessageEnded, {});
  d.finish_copies();
  d.expect(Stage::kMessageEnded, {{Stage::kMessageEnded, d.channel, 0}});
  d.expect(Stage::kMessageWaits, {});
}

TEST(NotesOfMessages, one_that_holds_up_delivery_waits) {
  Noted d(Noted::slow());
  while (d.s->parked.alloc() != 0) {
  }
  d.give(d.response(TaOpcode::kTaack, 0), 0);
  d.expect(Stage::kMessageWaits, {});
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.expect(Stage::kMessageWaits, {{Stage::kMessageWaits, d.channel, 1}});
}

TEST(NotesOfMessages, one_that_was_accepted_and_finds_no_room_for_its_answer_waits) {
  Noted d;
  d.give(1, d.on_memory(TaOpcode::kWrite, 8), 8, true, 1);
  d.no_room_for_answers();
  d.give(0, d.response(TaOpcode::kTaack, 0), 0, true, 0);
  d.expect(Stage::kMessageWaits, {{Stage::kMessageWaits, d.channel, 1}});
}

TEST(NotesOfMessages, one_that_another_takes_the_place_of_has_vanished) {
  Noted d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  d.give(1, d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false, 1);
  d.give(2, d.on_memory(TaOpcode::kWrite, 8), 8, true, 2);
  d.expect(Stage::kMessageVanished, {{Stage::kMessageVanished, d.channel, 1}});
}

TEST(NotesOfMessages, one_that_a_fake_ends_has_vanished) {
  Noted d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false);
  d.give_fake(1);
  d.expect(Stage::kMessageVanished, {{Stage::kMessageVanished, d.channel, 1}});
}

TEST(NotesOfMessages, one_that_is_refused_names_transaction_and_reason) {
  Noted d;
  d.tassn = 7;
  d.give(d.send(), 5);
  d.expect(Stage::kMessageRefused, {{Stage::kMessageRefused, d.channel, 7, kPeerRcid, wire::kRspRnr}});
}

TEST(NotesOfMessages, the_receive_that_completes_names_its_outcome) {
  Noted d;
  d.post_receive(4);
  d.give(d.send(), 5);
  d.expect(Stage::kReceiveCompleted, {{Stage::kReceiveCompleted, d.jfc, 1, number(CrStatus::kLocLen)}});
}

// ---- requests ----------------------------------------------------------------------------------------------------

TEST(NotesOfRequests, an_answer_names_how_many_transactions_it_is_of) {
  Noted d;
  for (int i = 0; i < 4; ++i) d.post(WrOp::kWrite);
  d.sent();
  d.answer(1, wire::kRspOk, 2);
  d.expect(Stage::kTransactionsAnswered, {{Stage::kTransactionsAnswered, d.queue_index, 1, 3, wire::kRspOk}});
}

TEST(NotesOfRequests, an_answer_with_data_and_a_refusal_name_the_request) {
  Noted d;
  d.post(WrOp::kWrite);
  d.post(WrOp::kRead);
  d.post(WrOp::kSend);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 1), 4);
  d.refuse(2);
  const Note answered{Stage::kRequestAnswered, d.queue_index, 1, number(CrStatus::kRemRespLen)};
  d.expect(Stage::kRequestAnswered, {answered});
  d.expect(Stage::kRequestRefused, {{Stage::kRequestRefused, d.queue_index, 2}});
}

TEST(NotesOfRequests, one_ends_when_those_before_it_have_and_its_copies_are_done) {
  Noted d(Noted::slow());
  d.post(WrOp::kWrite);
  d.post(WrOp::kRead);
  d.post(WrOp::kWrite);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 1), 8);
  d.answer(2);
  d.expect(Stage::kRequestEnded, {});
  d.answer(0);
  d.expect(Stage::kRequestEnded, {{Stage::kRequestEnded, d.queue_index, 0}});
  d.host.lose_pending();
  d.finish_copies();
  d.expect(Stage::kRequestEnded, {{Stage::kRequestEnded, d.queue_index, 0},
                                  {Stage::kRequestEnded, d.queue_index, 1, number(CrStatus::kLocAccess)},
                                  {Stage::kRequestEnded, d.queue_index, 2}});
}

TEST(NotesOfRequests, one_that_completes_before_older_ones_ends_then) {
  Noted d({.completes_early = true});
  for (int i = 0; i < 2; ++i) d.post(WrOp::kWrite);
  d.sent();
  d.answer(1);
  d.expect(Stage::kRequestEnded, {{Stage::kRequestEnded, d.queue_index, 1}});
  d.answer(0);
  d.expect(Stage::kRequestEnded, {{Stage::kRequestEnded, d.queue_index, 1}, {Stage::kRequestEnded, d.queue_index, 0}});
}

TEST(NotesOfRequests, a_queue_that_is_flushed_gives_them_up) {
  Noted d;
  for (int i = 0; i < 2; ++i) d.post(WrOp::kWrite);
  d.sent();
  flush_queue(*d.s, d.queue_index);
  d.expect(Stage::kRequestGivenUp, {{Stage::kRequestGivenUp, d.queue_index, 0, number(CrStatus::kWrFlush)},
                                    {Stage::kRequestGivenUp, d.queue_index, 1, number(CrStatus::kWrFlush)}});
  d.expect(Stage::kQueueState, {{Stage::kQueueState, d.queue_index, static_cast<uint32_t>(QueueState::kError)}});
  d.expect(Stage::kQueueFlushed, {{Stage::kQueueFlushed, d.queue_index}});
}

// ---- completions -------------------------------------------------------------------------------------------------

TEST(NotesOfCompletions, a_full_jfc_and_who_waits_for_it_are_told_once) {
  Noted d;
  d.the_jfc().depth = 0;
  d.post(WrOp::kWrite);
  d.sent();
  for (int i = 0; i < 2; ++i) d.answer(0);
  d.timer();
  d.expect(Stage::kJfcFull, {{Stage::kJfcFull, d.jfc}});
  d.expect(Stage::kCompletionWaits, {{Stage::kCompletionWaits, d.jfc}});
}

}  // namespace
}  // namespace ub::ta
