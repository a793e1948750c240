// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/receives.h"

#include <algorithm>

#include "lib/transport/ta/completion.h"
#include "lib/transport/wire/response_status.h"

namespace ub {

namespace {

constexpr uint32_t kFlushesPerVisit = 64;  // about 5 us

// ---- out of the ring -------------------------------------------------------------------------------------------

// A copy of a receive element of the ring. The copy is checked and used, because the application may change the ring at
// any time.
struct PostedReceive {
  Rqe slot[rqe_slots(kMaxSges)];
};

// Copies the oldest posted element; false: there is none, or it is not valid.
bool fetch_receive(const Jfr& r, uint32_t produced, PostedReceive* out) {
  if (produced == r.consumed) return false;
  uint32_t at = r.consumed & r.mask;
  out->slot[0] = r.slots[at];
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const Rqe& head = out->slot[0];
  if (head.slots == 0 || head.slots > produced - r.consumed || head.slots > r.mask + 1 - at) return false;
  if (head.skip != 0) return true;
  if (head.sge_count > kMaxSges || head.slots < rqe_slots(head.sge_count)) return false;
  for (uint32_t i = 1; i < rqe_slots(head.sge_count); ++i) out->slot[i] = r.slots[at + i];
  return true;
}

// ---- their places in a JFC -------------------------------------------------------------------------------------

// The receive was completed, or will not be completed into this JFC: its reserved place becomes free.
void give_place_back(CoreState& s, RxReceive& receive) {
  if (!receive.counted) return;
  UB_DCHECK(s.jfcs[receive.jfc].reserved != 0);
  --s.jfcs[receive.jfc].reserved;
  receive.counted = false;
}

// ---- those that copies of dead channels may still write --------------------------------------------------------

uint32_t first_with_late_copies(const CoreState& s) {
  const IndexList& list = s.receives_with_late_copies;
  return list.empty() ? 0 : list.front<&RxReceive::on_list>(s.receives);
}
uint32_t next_with_late_copies(const CoreState& s, uint32_t receive) {
  return s.receives_with_late_copies.behind<&RxReceive::on_list>(s.receives, receive);
}

}  // namespace

uint32_t take_receive(CoreState& s, uint32_t jfr, uint32_t jfc) {
  Jfr& r = s.jfrs[jfr];
  if (!ta::jfc_has_room(s, jfc)) return 0;
  uint32_t index = 0;
  if (!r.returned.empty()) {
    index = r.returned.pop_front<&RxReceive::on_list>(s.receives);
    UB_DCHECK(s.receives[index].jfr == jfr && !s.receives[index].counted);
  } else {
    uint32_t produced = r.indices->produced.load(std::memory_order_acquire);
    if (produced - r.consumed > r.mask + 1) return 0;  // an impossible index
    PostedReceive rqe;
    if (!fetch_receive(r, produced, &rqe)) return 0;
    if (rqe.slot[0].skip != 0) {
      r.consumed += rqe.slot[0].slots;
      r.indices->consumed.store(r.consumed, std::memory_order_release);
      if (!fetch_receive(r, produced, &rqe) || rqe.slot[0].skip != 0) return 0;
    }
    index = s.receives.alloc();
    if (index == 0) return 0;
    const Rqe& head = rqe.slot[0];
    RxReceive& receive = s.receives[index];
    receive.user_ctx = head.user_ctx;
    receive.length = head.length;
    receive.sge_count = head.sge_count;
    for (uint32_t i = 0; i < head.sge_count; ++i) receive.sges[i] = sge_of(head, i);
    r.consumed += head.slots;
    retire(*r.indices, r.consumed, 1);
    if (r.limit_armed && produced - r.consumed < r.threshold) {
      r.limit_armed = false;
      push_event(s, EventKind::kJfrLimit, r.user_data, r.owner);
    }
  }
  RxReceive& receive = s.receives[index];
  receive.jfr = jfr;
  receive.jfc = jfc;
  receive.jetty = 0;
  receive.filled = 0;
  receive.counted = true;
  receive.returns = false;
  s.note(Stage::kReceiveTaken, jfr, index);
  ++s.jfcs[jfc].reserved;
  return index;
}

void discard_receives(CoreState& s, uint32_t jfr) {
  Jfr& r = s.jfrs[jfr];
  free_returned(s, r);
  ta::stop_waiting(s, r.jfc, s.jfr_waiters.of(jfr));
  const uint32_t produced = r.indices->produced.load(std::memory_order_acquire);
  uint32_t dropped = 0;
  for (PostedReceive rqe; fetch_receive(r, produced, &rqe); r.consumed += rqe.slot[0].slots) {
    dropped += rqe.slot[0].skip == 0;
  }
  retire(*r.indices, r.consumed, dropped);
}

// ---- back, or done ---------------------------------------------------------------------------------------------

void return_receive(CoreState& s, uint32_t index) {
  RxReceive& receive = s.receives[index];
  uint32_t jfr = receive.jfr, jfc = receive.jfc;
  give_place_back(s, receive);
  s.note(Stage::kReceiveReturned, jfr, index);
  s.jfrs[jfr].returned.push_front<&RxReceive::on_list>(s.receives, index);
  flush_receives(s, jfr);
  ta::resume_jfc(s, jfc);
}

void return_receive_later(CoreState& s, uint32_t index, const LateCopies& late) {
  RxReceive& receive = s.receives[index];
  UB_DCHECK(late.copies != 0);
  receive.dead_tpn = late.tpn;
  receive.dead_message = late.message;
  receive.copies = late.copies;
  s.receives_with_late_copies.push_front<&RxReceive::on_list>(s.receives, index);
}

void dead_copy_done(CoreState& s, uint32_t tpn, Tpmsn message) {
  for (uint32_t index = first_with_late_copies(s); index != 0; index = next_with_late_copies(s, index)) {
    RxReceive& receive = s.receives[index];
    if (receive.dead_tpn != tpn || receive.dead_message != message) continue;
    if (--receive.copies != 0) return;
    s.receives_with_late_copies.remove<&RxReceive::on_list>(s.receives, index);
    if (receive.jfr != 0) return return_receive(s, index);
    return release_receive(s, index);
  }
}

void release_receive(CoreState& s, uint32_t index) {
  give_place_back(s, s.receives[index]);
  s.receives.free(index);
}

void free_returned(CoreState& s, Jfr& r) {
  while (!r.returned.empty()) s.receives.free(r.returned.pop_front<&RxReceive::on_list>(s.receives));
}

// Flushes at most as many receives as the ring is long, because the application may post and make room without end. It
// also flushes no more than the share of this JFR, because all JFRs that complete into a JFC are visited one after the
// other, and other work waits meanwhile.
void flush_receives(CoreState& s, uint32_t jfr) {
  Jfr& r = s.jfrs[jfr];
  if (r.state != QueueState::kError || r.waiter) return;
  const uint32_t share = std::max(1u, std::min(r.mask + 1, kFlushesPerVisit / s.jfcs[r.jfc].users));
  for (uint32_t flushed = 0; flushed != share; ++flushed) {
    if (!ta::jfc_has_room(s, r.jfc)) return ta::wait_for_room(s, r.jfc, s.jfr_waiters.of(jfr));
    uint32_t receive = take_receive(s, jfr, r.jfc);
    if (receive == 0) return;
    s.note(Stage::kReceiveFlushed, jfr, receive);
    Cqe cqe{};
    cqe.user_ctx = s.receives[receive].user_ctx;
    cqe.status = CrStatus::kWrFlush;
    cqe.opcode = CrOpcode::kNone;
    cqe.flags = kCqeReceive;
    cqe.local_id = r.id;
    cqe.user_data = r.user_data;
    release_receive(s, receive);
    ta::push_completion(s, r.jfc, cqe);
  }
  ta::wait_for_room(s, r.jfc, s.jfr_waiters.of(jfr));
  drive_again(s);
}

// ---- their JFR or jetty is destroyed ---------------------------------------------------------------------------

namespace {

// The jetty of the receive is gone while copies into the receive are pending: it goes back when its message ends.
void return_at_end(CoreState& s, uint32_t receive) {
  RxReceive& r = s.receives[receive];
  give_place_back(s, r);
  r.returns = true;
  r.jetty = 0;
  r.jfc = s.jfrs[r.jfr].jfc;
}

// detach_open_receives() for one message of a channel.
void detach_message(CoreState& s, tp::OpenMessage& m, uint32_t jfr, uint32_t jetty) {
  if (m.receive == 0) return;
  const RxReceive& r = s.receives[m.receive];
  if (jetty != 0 ? r.jetty != jetty : r.jfr != jfr) return;
  m.rspst = wire::kRspError;
  m.rspinfo = wire::kErrRemoteAbort;
  if (jetty != 0 && m.copies != 0) return return_at_end(s, m.receive);  // they may still write into it
  if (jetty != 0) {
    return_receive(s, m.receive);
  } else {
    release_receive(s, m.receive);
  }
  m.receive = 0;
}

// detach_open_receives() for datagrams.
void detach_arriving(CoreState& s, uint32_t jfr, uint32_t jetty) {
  for (uint32_t i = 1; i <= s.arriving.high_water(); ++i) {
    ArrivingDatagram& d = s.arriving[i];
    if (!d.in_use || d.receive == 0) continue;
    RxReceive& r = s.receives[d.receive];
    if (jetty != 0 ? r.jetty != jetty : r.jfr != jfr) continue;
    if (jetty == 0) {
      release_receive(s, d.receive);
      d.receive = 0;
      continue;
    }
    return_at_end(s, d.receive);
  }
}

}  // namespace

void detach_open_receives(CoreState& s, uint32_t jfr, uint32_t jetty) {
  detach_arriving(s, jfr, jetty);
  for (uint32_t i = first_with_late_copies(s); i != 0 && jetty == 0; i = next_with_late_copies(s, i)) {
    RxReceive& r = s.receives[i];
    if (r.jfr != jfr) continue;
    r.jfr = 0;  // freed when the copies are done
    give_place_back(s, r);
  }
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) detach_message(s, s.channels[i].open, jfr, jetty);
  // A record that is not in use has receive 0.
  for (uint32_t i = 1; i <= s.parked.high_water(); ++i) detach_message(s, s.parked[i], jfr, jetty);
}

}  // namespace ub
