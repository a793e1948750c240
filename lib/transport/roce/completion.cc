// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/completion.h"

#include "lib/transport/resource/receives.h"
#include "lib/transport/roce/posted.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/send_completion.h"
#include "lib/transport/ta/send_ring.h"

namespace ub::roce {
namespace {

constexpr uint32_t kFlushesPerVisit = 64;

/// Writes the completion of a request. False: there is no room.
bool complete(CoreState& s, const State& r, uint32_t index, const Qp& qp, const Wqe& wqe, uint32_t end,
              CrStatus status) {
  return ta::complete_send(s, qp.ring, qp.jfc, r.waiters, index, wqe, end, status, [&] {
    Cqe cqe{};
    cqe.opcode = CrOpcode::kNone;
    cqe.local_id = qp.qpn;
    cqe.remote_id = static_cast<uint32_t>(wqe.op);
    cqe.user_data = qp.user_data;
    return cqe;
  });
}

CrStatus status_of(const Qp& qp, uint32_t number) {
  if (!flushes_sends(qp.state) || static_cast<int32_t>(number - qp.begin_of_end) < 0) return CrStatus::kSuccess;
  const CrStatus status = qp.started[number & qp.work_mask].status;
  return status == CrStatus::kSuccess ? CrStatus::kWrFlush : status;
}

/// Has the request come to its end?
bool finished(const Qp& qp, uint32_t number) {
  if (qp.started[number & qp.work_mask].copies != 0) return false;
  return static_cast<int32_t>(qp.req.head - number) > 0 || status_of(qp, number) != CrStatus::kSuccess;
}

/// Flushes requests that were posted and never begun. It flushes only some at a time, because others wait meanwhile.
void flush_posted(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  Posted front;
  bool broken;
  for (uint32_t n = 0; n < kFlushesPerVisit; ++n) {
    if (!look_at_front(s, r, qp, &front, &broken)) return;
    const uint32_t end = qp.ring.next_slot + front.wqe->slots;
    if (!complete(s, r, index, qp, *front.wqe, end, CrStatus::kWrFlush)) return;
    qp.ring.next_slot = end;
  }
  activate(r, index);
}

}  // namespace

void retire_requests(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  if (qp.waiter) return;  // the queue pair continues when there is room
  for (; qp.retired != qp.req.tail; ++qp.retired) {
    if (!finished(qp, qp.retired)) return;
    const uint32_t slot = qp.started[qp.retired & qp.work_mask].slot;
    const Wqe& wqe = qp.ring.slots[slot & qp.ring.slot_mask];
    if (!complete(s, r, index, qp, wqe, slot + wqe.slots, status_of(qp, qp.retired))) return;
  }
  if (flushes_sends(qp.state)) return flush_posted(s, r, index);
  if (qp.state == QpState::kSqd && qp.drain_event) {
    qp.drain_event = false;
    push_event(s, EventKind::kQpDrained, qp.user_data, qp.owner);
  }
}

void complete_receive(CoreState& s, Qp& qp, CrStatus status, Cqe& cqe) {
  cqe.user_ctx = s.receives[qp.receive].user_ctx;
  cqe.status = status;
  cqe.flags |= kCqeReceive;
  cqe.local_id = qp.qpn;
  if (qp.type != QpType::kUd) cqe.remote_id = qp.peer_qpn;
  cqe.user_data = qp.user_data;
  s.note(Stage::kReceiveCompleted, qp.recv_jfc, qp.receive, static_cast<uint32_t>(status));
  release_receive(s, qp.receive);
  qp.receive = 0;
  ta::push_completion(s, qp.recv_jfc, cqe);
}

Cqe message_completion(const Qp& qp, const Packet& packet) {
  Cqe cqe{};
  const bool imm = packet.has(kShapeImm), inv = packet.has(kShapeIeth);
  cqe.opcode = packet.has(kShapeWrite) ? CrOpcode::kWriteImm
               : imm                   ? CrOpcode::kSendImm
               : inv                   ? CrOpcode::kSendInvalidate
                                       : CrOpcode::kSend;
  cqe.immediate = imm ? packet.immediate : inv ? packet.invalidated_rkey : 0;
  cqe.flags = packet.bth.solicited ? kCqeSolicited : 0;
  cqe.length = qp.message_bytes;
  return cqe;
}

void discard_posted(Qp& qp) {
  SendRing& ring = qp.ring;
  uint32_t dropped = qp.req.tail - qp.retired;
  const uint32_t oldest = dropped == 0 ? ring.next_slot : qp.started[qp.retired & qp.work_mask].slot;
  if (ta::see_posted(ring, oldest)) ta::fetch(ring, ring.slot_mask + 1);
  while (ring.next_slot != ring.produced) {
    const Wqe& wqe = ring.slots[ring.next_slot & ring.slot_mask];
    if (!ta::fits_ring(ring, ring.next_slot, wqe)) break;
    dropped += wqe.op != WrOp::kSkip;
    ring.next_slot += wqe.slots;
  }
  retire(*ring.indices, ring.next_slot, dropped);
}

}  // namespace ub::roce
