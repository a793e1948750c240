// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/recovery.h"

#include <algorithm>

#include "lib/transport/tp/paths.h"
#include "lib/transport/tp/retransmission_timeout.h"

namespace ub::tp {
namespace {

constexpr uint32_t kRecordsLookedAt = 64;  // of the oldest ones, at each acknowledgement
constexpr uint16_t kWhereAnyIsLate = 64;   // packets; the tolerance does not fall below, unless it is below already

// Sets or clears a bit and counts it.
void mark(uint64_t* bits, uint32_t* count, Psn psn) {
  if (test_bit(bits, recovery_index(psn))) return;
  set_bit(bits, recovery_index(psn));
  ++*count;
}
void unmark(uint64_t* bits, uint32_t* count, Psn psn) {
  if (!test_bit(bits, recovery_index(psn))) return;
  UB_DCHECK(*count != 0);
  clear_bit(bits, recovery_index(psn));
  --*count;
}

bool says_nothing(const RecoveryBlock& r) {
  return r.sacked_count == 0 && r.resend_count == 0 && r.held_count == 0 && r.resent_count == 0;
}

// ---- records of retransmissions ----

void free_record(State& s, RecoveryBlock& r, uint32_t record) {
  r.records.remove<&Resent::in_line>(s.resent, record);
  --r.record_count;
  s.resent.free(record);
}

void free_records(State& s, RecoveryBlock& r) {
  while (!r.records.empty()) free_record(s, r, r.records.front<&Resent::in_line>(s.resent));
  UB_DCHECK(r.record_count == 0);
}

// A packet that is sent again although its last retransmission was not judged has a new record.
void free_record_of(State& s, RecoveryBlock& r, Psn psn) {
  if (r.records.empty()) return;
  for (uint32_t at = r.records.front<&Resent::in_line>(s.resent); at != 0;
       at = r.records.behind<&Resent::in_line>(s.resent, at)) {
    if (s.resent[at].psn == psn) return free_record(s, r, at);
  }
}

// A retransmission is answered. If the answer is too early to be one to it, the first packet had arrived.
void hear_of(State& s, Channel& ch, RecoveryBlock& r, const Resent& sent, Instant now) {
  if (ch.round_trip.since == Instant{}) return;  // none was measured: nobody knows what is too early
  if (now - sent.at < least_answer_time(ch.round_trip)) {
    ch.tolerance.was_too_small();
    return s.count(number_of(s, ch), ChannelCount::kNeedless);
  }
  if (sent.number < r.late.number) return;
  r.late = {sent.mark, sent.number};
}

// Takes the records of those that arrived off the list.
void hear_of_records(State& s, Channel& ch, RecoveryBlock& r, Instant now) {
  if (r.records.empty()) return;
  uint32_t at = r.records.front<&Resent::in_line>(s.resent);
  for (uint32_t n = 0; at != 0 && n < kRecordsLookedAt; ++n) {
    const uint32_t next = r.records.behind<&Resent::in_line>(s.resent, at);
    if (arrived(r, ch, s.resent[at].psn)) {
      hear_of(s, ch, r, s.resent[at], now);
      free_record(s, r, at);
    }
    at = next;
  }
}

// ---- what is lost ----

struct Losses {
  uint32_t count = 0;
  Psn first;

