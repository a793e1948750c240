// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/kept_results.h"

#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

namespace {

// Mostly the same queue sends several requests.
QueueResults* find_results(Repeats& r, uint32_t rcid) {
  for (uint32_t left = r.results_count, at = r.results_last; left != 0; --left, ++at) {
    if (at >= r.results_count) at = 0;
    if (r.results[at].rcid != rcid) continue;
    r.results_last = static_cast<uint8_t>(at);
    return &r.results[at];
  }
  return nullptr;
}

QueueResults* add_results(Repeats& r, uint32_t rcid, Tassn first) {
  if (r.results_count == kRepeatQueues) return nullptr;
  QueueResults& q = r.results[r.results_count++];
  q.rcid = rcid;
  q.newest = first;
  q.kept = 0;
  return &q;
}

uint64_t bit_of(Tassn t) { return uint64_t{1} << (t.value() % kKeptResults); }
bool on_record(const QueueResults& q, Tassn t) { return !t.after(q.newest) && q.newest.distance(t) < kKeptResults; }

// The record moves on to a newer request. The places of those between are empty.
void advance(QueueResults& q, Tassn to) {
  if (to.distance(q.newest) >= kKeptResults) q.kept = 0;
  for (; q.newest != to && q.kept != 0;) q.kept &= ~bit_of(++q.newest);
  q.newest = to;
}

void answer_again(CoreState& s, uint32_t channel, const wire::Btah& request, const KeptResult& r) {
  s.count(Counter::kCtpRxRepeated);
  if (r.opcode != wire::TaOpcode::kAtomicResponse || r.rspst != wire::kRspOk) {
    return answer(s, channel, request, r.opcode, r.rspst, r.rspinfo);
  }
  answer_atomic(s, channel, request, make_uint128(r.value, r.value_high), r.value_bytes);
}

}  // namespace

bool is_to_be_executed(CoreState& s, uint32_t channel, const wire::Btah& request) {
  if (names_context(request)) return true;  // it is refused
  Repeats& r = repeats_of(s, s.channels[channel]);
  const Tassn t = request.tassn;
  QueueResults* q = find_results(r, request.rc_id);
  // A READ may run twice, and is not on record. It moves the record on all the same: behind many READs, the next
  // request would otherwise look older than the newest one on record.
  if (request.opcode == wire::TaOpcode::kRead) {
    if (q != nullptr && t.after(q->newest)) advance(*q, t);
    return true;
  }
  if (q == nullptr) q = add_results(r, request.rc_id, t);
  if (q == nullptr) {
    s.drop(Counter::kCtpRxNoRecord);
    return false;
  }
  if (t.after(q->newest)) advance(*q, t);
  if (!on_record(*q, t)) {
    s.drop(Counter::kCtpRxOld);
    return false;
  }
  if ((q->kept & bit_of(t)) == 0) return true;
  if (request.retry) {
    answer_again(s, channel, request, q->results[t.value() % kKeptResults]);
  } else {
    s.drop(Counter::kCtpRxDuplicate);
  }
  return false;
}

void keep_result(CoreState& s, uint32_t channel, const wire::Btah& request, const KeptResult& result) {
  if (result.rspst == wire::kRspRnr || result.rspst == wire::kRspPageFault) return;
  if (result.opcode == wire::TaOpcode::kReadResponse) return;
  QueueResults* q = find_results(repeats_of(s, s.channels[channel]), request.rc_id & kAnswerRcid);
  if (q == nullptr || !on_record(*q, request.tassn)) return;  // it was refused for its form
  q->kept |= bit_of(request.tassn);
  q->results[request.tassn.value() % kKeptResults] = result;
}

}  // namespace ub::ta
