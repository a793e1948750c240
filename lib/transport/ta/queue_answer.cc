// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/queue_answer.h"

#include "lib/transport/ta/kept_results.h"
#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/tp/fused_ack.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

namespace {

tp::MessageQueue& queue_of_answers(tp::Channel& ch) { return ch.compact ? ch.in_flight : ch.answers; }
tp::MessagePool& pool_of_answers(CoreState& s, const tp::Channel& ch) { return ch.compact ? s.messages : s.answers; }

tp::TxMessage* queue_answer(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  tp::TxMessage* m = queue_of_answers(ch).push(pool_of_answers(s, ch));
  UB_ASSERT(m != nullptr);  // room_for_answer() was asked
  *m = tp::TxMessage{};
  activate(s, channel);
  return m;
}

tp::TxMessage& last_answer(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  return queue_of_answers(ch).back(pool_of_answers(s, ch));
}

}  // namespace

void count_refusal(CoreState& s, uint32_t channel, const wire::Btah& request, uint8_t rspst) {
  if (rspst == wire::kRspRnr) s.count(channel, ChannelCount::kRnrSent);
  if (rspst == wire::kRspError) s.count(Counter::kTaTxError);
  s.note(Stage::kMessageRefused, channel, request.tassn.value(), request.rc_id, rspst);
}

wire::TaOpcode answer_opcode(wire::TaOpcode request) {
  if (request == wire::TaOpcode::kRead) return wire::TaOpcode::kReadResponse;
  return wire::ta_is_atomic(request) ? wire::TaOpcode::kAtomicResponse : wire::TaOpcode::kTaack;
}

namespace {

void queue_answer_of(CoreState& s, uint32_t channel, const wire::Btah& request, wire::TaOpcode opcode, uint8_t rspst,
                     uint8_t rspinfo) {
  tp::TxMessage* m = queue_answer(s, channel);
  m->kind = tp::MessageKind::kAnswer;
  m->source = request.rc_id;
  m->tassn = request.tassn;
  m->opcode = opcode;
  m->rspst = rspst;
  m->rspinfo = rspinfo;
}

// A failure, or any answer on ROL.
[[gnu::noinline, gnu::cold]] void answer_specially(CoreState& s, uint32_t channel, const wire::Btah& request,
                                                   wire::TaOpcode opcode, uint8_t rspst, uint8_t rspinfo) {
  if (rspst == wire::kRspOk) return tp::demand_ack(s, channel, s.now);  // READs and atomics answer elsewhere
  count_refusal(s, channel, request, rspst);
  if (s.channels[channel].repeats != 0) keep_result(s, channel, request, {0, 0, opcode, rspst, rspinfo, 0});
  queue_answer_of(s, channel, request, opcode, rspst, rspinfo);
}

// Consecutive ones share one answer. `queue` and `pool` are those of queue_answer().
[[gnu::always_inline]] inline void queue_success(CoreState& s, uint32_t channel, const wire::Btah& request,
                                                 wire::TaOpcode opcode, tp::MessageQueue& queue,
                                                 tp::MessagePool& pool) {
  if (!queue.empty()) {
    tp::TxMessage& last = queue.back(pool);
    if (last.opcode == opcode && last.rspst == wire::kRspOk &&  // of other kinds the opcode is 0, which is no answer's
        last.source == request.rc_id && last.rspinfo < wire::kRspInfoMax &&
        request.tassn == last.tassn + last.rspinfo + 1) {
      ++last.rspinfo;
      return;
    }
  }
  queue_answer_of(s, channel, request, opcode, wire::kRspOk, 0);
}

}  // namespace

void answer(CoreState& s, uint32_t channel, const wire::Btah& request, wire::TaOpcode opcode, uint8_t rspst,
            uint8_t rspinfo) {
  tp::Channel& ch = s.channels[channel];
  if ((rspst | uint8_t{ch.rol}) != 0) [[unlikely]]
    return answer_specially(s, channel, request, opcode, rspst, rspinfo);
  if (ch.compact) {
    if (request.no_taack && is_ordered(ch.lane)) return s.count(Counter::kCtpRxSilent);
    if (ch.repeats != 0) keep_result(s, channel, request, {0, 0, opcode, rspst, rspinfo, 0});
    return queue_success(s, channel, request, opcode, ch.in_flight, s.messages);
  }
  queue_success(s, channel, request, opcode, ch.answers, s.answers);
}

void answer_with_context(CoreState& s, uint32_t channel, const wire::Btah& request) {
  const tp::Channel& ch = s.channels[channel];
  const uint32_t scid = ch.rol || ch.compact || names_context(request) ? 0 : open_context(s, ch.peer, request.rc_id);
  if (scid == 0) return answer(s, channel, request, wire::TaOpcode::kTaack, 0, 0);
  queue_answer_of(s, channel, request, wire::TaOpcode::kTaack, 0, 0);
  tp::TxMessage& m = last_answer(s, channel);
  m.source |= kAnswerGrants;  // so that no other success joins it
  m.tassn = Tassn(scid);
}

void answer_failed_read(CoreState& s, uint32_t channel, const wire::Btah& request, uint32_t offset_kib, uint16_t taid,
                        uint8_t rspst, uint8_t rspinfo) {
  answer(s, channel, request, wire::TaOpcode::kReadResponse, rspst, rspinfo);
  tp::TxMessage& m = last_answer(s, channel);
  m.value = offset_kib;
  m.value_high = taid;
}

void answer_atomic(CoreState& s, uint32_t channel, const wire::Btah& request, uint128 old, uint8_t bytes) {
  tp::TxMessage* m = queue_answer(s, channel);
  m->kind = tp::MessageKind::kAnswer;
  m->source = request.rc_id;
  m->tassn = request.tassn;
  m->opcode = wire::TaOpcode::kAtomicResponse;
  m->value = low_half(old);
  m->value_high = high_half(old);
  m->value_bytes = bytes;
  if (s.channels[channel].repeats == 0) return;
  keep_result(s, channel, request, {m->value, m->value_high, m->opcode, wire::kRspOk, 0, bytes});
}

void answer_read(CoreState& s, uint32_t channel, uint32_t job) {
  tp::TxMessage* m = queue_answer(s, channel);
  m->kind = tp::MessageKind::kReadResponse;
  m->source = job;
  m->generation = s.jobs[job].generation;
}

}  // namespace ub::ta