  void add(RecoveryBlock& r, Psn psn) {
    if (!queue_resend(r, psn)) return;
    if (count++ == 0 || psn.before(first)) first = psn;
  }
};

// Packets before `border` that were sent once.
void judge_first(const Channel& ch, RecoveryBlock& r, Psn border, Losses& losses) {
  for (Psn p = r.border; p.before(border); ++p) {
    if (arrived(r, ch, p) || goes_again(r, p) || test_bit(r.resent, recovery_index(p))) continue;
    losses.add(r, p);
  }
  if (border.after(r.border)) r.border = border;
}

// How many packets were sent after a retransmission up to what has arrived, at least.
uint32_t sent_since(const Resent& sent, Psn reach, const Late& late) {
  const int32_t new_ones = reach.signed_distance(sent.mark) + 1;
  uint32_t since = new_ones > 0 ? static_cast<uint32_t>(new_ones) : 0;
  if (late.number > sent.number) {
    since = std::max(since, late.mark.distance(sent.mark) + (late.number - sent.number));
  }
  return since;
}

// Retransmissions, the oldest first.
void judge_resent(State& s, Channel& ch, RecoveryBlock& r, Psn reach, const Late& late, uint32_t tolerance, Psn end,
                  Losses& losses) {
  while (!r.records.empty()) {
    const uint32_t oldest = r.records.front<&Resent::in_line>(s.resent);
    const Resent& sent = s.resent[oldest];
    if (!arrived(r, ch, sent.psn)) {
      if (sent_since(sent, reach, late) <= tolerance || !sent.psn.before(end)) return;
      losses.add(r, sent.psn);
    }
    free_record(s, r, oldest);
  }
}

Psn farther(Psn a, Psn b) { return a.after(b) ? a : b; }

// The packet has arrived, which was not known. It was late only if a report said that it was missing when a later one
// had arrived: of packets beyond the bitmap of a report, nobody said anything. The next one may be twice as late, and
// where any is late at all, others may be late by kWhereAnyIsLate.
void came(RecoveryBlock& r, Channel& ch, Psn psn) {
  if (psn.after(r.reach)) {
    r.reach = psn;
  } else if (psn.before(r.judge_reach) && !test_bit(r.resent, recovery_index(psn))) {
    const uint32_t usual = std::min(ch.tolerance.packets, kWhereAnyIsLate);
    ch.tolerance.came_late(std::max(2 * r.judge_reach.distance(psn), usual));
  }
}

// A packet that was overtaken is lost after so long.
Duration lateness(const Channel& ch) {
  if (ch.round_trip.smoothed.ns == 0) return ch.rto;  // nobody knows what is late
  return ch.tolerance.keeps_order() ? margin_of(ch.round_trip) : pause_of(ch.round_trip);
}

// What was overtaken by the packet `reach` is lost unless it arrives in time.
void begin_pause(State& s, const Channel& ch, RecoveryBlock& r, Psn reach, Instant now) {
  r.judge_at = now + lateness(ch);
  r.judge_reach = reach;
  r.judge_late = r.late;
  s.timers.arm(s.timer_of_channel(number_of(s, ch)), r.judge_at);
}

// Does the path change the order, and has a good part of the tolerance arrived since the pause began? Then their number
// soon tells what is lost, and the pause begins anew: by time, a packet would look lost while many others overtake it.
bool number_will_tell(const Channel& ch, const RecoveryBlock& r, Psn reach) {
  constexpr uint32_t kPausesAtMost = 8;
  if (ch.tolerance.keeps_order() || !reach.after(r.judge_reach)) return false;
  return kPausesAtMost * reach.distance(r.judge_reach) >= ch.tolerance.packets;
}

uint32_t tell(State& s, const Channel& ch, const Losses& losses, Psn* first) {
  *first = losses.first;
  if (losses.count != 0) s.note(Stage::kPacketsLost, number_of(s, ch), losses.count, losses.first.value());
  return losses.count;
}

}  // namespace

RecoveryBlock& recovery_block(State& s, Channel& ch) {
  if (ch.recovery == 0) {
    ch.recovery = s.recovery.alloc();  // never 0: the pool has a block for each channel
    RecoveryBlock& r = s.recovery[ch.recovery];
    r = RecoveryBlock{};
    r.reach = r.late.mark = ch.oldest_unacked - 1;
    r.border = r.judge_reach = ch.oldest_unacked;
    r.judge_at = Instant::never();
  }
  return s.recovery[ch.recovery];
}

void free_recovery(State& s, Channel& ch) {
  if (ch.recovery == 0) return;
  free_records(s, s.recovery[ch.recovery]);
  s.recovery.free(ch.recovery);
  ch.recovery = 0;
}

void release_recovery(State& s, Channel& ch) {
  if (ch.recovery == 0) return;
  const RecoveryBlock& r = s.recovery[ch.recovery];
  if (says_nothing(r) && (r.judge_at.is_never() || ch.outstanding() == 0)) free_recovery(s, ch);
}

bool queue_resend(RecoveryBlock& r, Psn psn) {
  if (goes_again(r, psn)) return false;
  UB_DCHECK(!test_bit(r.sacked, recovery_index(psn)));  // the peer has it
  mark(r.resend, &r.resend_count, psn);
  return true;
}

void take_from_resends(RecoveryBlock& r, Psn psn) {
  unmark(r.held, &r.held_count, psn);
  unmark(r.resend, &r.resend_count, psn);
}

void resend_waits(RecoveryBlock& r, Psn psn) {
  UB_DCHECK(test_bit(r.resend, recovery_index(psn)));
  take_from_resends(r, psn);
  mark(r.held, &r.held_count, psn);
}

void note_resent(State& s, Channel& ch, Psn psn, Instant now) {
  RecoveryBlock& r = s.recovery[ch.recovery];
  UB_DCHECK(goes_again(r, psn));
  take_from_resends(r, psn);
  if (arrived(r, ch, psn)) return;  // it only asks for an acknowledgement
  mark(r.resent, &r.resent_count, psn);
  if (ch.go_back_n) return;      // a TPNAK or the timeout says whether it was lost again
  if (ch.several_paths) return;  // paths know what left when
  free_record_of(s, r, psn);
  const uint32_t record = has_share(s.resent, r.record_count) ? s.resent.alloc() : 0;
  if (record == 0) return s.count(Counter::kTpTxNoRecord);
  s.resent[record] = {psn, ch.next_psn, ++r.last_number, now, {}};
  r.records.push_back<&Resent::in_line>(s.resent, record);
  ++r.record_count;
}

bool note_arrived(RecoveryBlock& r, Channel& ch, Psn psn) {
  if (test_bit(r.sacked, recovery_index(psn))) return false;
  came(r, ch, psn);
  mark(r.sacked, &r.sacked_count, psn);
  take_from_resends(r, psn);
  return true;
}

void forget_recovered(State& s, Channel& ch, Psn from, Psn to, Instant now) {
  RecoveryBlock& r = s.recovery[ch.recovery];
  for (Psn p = from; p != to; ++p) {
    if (!test_bit(r.sacked, recovery_index(p))) came(r, ch, p);
    unmark(r.sacked, &r.sacked_count, p);
    unmark(r.resent, &r.resent_count, p);
    take_from_resends(r, p);
  }
  r.border = farther(r.border, to);
  hear_of_records(s, ch, r, now);
  release_recovery(s, ch);
}

uint32_t judge(State& s, Channel& ch, Psn end, Instant now, Psn* first) {
  if (ch.several_paths) return judge_by_paths(s, ch, end, now, first);
  RecoveryBlock& r = s.recovery[ch.recovery];
  const uint32_t tolerance = ch.tolerance.packets;
  Losses losses;
  hear_of_records(s, ch, r, now);
  const Psn border = farther(r.reach, r.late.mark) - tolerance;
  judge_first(ch, r, end.before(border) ? end : border, losses);
  judge_resent(s, ch, r, r.reach, r.late, tolerance, end, losses);
  const uint32_t missing = r.reach.distance(ch.oldest_unacked - 1) - r.sacked_count;
  const Psn reach = end.after(r.reach) ? r.reach : end - 1;  // of the packets before it, it is known which have arrived
  const bool begins = r.judge_at.is_never() || number_will_tell(ch, r, reach);
  if (begins && missing > r.resend_count + r.held_count) begin_pause(s, ch, r, reach, now);
  return tell(s, ch, losses, first);
}

uint32_t judge_overdue(State& s, Channel& ch, Psn* first) {
  RecoveryBlock& r = s.recovery[ch.recovery];
  r.judge_at = Instant::never();
  Losses losses;
  judge_first(ch, r, r.judge_reach, losses);
  judge_resent(s, ch, r, r.judge_reach, r.judge_late, 0, r.judge_reach, losses);
  return tell(s, ch, losses, first);
}

uint32_t queue_all(State& s, Channel& ch, Psn from) {
  RecoveryBlock& r = recovery_block(s, ch);
  free_records(s, r);
  uint32_t queued = 0;
  for (Psn p = from; p != ch.next_psn; ++p) {
    if (test_bit(r.sacked, recovery_index(p))) continue;
    if (queue_resend(r, p)) ++queued;
  }
  return queued;
}

}  // namespace ub::tp
