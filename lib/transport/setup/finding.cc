// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/finding.h"

#include <algorithm>

#include "lib/transport/setup/receive_record.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/setup/ways.h"

namespace ub::setup {

using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

namespace {

void ask(CoreState& s, Finding& f) {
  const Way way = ways_to(s, f.what.path, kSmallLane)[f.tries];
  OutRecord out{};
  out.link = f.what.path.link;
  out.local = way.local;
  out.remote = way.remote;
  ControlRecord& r = out.record;
  r.type = RecordType::kFind;
  r.sender_incarnation = s.config.incarnation;
  r.attempt = f.attempt;
  r.object = f.what.id;
  r.flags = f.what.token_id ? wire::kRecordTokenId : 0;
  r.upi = s.config.upi;
  r.sender_eid = f.what.local_eid;
  r.wanted_eid = f.what.eid;
  r.sender_uasid = s.config.self.uasid;
  send_record(s, out);
  f.next_at = s.now + setup_pause(s, f.tries++);
}

bool was_asked(const CoreState& s, const Finding& f, const Arrival& from) {
  const Ways ways = ways_to(s, f.what.path, kSmallLane);
  return f.what.path.link == from.link &&
         std::ranges::any_of(ways.all(), [&](const Way& way) { return way.remote == from.remote; });
}

bool is_free(const CoreState& s, const Finding& f) { return f.what.id == 0 || s.now - f.looked_at >= kAbandonedAfter; }

Finding& begin(CoreState& s, const FindConfig& what) {
  auto gives_way = [&s](const Finding& a, const Finding& b) {
    if (is_free(s, a) != is_free(s, b)) return is_free(s, a);
    if ((a.state == Status::kBusy) != (b.state == Status::kBusy)) return a.state == Status::kBusy;
    return a.looked_at < b.looked_at;
  };
  Finding& f = *std::min_element(s.findings.begin(), s.findings.end(), gives_way);
  f = Finding{what, Status::kBusy, 0, s.prng.next_u32(), 0, {}, s.now};
  return f;
}

}  // namespace

bool has_id(const CoreState& s, uint32_t id, bool token_id) {
  if (id >= kIdSpace) return false;
  if (token_id) return s.token_ids[id].in_use;
  const ObjectKind kind = s.ids[id].kind;
  return kind != ObjectKind::kNone && kind != ObjectKind::kQp;
}

Status find(CoreState& s, const FindConfig& what, uint32_t* uasid) {
  if (what.id == 0 || what.path.link == 0 || what.path.link > s.links.high_water()) return Status::kInvalid;
  auto known = std::find_if(s.findings.begin(), s.findings.end(),
                            [&](const Finding& f) { return f.is(what) && !is_free(s, f); });
  Finding& f = known != s.findings.end() ? *known : begin(s, what);
  f.looked_at = s.now;
  if (f.state == Status::kBusy) {
    if (f.next_at <= s.now) ask(s, f);
    return Status::kBusy;
  }
  *uasid = f.uasid;
  f.what.id = 0;
  return f.state;
}

// FINDs may fill only a quarter of the outbox, so that they do not crowd out the records of channels.
void on_find(CoreState& s, const Arrival& from, const ControlRecord& r) {
  if (r.upi != s.config.upi) return s.drop(Counter::kRxDropRecordUpi);
  if (s.outbox_tail - s.outbox_head >= kOutboxRing / 4) return s.drop(Counter::kRxDropRecordBusy);
  const bool here = meant_for_us(s, r) && has_id(s, r.object, (r.flags & wire::kRecordTokenId) != 0);
  ControlRecord answer = reply_to(s, r, RecordType::kFound, here ? RecordReason::kNone : RecordReason::kUnknownEntity);
  answer.object = r.object;
  send_record(s, {from.link, 0, from.local, from.remote, answer});
}

// An answer is taken only from an address that was asked and with the random attempt of the question, so that only who
// sees the question can forge it.
void on_found(CoreState& s, const Arrival& from, const ControlRecord& r) {
  if (r.upi != s.config.upi) return s.drop(Counter::kRxDropRecordUpi);
  if (r.sender_uasid == 0) return s.drop(Counter::kRxDropRecordParameter);
  bool asked = false;  // this was asked, perhaps at another address
  for (Finding& f : s.findings) {
    if (is_free(s, f) || f.what.id != r.object || f.attempt != r.attempt || f.state != Status::kBusy) continue;
    asked = true;
    if (!was_asked(s, f, from) || f.what.eid != r.sender_eid) continue;
    f.uasid = r.sender_uasid;
    f.state = r.reason == RecordReason::kNone ? Status::kOk : Status::kInvalid;
    return;
  }
  s.drop(asked ? Counter::kRxDropRecordPeer : Counter::kRxDropRecordStale);
}

}  // namespace ub::setup
