// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/posted.h"

#include "lib/transport/resource/segments.h"
#include "lib/transport/ta/send_ring.h"

namespace ub::roce {
namespace {

bool is_datagram(const Wqe& wqe) { return wqe.op == WrOp::kSend || wqe.op == WrOp::kSendImm; }

bool kind_of(WrOp op, RequestKind* kind) {
  switch (op) {
    case WrOp::kSend:
    case WrOp::kSendImm:
    case WrOp::kSendInvalidate:
      *kind = RequestKind::kSend;
      return true;
    case WrOp::kWrite:
      *kind = RequestKind::kWrite;
      return true;
    case WrOp::kWriteImm:
      *kind = RequestKind::kWriteImm;
      return true;
    case WrOp::kRead:
      *kind = RequestKind::kRead;
      return true;
    case WrOp::kCompareSwap:
    case WrOp::kFetchAdd:
      *kind = RequestKind::kAtomic;
      return true;
    default:
      return false;
  }
}

/// Is all memory of the request, from which it sends or into which it brings bytes, memory of its owner?
bool has_memory(CoreState& s, const Qp& qp, const Wqe& wqe) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < wqe.sge_count; ++i) {
    const Sge& sge = sge_of(wqe, i);
    if (sge.length == 0) continue;
    if (local_memory(s, qp.owner, sge.segment, sge.address, sge.length) == nullptr) return false;
    bytes += sge.length;
  }
  return bytes >= wqe.length;
}

CrStatus judge_datagram(const State& r, const CoreState& s, const Qp& qp, const Wqe& wqe) {
  if (!is_datagram(wqe)) return CrStatus::kUnsupportedOpcode;
  if (wqe.target == 0 || wqe.target > r.address_handles.high_water()) return CrStatus::kLocOperation;
  const AddressHandle& ah = r.address_handles[wqe.target];
  if (!ah.in_use || ah.owner != qp.owner) return CrStatus::kLocOperation;
  const uint32_t mtu = s.links[ah.attributes.link].config.mtu;
  return wqe.length > (mtu < kMaxPathMtu ? mtu : kMaxPathMtu) ? CrStatus::kLocLen : CrStatus::kSuccess;
}

CrStatus judge_element(CoreState& s, const State& r, const Qp& qp, const Wqe& wqe, RequestKind kind) {
  if (qp.type == QpType::kUd) {
    const CrStatus status = judge_datagram(r, s, qp, wqe);
    if (status != CrStatus::kSuccess) return status;
  }
  if (qp.type == QpType::kUc && (has_response(kind) || wqe.op == WrOp::kSendInvalidate)) {
    return CrStatus::kUnsupportedOpcode;
  }
  if (kind == RequestKind::kAtomic ? wqe.length != sizeof(uint64_t) : wqe.length > kMaxRequestBytes) {
    return CrStatus::kLocLen;
  }
  if (has_response(kind) && qp.req.max_reads == 0) return CrStatus::kLocOperation;
  const bool is_inline = (wqe.flags & kWrInline) != 0;
  if (is_inline && !has_response(kind)) return CrStatus::kSuccess;
  return has_memory(s, qp, wqe) ? CrStatus::kSuccess : CrStatus::kLocAccess;
}

bool see_more(Qp& qp) {
  const uint32_t oldest = qp.retired == qp.req.tail ? qp.ring.next_slot : qp.started[qp.retired & qp.work_mask].slot;
  return ta::see_posted(qp.ring, oldest);
}

}  // namespace

bool look_at_front(CoreState& s, const State& r, Qp& qp, Posted* out, bool* broken) {
  SendRing& ring = qp.ring;
  *broken = false;
  for (uint32_t passed = 0; passed < 2; ++passed) {
    if (ring.next_slot == ring.produced) {
      if (ring.produced == ring.posted && !see_more(qp)) return false;
      ta::fetch(ring);
      if (ring.next_slot == ring.produced) return false;
    }
    const Wqe& wqe = ring.slots[ring.next_slot & ring.slot_mask];
    bool fits = ta::fits_ring(ring, ring.next_slot, wqe);
    if (!fits && ring.produced != ring.posted) {  // the end of the element may not have been fetched yet
      ta::fetch(ring);
      fits = ta::fits_ring(ring, ring.next_slot, wqe);
    }
    if (fits && wqe.op == WrOp::kSkip) {
      ring.next_slot += wqe.slots;
      if (qp.retired == qp.req.tail) ring.indices->consumed.store(ring.next_slot, std::memory_order_release);
      continue;
    }
    if (!fits || !ta::valid_element(wqe)) break;
    out->wqe = &wqe;
    out->refused = kind_of(wqe.op, &out->kind) ? judge_element(s, r, qp, wqe, out->kind) : CrStatus::kUnsupportedOpcode;
    return true;
  }
  *broken = true;
  return false;
}

bool may_start(const CoreState& s, const Qp& qp, const RequesterState& req, const Posted& front) {
  if (qp.state != QpState::kRts || req.tail - qp.retired > qp.work_mask) return false;
  if (front.refused != CrStatus::kSuccess) return req.head == req.tail;
  const bool reads_left = req.reads_in_flight != 0 || qp.response_copies != 0;
  if ((front.wqe->flags & kWrFence) != 0 && reads_left) return false;
  if (qp.limits != nullptr && qp.limits->pacer.ready_at() > s.now) return false;
  return may_begin(req, {qp.requests, qp.work_mask + 1}, front.kind, front.wqe->length);
}

void take_front(Qp& qp, const Wqe& wqe) {
  qp.started[qp.req.tail & qp.work_mask] = {qp.ring.next_slot, 0, CrStatus::kSuccess};
  qp.ring.next_slot += wqe.slots;
}

bool start_next(CoreState& s, State& r, uint32_t index, const RequesterState& req) {
  Qp& qp = r.qps[index];
  if (qp.state != QpState::kRts) return false;
  Posted front;
  bool broken;
  if (!look_at_front(s, r, qp, &front, &broken)) {
    if (broken && qp.req.head == qp.req.tail) {
      s.count(Counter::kBadElement);
      fail_requests(s, r, index, qp.req.tail, CrStatus::kSuccess);
    }
    return false;
  }
  if (!may_start(s, qp, req, front)) {
    if (qp.limits != nullptr && qp.limits->pacer.ready_at() > s.now) arm_timer(s, r, index);
    return false;
  }
  take_front(qp, *front.wqe);
  if (front.refused != CrStatus::kSuccess) {
    const uint32_t number = qp.req.tail++;
    fail_requests(s, r, index, number, front.refused);
    return false;
  }
  if (qp.limits != nullptr) qp.limits->charge(s.now, front.wqe->length);
  begin(qp.req, {qp.requests, qp.work_mask + 1}, front.kind, front.wqe->length);
  return true;
}

bool more_to_send(CoreState& s, const State& r, Qp& qp, const RequesterState& req) {
  NextPacket next;
  if (next_packet(req, {qp.requests, qp.work_mask + 1}, s.now, &next)) return true;
  Posted front;
  bool broken;
  return look_at_front(s, r, qp, &front, &broken) && front.refused == CrStatus::kSuccess &&
         may_start(s, qp, req, front);
}

}  // namespace ub::roce
