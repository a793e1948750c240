// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/requester.h"

#include "lib/base/assert.h"

namespace ub::roce {
namespace {

SentRequest& at(RequestRing ring, uint32_t number) { return ring[number & (ring.size() - 1)]; }

uint32_t psns_for(RequestKind kind, uint32_t length, uint32_t mtu) {
  return kind == RequestKind::kAtomic || length == 0 ? 1 : (length - 1) / mtu + 1;
}

bool in_flight(const RequesterState& s, Psn psn) { return psn.distance(s.oldest) < s.sent_end.distance(s.oldest); }

void restart_timer(RequesterState& s, Instant now) {
  const bool waits = s.oldest != s.sent_end && s.timeout > Duration{};
  s.deadline = waits ? later(now, s.wait_until) + s.timeout : Instant::never();
}

/// All packets from the oldest on are sent again. False: the retries are used up.
bool go_back(RequesterState& s, Instant now) {
  if (s.retries_left == 0) return false;
  --s.retries_left;
  s.went_back = true;
  rewind(s);
  restart_timer(s, now);
  return true;
}

/// `oldest` has moved on.
void note_progress(RequesterState& s, Instant now) {
  if (s.cursor.before(s.oldest)) rewind(s);
  s.retries_left = s.retry_count;
  s.rnr_left = s.rnr_retry;
  s.went_back = false;
  s.wait_until = {};
  restart_timer(s, now);
}

void complete_head(RequesterState& s, RequestRing ring) {
  if (has_response(at(ring, s.head).kind)) --s.reads_in_flight;
  ++s.head;
}

/// Nothing before `psn` is in flight any more. It stops at a READ or atomic whose response did not come, because only
/// the response itself completes it.
void retire_before(RequesterState& s, RequestRing ring, Instant now, Psn psn, Progress* progress) {
  const Psn before = s.oldest;
  while (s.head != s.tail && s.oldest != psn) {
    const SentRequest& r = at(ring, s.head);
    if (has_response(r.kind)) break;
    const Psn end = r.first_psn + r.psns;
    if (psn.before(end)) {
      s.oldest = psn;
      break;
    }
    s.oldest = end;
    complete_head(s, ring);
    ++progress->completed;
  }
  if (s.oldest != before) note_progress(s, now);
}

/// Packets are missing at the responder, or its answers are missing here. A gap is handled once.
void note_gap(RequesterState& s, Instant now, Progress* progress) {
  if (s.went_back) return;
  progress->gap = true;
  if (!go_back(s, now)) progress->failed = CrStatus::kAckTimeout;
}

void wait_for_receive(RequesterState& s, Instant now, uint8_t timer, Progress* progress) {
  if (now < s.wait_until) return;  // the same refusal came once more
  if (s.rnr_left == 0) {
    progress->failed = CrStatus::kRnrRetryExceeded;
    return;
  }
  if (s.rnr_retry != kForEver) --s.rnr_left;
  s.wait_until = now + rnr_delay(timer);
  rewind(s);
  restart_timer(s, now);
}

CrStatus status_of(NakCode code) {
  if (code == NakCode::kInvalidRequest) return CrStatus::kRemUnsupported;
  return code == NakCode::kRemoteAccess ? CrStatus::kRemAccessAbort : CrStatus::kRemOperation;
}

void note_credits(RequesterState& s, Aeth aeth) {
  s.limited = aeth.syndrome.value() != kNoCredits;
  s.ssn_limit = aeth.msn + credits_of(aeth.syndrome.value());
}

bool has_credit(const RequesterState& s, const SentRequest& r) {
  return !s.limited || !takes_receive(r.kind) || !r.ssn.after(s.ssn_limit);
}

/// Is there room for such a request?
bool has_room(const RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length) {
  if (s.tail - s.head == ring.size()) return false;
  // Old and new can be told apart only while less than half of all PSNs are in flight.
  if (s.end.distance(s.oldest) + psns_for(kind, length, s.mtu) >= Psn::kHalf) return false;
  return !has_response(kind) || s.reads_in_flight < s.max_reads;
}

}  // namespace

bool may_begin(const RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length) {
  return s.cursor == s.end && has_room(s, ring, kind, length);
}

void rewind(RequesterState& s) {
  s.cursor = s.oldest;
  s.cursor_request = s.head;
}

void begin(RequesterState& s, RequestRing ring, RequestKind kind, uint32_t length) {
  UB_DCHECK(length <= kMaxRequestBytes && has_room(s, ring, kind, length));
  SentRequest& r = at(ring, s.tail++);
  r = {s.end, psns_for(kind, length, s.mtu), length, ++s.last_ssn, kind};
  s.end += r.psns;
  if (has_response(r.kind)) ++s.reads_in_flight;
}

bool next_packet(const RequesterState& s, RequestRing ring, Instant now, NextPacket* out) {
  if (s.cursor == s.end || now < s.wait_until) return false;
  const bool idle = s.cursor == s.oldest;
  if (!idle && s.cursor.distance(s.oldest) >= s.window) return false;
  const SentRequest& r = at(ring, s.cursor_request);
  // Without a credit one packet is sent alone. Its answer brings credits, or it is an RNR NAK.
  const bool probes = !has_credit(s, r);
  if (probes && !idle) return false;
  const uint32_t skipped = s.cursor.distance(r.first_psn);
  *out = {s.cursor_request, skipped, has_response(r.kind) || skipped + 1 == r.psns, probes || has_response(r.kind)};
  return true;
}

void sent(RequesterState& s, RequestRing ring, Instant now, const NextPacket& packet) {
  const SentRequest& r = at(ring, packet.request);
  const bool idle = s.cursor == s.oldest;
  s.cursor = r.first_psn + (has_response(r.kind) ? r.psns : packet.skipped + 1);
  if (packet.last) s.cursor_request = packet.request + 1;
  if (s.cursor.after(s.sent_end)) s.sent_end = s.cursor;
  if (idle) restart_timer(s, now);
}

Progress on_ack(RequesterState& s, RequestRing ring, Instant now, Psn psn, Aeth aeth) {
  Progress progress;
  const AckKind kind = aeth.syndrome.kind();
  if (!in_flight(s, psn)) {
    progress.stale = true;
    if (kind == AckKind::kAck && psn + 1 == s.oldest) note_credits(s, aeth);  // receives were posted meanwhile
    return progress;
  }
  const Psn done = kind == AckKind::kAck ? psn + 1 : psn;
  retire_before(s, ring, now, done, &progress);
  if (kind == AckKind::kAck) note_credits(s, aeth);
  const bool packets_missing = kind == AckKind::kNak && aeth.syndrome.nak_code() == NakCode::kPsnSequence;
  // The former: a READ or atomic before it was executed, and its response is lost.
  if (s.oldest != done || packets_missing) {
    note_gap(s, now, &progress);
  } else if (kind == AckKind::kRnr) {
    wait_for_receive(s, now, aeth.syndrome.value(), &progress);
  } else if (kind == AckKind::kNak) {
    progress.failed = status_of(aeth.syndrome.nak_code());
  }
  return progress;
}

Response on_response(RequesterState& s, RequestRing ring, Instant now, Psn psn, bool last, uint32_t payload_bytes) {
  Response out;
  if (!in_flight(s, psn)) {
    out.progress.stale = true;
    return out;
  }
  retire_before(s, ring, now, psn, &out.progress);
  if (s.oldest != psn) {
    note_gap(s, now, &out.progress);
    return out;
  }
  const SentRequest& r = at(ring, s.head);
  if (!has_response(r.kind)) {  // the packet did not ask for it: an acknowledgement was due
    out.progress.failed = CrStatus::kRemRespLen;
    return out;
  }
  out.request = s.head;
  out.offset = psn.distance(r.first_psn) * s.mtu;
  const bool ends = psn + 1 == r.first_psn + r.psns;
  const uint32_t bytes = r.kind == RequestKind::kAtomic ? 0 : ends ? r.length - out.offset : s.mtu;
  if (ends != last || bytes != payload_bytes) {
    out.progress.failed = CrStatus::kRemRespLen;
    return out;
  }
  out.taken = true;
  s.oldest = psn + 1;
  if (ends) {
    complete_head(s, ring);
    ++out.progress.completed;
  }
  note_progress(s, now);
  return out;
}

Progress on_timeout(RequesterState& s, Instant now) {
  Progress progress;
  if (now < s.deadline) return progress;
  if (!go_back(s, now)) progress.failed = CrStatus::kAckTimeout;
  return progress;
}

}  // namespace ub::roce
