// SPDX-License-Identifier: Apache-2.0
//
// Makes the target's answers (UB Base Specification Rev 2.0, 7.3.1.1), and queues them on the channel by which the
// request came. packet_sender.h sends them. The descriptor in the queue holds all of an answer, except the bytes of a
// READ response, which are those of its job (read_jobs.h). Acknowledgements of the transport are in tp/owed_ack.h.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

constexpr uint32_t kSpareChunks = 64;  // kept free, so that messages that are being executed can be answered

// May the channel add to what it has in CoreState::answers? One whose peer takes no answers may hold at most as many
// chunks as it leaves free. For each READ job one chunk stays free, because its segment may be unregistered, and then
// an error answer follows.
inline bool has_chunks(const CoreState& s, const tp::Channel& ch) {
  const uint32_t held = ch.answers.size() / 16;  // not more than kMessagesPerChunk, and cheaper
  static_assert(tp::kMessagesPerChunk >= 16);
  return s.answers.capacity() - s.answers.in_use() > kSpareChunks + s.jobs.in_use() + held;
}
// Is there room for every answer that the execution of one message of this channel may need?
inline bool room_for_answer(const CoreState& s, const tp::Channel& ch) {
  const bool room = has_chunks(s, ch);
  return room || ch.compact;  // a request of CTP that was admitted has room (PacketReceiver::admits_request())
}

// TxMessage::source of an answer: the RCID, and above it what else ATAH says of the context (7.2.2). So long as a
// request is executed, Btah::rc_id has the same form.
constexpr uint32_t kAnswerToContext = 1u << 20;  // the request named a sequence context
constexpr uint32_t kAnswerGrants = 1u << 21;     // its TASSN is the SCID of a new sequence context
constexpr uint32_t kAnswerRcid = (1u << 20) - 1;

// Queues a TAACK, an error or an RNR for this request. Successes of consecutive TASSNs share one TAACK. The success of
// a request that wants no TAACK (ROL by CTP, 7.2.1) has none. Elsewhere No_TAACK means nothing, and a failure is
// answered in any case, because nobody would learn of it otherwise.
void answer(CoreState& s, uint32_t channel, const wire::Btah& request, wire::TaOpcode opcode, uint8_t rspst,
            uint8_t rspinfo);
// Queues the TAACK for a request that asks for a sequence context, and makes one for its queue if there is room (ROT).
[[gnu::noinline, gnu::cold]] void answer_with_context(CoreState& s, uint32_t channel, const wire::Btah& request);
// Queues the answer to a READ that fails. `offset_kib` and `taid` are those of the request, which its answer repeats.
void answer_failed_read(CoreState& s, uint32_t channel, const wire::Btah& request, uint32_t offset_kib, uint16_t taid,
                        uint8_t rspst, uint8_t rspinfo);
// Queues the response to an atomic, with the value that it found. `bytes`: of the value; 0: the answer has none.
void answer_atomic(CoreState& s, uint32_t channel, const wire::Btah& request, uint128 old, uint8_t bytes);
// Queues the response of a READ job.
void answer_read(CoreState& s, uint32_t channel, uint32_t job);

// Counts and notes an answer that is no success.
[[gnu::noinline, gnu::cold]] void count_refusal(CoreState& s, uint32_t channel, const wire::Btah& request,
                                                uint8_t rspst);

// The opcode of the answer to a request.
wire::TaOpcode answer_opcode(wire::TaOpcode request);

}  // namespace ub::ta
