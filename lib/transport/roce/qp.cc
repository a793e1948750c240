// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/qp.h"

#include <algorithm>
#include <utility>

#include "lib/transport/resource/objects.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/roce/cm.h"
#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/congestion.h"
#include "lib/transport/roce/datagram.h"
#include "lib/transport/roce/held_packets.h"
#include "lib/transport/roce/kept_packets.h"
#include "lib/transport/roce/posted.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/ta/completion.h"

namespace ub::roce {
namespace {

constexpr uint16_t kFirstSourcePort = 0xC000;

/// The name of a queue pair that is gone, for return_receive_later(). No TPN is equal to it, because TPNs have 24 bits.
constexpr uint32_t haunting(uint32_t qp) { return 1u << 31 | qp; }

Duration timeout_of(uint8_t code) { return code == 0 ? Duration{} : nanoseconds(int64_t{4096} << code); }

// ---- attributes ------------------------------------------------------------------------------------------------

bool valid_path(const CoreState& s, const AhAttributes& path) {
  return path.link != 0 && path.link <= s.links.high_water() && s.links[path.link].up &&
         path.sgid.is_v4() == path.dgid.is_v4();
}

/// Are the values possible? The caller has checked which of them count.
bool valid_values(const CoreState& s, const Qp& qp, const QpAttributes& a, uint32_t mask) {
  const auto says = [mask](uint32_t bit) { return (mask & bit) != 0; };
  if (says(kQpPkey) && a.pkey_index != 0) return false;
  if (says(kQpPort) && a.port_num != 1) return false;
  if (says(kQpAccess) && (a.qp_access_flags & ~(kAccessRead | kAccessWrite | kAccessAtomic)) != 0) return false;
  if (says(kQpPath) && !valid_path(s, a.ah_attr)) return false;
  if (says(kQpMtu) && mtu_of_code(a.path_mtu) == 0) return false;
  if (says(kQpMtu | kQpPath)) {
    const uint32_t link = says(kQpPath) ? a.ah_attr.link : qp.path.link;
    if (mtu_of_code(says(kQpMtu) ? a.path_mtu : qp.path_mtu) > s.links[link].config.mtu) return false;
  }
  if (says(kQpDestination) && a.dest_qp_num > kQpnMask) return false;
  if (says(kQpReceivePsn) && a.rq_psn > Psn::kMask) return false;
  if (says(kQpSendPsn) && a.sq_psn > Psn::kMask) return false;
  if (says(kQpReadsServed) && a.max_dest_rd_atomic > kMaxReadSlots) return false;
  if (says(kQpReadsInFlight) && a.max_rd_atomic > kMaxReadSlots) return false;
  if (says(kQpRnrTimer) && a.min_rnr_timer > 31) return false;
  if (says(kQpTimeout) && a.timeout > 31) return false;
  return (!says(kQpRetries) || a.retry_cnt <= 7) && (!says(kQpRnrRetries) || a.rnr_retry <= 7);
}

void set_path(const CoreState& s, Qp& qp, const AhAttributes& path) {
  qp.path = path;
  const uint16_t fixed = s.links[path.link].config.roce_port;
  const uint32_t mixed = qp.qpn ^ qp.peer_qpn * 5;
  const uint16_t port = fixed != 0 ? fixed : static_cast<uint16_t>(kFirstSourcePort | ((mixed ^ mixed >> 14) & 0x3FFF));
  qp.headers.init({}, {}, {path.sgid, port}, {path.dgid, kUdpPort}, dscp_of(s.config, path));
}

void set_mtu(Qp& qp, uint8_t code) {
  qp.path_mtu = code;
  qp.req.mtu = qp.resp.mtu = static_cast<uint16_t>(mtu_of_code(code));
}

void set_reads_served(State& r, Qp& qp, uint8_t slots) {
  if (qp.read_block != 0) r.read_slots.give_back(qp.read_block, qp.reads.slots);
  qp.read_block = slots == 0 ? 0 : r.read_slots.take(slots);
  qp.reads = {slots, 0};
  qp.serving = false;
}

void apply(CoreState& s, State& r, uint32_t index, const QpAttributes& a, uint32_t mask) {
  Qp& qp = r.qps[index];
  const auto says = [mask](uint32_t bit) { return (mask & bit) != 0; };
  RequesterState& req = qp.req;
  if (says(kQpAccess)) qp.access = a.qp_access_flags;
  if (says(kQpQkey)) qp.qkey = a.qkey;
  if (says(kQpDestination)) qp.peer_qpn = a.dest_qp_num;
  if (says(kQpPath)) {
    give_up_held(s, qp);  // their headers are those of the old path
    set_path(s, qp, a.ah_attr);
  }
  if (says(kQpMtu)) set_mtu(qp, a.path_mtu);
  if (says(kQpReceivePsn)) qp.resp.expected = Psn(a.rq_psn);
  if (says(kQpReadsServed)) set_reads_served(r, qp, a.max_dest_rd_atomic);
  if (says(kQpRnrTimer)) qp.rnr_timer = a.min_rnr_timer;
  if (says(kQpSendPsn)) req.oldest = req.cursor = req.sent_end = req.end = Psn(a.sq_psn);
  if (says(kQpReadsInFlight)) req.max_reads = a.max_rd_atomic;
  if (says(kQpTimeout)) {
    qp.timeout = a.timeout;
    req.timeout = timeout_of(a.timeout);
  }
  if (says(kQpRetries)) req.retry_count = req.retries_left = a.retry_cnt;
  if (says(kQpRnrRetries)) req.rnr_retry = req.rnr_left = a.rnr_retry;
}

// ---- the way out -----------------------------------------------------------------------------------------------

/// Nothing is received or sent any more, and what was under way is dropped.
void stop_traffic(CoreState& s, State& r, Qp& qp) {
  drop_kept(r, qp);
  give_up_held(s, qp);
  qp.executed = kNotExecuted;
  qp.kept_dropped = false;
  qp.req.deadline = Instant::never();
  qp.req.wait_until = {};
}

/// In ERROR, when no copy is pending any more: receives go back to the JFR, flushed.
void flush_receive_side(CoreState& s, Qp& qp) {
  Cqe cqe{};
  cqe.opcode = CrOpcode::kNone;
  const CrStatus status = qp.receive_status == CrStatus::kSuccess ? CrStatus::kWrFlush : qp.receive_status;
  if (qp.receive != 0) complete_receive(s, qp, status, cqe);
  if (qp.srq) return push_event(s, EventKind::kQpLastReceive, qp.user_data, qp.owner);
  set_state(s, s.jfrs[qp.jfr].id, QueueState::kError);
}

/// The requests from `number` on come back: that one with this status, the others flushed.
void end_requests(Qp& qp, QpState state, uint32_t number, CrStatus status) {
  qp.state = state;
  qp.begin_of_end = number;
  if (number != qp.req.tail) qp.started[number & qp.work_mask].status = status;
}

void to_error(CoreState& s, State& r, uint32_t index, uint32_t number, CrStatus status) {
  Qp& qp = r.qps[index];
  if (qp.state == QpState::kError) return;
  if (qp.state == QpState::kSqe) number = qp.begin_of_end, status = CrStatus::kSuccess;
  end_requests(qp, QpState::kError, number, status);
  s.note(Stage::kQpState, qp.qpn, static_cast<uint32_t>(qp.state));
  stop_traffic(s, r, qp);
  retire_requests(s, r, index);
  if (qp.copies_pending == 0) flush_receive_side(s, qp);
}

/// Goes to SQE, in which a queue pair goes on receiving.
void to_send_error(CoreState& s, State& r, uint32_t index, uint32_t number, CrStatus status) {
  Qp& qp = r.qps[index];
  end_requests(qp, QpState::kSqe, number, status);
  s.note(Stage::kQpState, qp.qpn, static_cast<uint32_t>(qp.state));
  give_up_held(s, qp);
  retire_requests(s, r, index);
}

/// Goes from SQE to RTS. False: some of the requests that were posted have not come back yet.
bool resume_sending(CoreState& s, const State& r, Qp& qp) {
  Posted front;
  bool broken;
  if (qp.waiter || qp.retired != qp.req.tail || look_at_front(s, r, qp, &front, &broken)) return false;
  RequesterState& req = qp.req;
  req.head = req.cursor_request = req.tail;
  req.oldest = req.cursor = req.end = req.sent_end;
  return true;
}

/// What the queue pair was told between RESET and ERROR is gone, and its rings are empty.
void to_reset(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  if (qp.connection != 0) forget_qp(s, r, std::exchange(qp.connection, 0));
  stop_traffic(s, r, qp);
  s.timers.cancel(timer_of_qp(r, index));
  ta::stop_waiting(s, qp.jfc, r.waiters.of(index));
  if (qp.receive != 0) return_receive(s, qp.receive);
  qp.receive = 0;
  discard_posted(qp);
  if (!qp.srq) {
    discard_receives(s, qp.jfr);
    set_state(s, s.jfrs[qp.jfr].id, QueueState::kReady);
  }
  set_reads_served(r, qp, 0);
  qp.owed = Owed::kNothing;
  qp.req = {};
  qp.resp = {};
  qp.retired = 0;
  end_flow(r, qp);
  qp.next_cnp = {};
  qp.owes_cnp = false;
  qp.ask_always = qp.copy_failed = false;
  qp.receive_status = CrStatus::kSuccess;
  qp.fresh = true;
}

bool copies_pending(const Qp& qp) { return qp.copies_pending != 0 || qp.response_copies != 0; }

uint32_t jfr_record(const CoreState& s, uint32_t id, Owner owner) {
  if (id >= kIdSpace || s.ids[id].kind != ObjectKind::kJfr) return 0;
  return s.jfrs[s.ids[id].record].owner == owner ? s.ids[id].record : 0;
}

/// The first number is chosen at random. Packets for a queue pair of the instance that had this address before then
/// most likely name none of ours.
uint32_t wanted_qpn(CoreState& s, const State& r) {
  if (r.next_qpn != 0) return r.next_qpn;
  return kFirstDynamicId + s.prng.next_u32() % (kIdSpace - kFirstDynamicId);
}

bool valid_queue(const CoreState& s, const SendQueueConfig& sq) {
  return sq.slots != nullptr && sq.indices != nullptr && sq.work != nullptr && valid_ring(sq.slot_count) &&
         sq.depth != 0 && sq.depth <= kMaxSendDepth && valid_jfc(s, sq.jfc);
}

}  // namespace

// ---- life ----------------------------------------------------------------------------------------------------------

Status create_qp(CoreState& s, State& r, const QpConfig& config, uint32_t* qpn) {
  const uint32_t jfr = jfr_record(s, config.jfr, config.owner);
  if (jfr == 0 || config.type > QpType::kUd || !valid_queue(s, config.sq) ||
      (config.recv_jfc != 0 && !valid_jfc(s, config.recv_jfc))) {
    return Status::kInvalid;
  }
  // A JFR has jettys or queue pairs, and only one queue pair unless it was created to be shared.
  if (s.jfrs[jfr].users != 0 && (!config.srq || s.jfrs[jfr].mode != Mode::kRoce)) return Status::kBusy;
  const uint32_t index = r.qps.alloc();
  const uint32_t id = index == 0 ? 0 : allocate_private_id(s, wanted_qpn(s, r));
  if (id == 0) {
    if (index != 0) r.qps.free(index);
    return Status::kNoMemory;
  }
  r.next_qpn = id + 1;
  Qp& qp = r.qps[index];
  const ListLink on_active_list = qp.on_active_list;  // the list drops it in its turn
  qp = Qp{};
  qp.on_active_list = on_active_list;
  qp.in_use = qp.fresh = true;
  qp.type = config.type;
  qp.qpn = id;
  qp.srq = config.srq;
  qp.jfc = config.sq.jfc;
  qp.jfr = jfr;
  qp.recv_jfc = config.recv_jfc != 0 ? config.recv_jfc : s.jfrs[jfr].jfc;
  qp.user_data = config.user_data;
  qp.owner = config.owner;
  const SendQueueConfig& sq = config.sq;
  qp.ring = {sq.slots, sq.source, sq.indices, sq.slot_count - 1, 0, 0, 0};
  qp.limits = sq.limits;
  qp.work_mask = std::bit_ceil(sq.depth) - 1;
  qp.requests = reinterpret_cast<SentRequest*>(sq.work);
  qp.started = reinterpret_cast<StartedRequest*>(sq.work + sizeof(SentRequest) * (qp.work_mask + 1));
  ++s.jfcs[qp.jfc].users;
  ++s.jfcs[qp.recv_jfc].users;
  ++s.jfrs[jfr].users;
  s.jfrs[jfr].mode = Mode::kRoce;
  if (qp.type != QpType::kRc) qp.arriving = r.arriving.alloc();
  s.ids[id] = IdSlot{index, 0, ObjectKind::kQp};
  *qpn = id;
  return Status::kOk;
}

Status modify_qp(CoreState& s, State& r, uint32_t qpn, const QpAttributes& a, uint32_t mask) {
  const uint32_t index = find_qp(s, qpn);
  if (index == 0 || a.qp_state > QpState::kError) return Status::kInvalid;
  Qp& qp = r.qps[index];
  if (!step_is_allowed(qp.type, qp.state, a.qp_state, mask) || !valid_values(s, qp, a, mask)) return Status::kInvalid;
  // An atomic that memory has not answered yet will need its slot, and so does an answer that has not left.
  const bool moves_slots = (mask & kQpReadsServed) != 0;
  if ((moves_slots || a.qp_state == QpState::kReset) && copies_pending(qp)) return Status::kBusy;
  if (moves_slots && qp.serving) return Status::kBusy;
  if (qp.state == QpState::kSqe && a.qp_state == QpState::kRts && !resume_sending(s, r, qp)) return Status::kBusy;
  apply(s, r, index, a, mask);
  const QpState before = qp.state;
  if (a.qp_state == QpState::kError) {
    qp.owed = Owed::kNothing;
    qp.serving = false;
    to_error(s, r, index, qp.req.head, CrStatus::kSuccess);
    return Status::kOk;
  }
  qp.state = a.qp_state;
  s.note(Stage::kQpState, qpn, static_cast<uint32_t>(qp.state));
  if (a.qp_state == QpState::kReset && before != QpState::kReset) to_reset(s, r, index);
  if (a.qp_state == QpState::kInit && before == QpState::kReset) {
    qp.req.mtu = qp.resp.mtu = kMaxPathMtu;
    begin_flow(s, r, index);
  }
  if (a.qp_state == QpState::kSqd) qp.drain_event = before != QpState::kSqd || qp.drain_event;
  if (sends(a.qp_state)) {
    activate(r, index);
    retire_requests(s, r, index);
  }
  return Status::kOk;
}

Status query_qp(const CoreState& s, const State& r, uint32_t qpn, QpAttributes* out) {
  const uint32_t index = find_qp(s, qpn);
  if (index == 0) return Status::kInvalid;
  const Qp& qp = r.qps[index];
  *out = {};
  out->qp_state = qp.state;
  out->path_mtu = qp.path_mtu;
  out->qkey = qp.qkey;
  out->rq_psn = qp.resp.expected.value();
  out->sq_psn = qp.req.end.value();
  out->dest_qp_num = qp.peer_qpn;
  out->qp_access_flags = qp.access;
  out->ah_attr = qp.path;
  out->max_rd_atomic = qp.req.max_reads;
  out->max_dest_rd_atomic = qp.reads.slots;
  out->min_rnr_timer = qp.rnr_timer;
  out->timeout = qp.timeout;
  out->retry_cnt = qp.req.retry_count;
  out->rnr_retry = qp.req.rnr_retry;
  out->sq_draining = qp.state == QpState::kSqd && qp.drain_event;
  return Status::kOk;
}

Status destroy_qp(CoreState& s, State& r, uint32_t qpn) {
  const uint32_t index = find_qp(s, qpn);
  if (index == 0) return Status::kInvalid;
  Qp& qp = r.qps[index];
  if (qp.connection != 0) forget_qp(s, r, qp.connection);
  if (qp.arriving != 0) r.arriving.free(qp.arriving);
  stop_traffic(s, r, qp);
  set_reads_served(r, qp, 0);
  end_flow(r, qp);
  s.of_gone.of_queue_pairs += qp.ring.indices->retired.load(std::memory_order_relaxed);
  qp.state = QpState::kReset;
  qp.in_use = false;
  qp.owed = Owed::kNothing;
  s.timers.cancel(timer_of_qp(r, index));
  ta::stop_waiting(s, qp.jfc, r.waiters.of(index));
  if (qp.receive != 0) {
    if (qp.copies_pending == 0) {
      return_receive(s, qp.receive);
      qp.receive = 0;
    } else {
      return_receive_later(s, qp.receive, {haunting(index), {}, qp.copies_pending});
    }
  }
  --s.jfcs[qp.jfc].users;
  --s.jfcs[qp.recv_jfc].users;
  --s.jfrs[qp.jfr].users;
  release_id(s, qpn);
  if (!copies_pending(qp)) r.qps.free(index);  // if some are, it is freed when the last one is done
  return Status::kOk;
}

void fail_requests(CoreState& s, State& r, uint32_t index, uint32_t number, CrStatus status) {
  Qp& qp = r.qps[index];
  s.note(Stage::kQpRequestFailed, qp.qpn, number, static_cast<uint32_t>(status));
  if (qp.state == QpState::kSqe) return;
  // Requests older than the error may fail, too, while the queue pair waits for their copies. Then the error is theirs,
  // and what failed before is flushed.
  if (qp.state == QpState::kError) {
    if (static_cast<int32_t>(number - qp.begin_of_end) >= 0) return;
    if (qp.begin_of_end != qp.req.tail) qp.started[qp.begin_of_end & qp.work_mask].status = CrStatus::kSuccess;
    qp.begin_of_end = number;
    qp.started[number & qp.work_mask].status = status;
    return;
  }
  if (qp.type != QpType::kRc) return to_send_error(s, r, index, number, status);
  break_down(s, r, index, number, status);
}

void break_down(CoreState& s, State& r, uint32_t index, uint32_t number, CrStatus status) {
  Qp& qp = r.qps[index];
  qp.owed = Owed::kNothing;
  qp.serving = false;
  push_event(s, EventKind::kQpError, qp.user_data, qp.owner);
  to_error(s, r, index, number, status);
}

void refuse_and_fail(CoreState& s, State& r, uint32_t index, NakCode why, const Psn* answer_to) {
  Qp& qp = r.qps[index];
  s.note(Stage::kQpRefuses, qp.qpn, static_cast<uint32_t>(why));
  qp.reply = refuse(qp.resp, why);
  if (answer_to != nullptr) qp.reply.psn = *answer_to;
  qp.owed = Owed::kLastReply;
  push_event(s, EventKind::kQpError, qp.user_data, qp.owner);
  to_error(s, r, index, qp.req.head, CrStatus::kSuccess);
  activate(r, index);
}

// ---- the rest ------------------------------------------------------------------------------------------------------

void arm_timer(CoreState& s, const State& r, uint32_t index) {
  const Qp& qp = r.qps[index];
  const auto if_ahead = [&s](Instant t) { return t > s.now ? t : Instant::never(); };
  const Instant wake = if_ahead(qp.req.wait_until);
  const Instant turn = qp.limits == nullptr ? Instant::never() : if_ahead(qp.limits->pacer.ready_at());
  const Instant pace = cc::deadline(qp.flow, s.now);
  s.timers.arm(timer_of_qp(r, index), earlier(earlier(qp.req.deadline, wake), earlier(turn, pace)));
}

void on_progress(CoreState& s, State& r, uint32_t index, const Progress& progress) {
  Qp& qp = r.qps[index];
  if (progress.completed != 0) s.note(Stage::kQpRequestsAnswered, qp.qpn, progress.completed, qp.req.head);
  if (progress.gap) s.note(Stage::kQpGoesBack, qp.qpn, qp.req.oldest.value());
  if (progress.completed != 0) retire_requests(s, r, index);
  if (progress.failed != CrStatus::kSuccess) {
    if (progress.failed == CrStatus::kAckTimeout) s.count(Counter::kRoceRetryExhausted);
    if (progress.failed == CrStatus::kRnrRetryExceeded) s.count(Counter::kRoceRnrExhausted);
    return fail_requests(s, r, index, qp.req.head, progress.failed);
  }
  arm_timer(s, r, index);
  activate(r, index);
}

void on_qp_timer(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  if (!qp.in_use || !receives(qp.state)) return;
  if (has_flow(qp)) look_at_flow(s, r, index);
  if (!sends(qp.state)) {  // answers to READs may wait for the rate
    arm_timer(s, r, index);
    return activate(r, index);
  }
  if (qp.req.deadline <= s.now) {
    s.count(Counter::kRoceTimeout);
    s.note(Stage::kQpTimerRanOut, qp.qpn);
    if (has_flow(qp)) tell_timed_out(s, r, index);
  }
  on_progress(s, r, index, on_timeout(qp.req, s.now));
}

bool on_placed(CoreState& s, State& r, uint32_t index, bool ok) {
  Qp& qp = r.qps[index];
  --qp.copies_pending;
  if (!qp.in_use) {
    if (qp.receive != 0) dead_copy_done(s, haunting(index), {});
    if (!copies_pending(qp)) r.qps.free(index);
    return false;
  }
  qp.copy_failed |= !ok;
  if (qp.copies_pending != 0) return false;
  activate(r, index);
  if (qp.state == QpState::kError) {
    flush_receive_side(s, qp);
    return false;
  }
  if (qp.type != QpType::kUd) return true;
  complete_datagram(s, r, index);
  return false;
}

void on_response_placed(CoreState& s, State& r, uint32_t index, uint32_t request, bool ok) {
  Qp& qp = r.qps[index];
  --qp.response_copies;
  if (!qp.in_use) {
    if (!copies_pending(qp)) r.qps.free(index);
    return;
  }
  const uint32_t number = qp.retired + ((request - qp.retired) & qp.work_mask);
  --qp.started[number & qp.work_mask].copies;
  if (!ok) fail_requests(s, r, index, number, CrStatus::kLocAccess);
  retire_requests(s, r, index);
  if (qp.response_copies == 0) activate(r, index);  // a fence may have waited for it
}

}  // namespace ub::roce
