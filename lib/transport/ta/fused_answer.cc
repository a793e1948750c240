// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/fused_answer.h"

#include <utility>

#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/receive_matching.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/tp/fused_ack.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

// ---- target ----------------------------------------------------------------------------------------------------

bool answered_by_ack(const tp::Channel& ch, wire::TaOpcode request) {
  return ch.rol && answer_opcode(request) == wire::TaOpcode::kTaack;
}

bool fail_by_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& last, const wire::Btah& request, uint8_t rspst,
                 uint8_t rspinfo) {
  // On other channels there is no answer in this case; here silence would be success.
  const bool silent = rspst == kSilent;
  if (silent) rspst = wire::kRspFused, rspinfo = wire::kFusedFatal;
  if (!tp::freeze(s, channel, s.now, {last.psn, last.tpmsn, rspst, rspinfo})) return false;
  if (silent) s.drop(Counter::kRxTargetNotReady);
  count_refusal(s, channel, request, rspst);
  return true;
}

void note_unexecuted(const CoreState& s, tp::Channel& ch) {
  if (!ch.rol) return;
  uint32_t i = ch.ending.empty() ? 0 : ch.ending.front<&ParkedMessage::in_line>(s.parked);
  while (i != 0 && s.parked[i].vanished) i = ch.ending.behind<&ParkedMessage::in_line>(s.parked, i);
  ch.fused.holds = i != 0;
  if (i == 0) return;
  ch.fused.unexecuted = s.parked[i].rtp.psn;
  ch.fused.unexecuted_message = s.parked[i].number;
}

// ---- initiator -------------------------------------------------------------------------------------------------

namespace {

// The segment whose message this is, if its answer is awaited.
bool awaits_answer(CoreState& s, const tp::TxMessage& m, AnsweredSegment* a) {
  if (m.kind != tp::MessageKind::kRequest) return false;
  WrState* wr = request_of(s, m);
  if (wr == nullptr || m.segment < wr->base || m.segment >= wr->cut) return false;
  if (((wr->answered | wr->refused) & segment_bit(m.segment)) != 0) return false;
  *a = {m.source, m.work_request, wr, m.segment};
  return true;
}

// Ends the segments of acknowledged messages. What follows from that for a queue is done once for several of them.
class Executed {
 public:
  Executed(CoreState& s, uint32_t channel) : s_(s), channel_(channel) {}
  ~Executed() { go_on_with(0); }
  Executed(const Executed&) = delete;
  Executed& operator=(const Executed&) = delete;

  void end(const tp::TxMessage& m) {
    AnsweredSegment a;
    if (!awaits_answer(s_, m, &a)) return;
    if (is_fenced(wqe_of(s_.queues[a.queue], *a.wr).op)) return on_progress(s_, m);  // a response answers it
    if (a.queue != queue_) go_on_with(a.queue);
    end_segment(s_, a, CrStatus::kSuccess);
    on_ended(s_, a.queue, a.number);
  }
  // Those that ended so far have consequences now, and others later.
  void go_on_with(uint32_t queue) {
    const uint32_t before = std::exchange(queue_, queue);
    if (before != 0) go_on(s_, before, channel_);
  }

 private:
  CoreState& s_;
  uint32_t channel_, queue_ = 0;
};

void fail_message(CoreState& s, const tp::TxMessage& m, const wire::RtpHeader& status) {
  AnsweredSegment a;
  if (!awaits_answer(s, m, &a)) return;
  switch (status.rspst) {
    case wire::kRspRnr:
    case wire::kRspPageFault:
      return refuse_segment(s, a, wire::refusal_duration(status.rspst, status.rspinfo));
    case wire::kRspFused:
      if (status.rspinfo == wire::kFusedRetry) return refuse_segment(s, a, wire::rnr_duration(kSoon));
      return finish_segment(s, a, CrStatus::kAckTimeout);  // as if nobody had answered
    default:
      s.count(Counter::kTaRxError);
      return finish_segment(s, a, error_status(s, a, status.rspinfo));
  }
}

// Packets were acknowledged. `failure`: the status of one of their messages, or nullptr.
void on_answered(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged, const wire::RtpHeader* failure) {
  tp::Channel& ch = s.channels[channel];
  Executed executed(s, channel);
  tp::acknowledged_messages(s, ch, acknowledged, [&](const tp::TxMessage& m, bool whole) {
    if (whole && m.kind == tp::MessageKind::kReadResponse) return finish_read_job(s, m);
    if (m.kind != tp::MessageKind::kRequest) return;
    if (whole && failure != nullptr && m.tpmsn == failure->tpmsn) {
      executed.go_on_with(0);
      return fail_message(s, m, *failure);
    }
    whole && ch.rol ? executed.end(m) : on_progress(s, m);
  });
  if (acknowledged.to != acknowledged.from) begin_turn_of_next(s, ch);
}

bool reports_failure(const wire::RtpHeader& rtp) {
  return rtp.rspst != wire::kRspOk && !(rtp.rspst == wire::kRspFused && rtp.rspinfo == wire::kFusedOk);
}

}  // namespace

void on_executed(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged) {
  on_answered(s, channel, acknowledged, nullptr);
}

void on_fused_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp) {
  if (tp::reports_gap(rtp)) return on_answered(s, channel, tp::on_nak(s, channel, s.now, rtp), nullptr);
  const bool failed = reports_failure(rtp);
  if (failed && !tp::acceptable(s, s.channels[channel], rtp.psn)) return;
  on_answered(s, channel, tp::on_ack(s, channel, s.now, rtp), failed ? &rtp : nullptr);
  if (failed && s.channels[channel].rol) tp::confirm(s, channel, s.now, rtp);
}

}  // namespace ub::ta
