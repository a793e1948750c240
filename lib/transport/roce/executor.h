// SPDX-License-Identifier: Apache-2.0
// executor.h - carries out what arrives for reliable queue pairs: requests at the responder (payload into memory,
// receives, atomics, READs that are to be answered), acknowledgements and responses at the requester. InfiniBand
// Architecture Specification volume 1, 9.7.
//
// Memory may answer later. The last packet of a message is placed when all packets before it are placed, and it counts
// when it is placed itself. Until then it is kept, together with what comes behind it, and nothing of it is
// acknowledged.
#pragma once

#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/congestion.h"
#include "lib/transport/roce/kept_packets.h"
#include "lib/transport/roce/placement.h"

namespace ub::roce {

template <class Host>
class Executor {
 public:
  Executor(CoreState& s, State& r, Host& host) : s_(s), r_(r), host_(host) {}

  using Raw = std::span<const std::byte>;  // from BTH to the ICRC

  /// A request packet arrived. `parsed` is kNone, or a result for which is_invalid_request() is true.
  void on_request(uint32_t index, Drop parsed, const Packet& packet, Raw raw) {
    Qp& qp = r_.qps[index];
    const bool behind_kept = !qp.kept_list.empty() && packet.bth.psn.signed_distance(qp.resp.expected) >= 0;
    if (behind_kept || !process(index, parsed, packet)) keep(qp, packet, raw);
  }

  /// An ACK packet, a READ response or an atomic acknowledgement arrived.
  void on_answer(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    if (!sends(qp.state)) return s_.drop(Counter::kRoceRxDropWrongState);
    const Psn oldest = qp.req.oldest;
    const Progress progress = packet.bth.opcode == Opcode::kRcAck ? on_ack_packet(qp, packet) : on_data(index, packet);
    if (has_flow(qp)) tell_progress(s_, r_, index, oldest, progress);
    if (progress.stale) s_.drop(Counter::kRoceRxStale);
    if (r_.qps[index].state != QpState::kError) on_progress(s_, r_, index, progress);
  }

  /// The copies that the queue pair waited for are done.
  void resume(uint32_t index) {
    Qp& qp = r_.qps[index];
    while (const uint32_t kept = oldest_kept(r_, qp)) {
      Packet packet;
      const Drop parsed = parse_oldest_kept(s_, r_, qp, &packet);
      if (!process(index, parsed, packet)) return;
      if (oldest_kept(r_, qp) != kept) return;  // an error has dropped them all
      drop_oldest_kept(r_, qp);
    }
    if (!qp.kept_dropped || qp.state == QpState::kError) return;
    qp.kept_dropped = false;
    qp.gap_seen_at = qp.resp.expected;
    if (!qp.resp.refused) owe_reply(index, refuse(qp.resp, NakCode::kPsnSequence));
  }

 private:
  // ---- order -----------------------------------------------------------------------------------------------------

  /// Carries a packet out. False: it waits for copies.
  [[gnu::always_inline]] bool process(uint32_t index, Drop parsed, const Packet& packet) {
    Qp& qp = r_.qps[index];
    switch (judge(qp.resp, parsed, packet)) {
      case Arrival::kExecute:
        return execute(index, packet);
      case Arrival::kAckAgain:
        s_.count(Counter::kRoceRxDuplicate);
        note_of<Host>(s_, Stage::kQpPacketDuplicate, qp.qpn, packet.bth.psn.value());
        owe_ack(index);
        return true;
      case Arrival::kReadAgain:
        serve_again(index, packet, find_read(slots_of(r_, qp), qp.reads, packet, qp.resp.mtu));
        return true;
      case Arrival::kAtomicAgain:
        serve_again(index, packet, find_atomic(slots_of(r_, qp), qp.reads, packet));
        return true;
      case Arrival::kGap:
        s_.count(Counter::kRoceRxOutOfSequence);
        note_of<Host>(s_, Stage::kQpGap, qp.qpn, packet.bth.psn.value());
        qp.gap_seen_at = packet.bth.psn;
        owe_reply(index, refuse(qp.resp, NakCode::kPsnSequence));
        return true;
      case Arrival::kInvalid:
        refuse_and_fail(s_, r_, index, NakCode::kInvalidRequest);
        return true;
      case Arrival::kSilent:
        s_.drop(Counter::kRoceRxDropRefused);
        return true;
    }
    return true;
  }

  bool execute(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    const bool last = packet.has(kShapeLast);
    if (qp.executed == kNotExecuted) {
      if (qp.copies_pending >= (last ? 1 : kCopiesAhead)) return false;
      const Verdict verdict = begin(index, packet);
      if (verdict != Verdict::kDone) {
        turn_down(index, verdict);
        return true;
      }
      if (last) qp.executed = packet.bth.opcode;
    } else if (qp.executed != packet.bth.opcode) {  // that packet was not kept, and this is another one in its place
      turn_down(index, Verdict::kInvalid);
      return true;
    }
    if (last && qp.copies_pending != 0) return false;
    qp.executed = kNotExecuted;
    if (!last || finish(index, packet)) accept_packet(index, packet);
    return true;
  }

  void accept_packet(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    accept(qp.resp, packet);
    note_step<Host>(s_, Stage::kQpPacketTaken, qp.qpn, packet.bth.psn.value());
    s_.count(Counter::kRoceRxRequest);
    if (qp.owed == Owed::kReply) revise_reply(index);
    if (!packet.has(kShapeSend) && !packet.has(kShapeWrite)) {
      activate(r_, index);  // the answer to this packet acknowledges it
    } else if (packet.bth.ack_req) {
      owe_ack(index);
    }
  }

  /// A NAK or RNR NAK is owed, and the packet that it asks for has come before it left. A packet that came too early
  /// was dropped all the same.
  void revise_reply(uint32_t index) {
    Qp& qp = r_.qps[index];
    qp.owed = Owed::kNothing;
    const bool gap = qp.reply.aeth.syndrome == Syndrome::nak(NakCode::kPsnSequence);
    if (gap && !qp.gap_seen_at.before(qp.resp.expected)) owe_reply(index, refuse(qp.resp, NakCode::kPsnSequence));
  }

  void turn_down(uint32_t index, Verdict verdict) {
    Qp& qp = r_.qps[index];
    switch (verdict) {
      case Verdict::kNotReady:
        return owe_reply(index, not_ready(qp.resp, qp.rnr_timer));
      case Verdict::kInvalid:
        return refuse_and_fail(s_, r_, index, NakCode::kInvalidRequest);
      case Verdict::kAccess:
        return refuse_and_fail(s_, r_, index, NakCode::kRemoteAccess);
      default:
        return refuse_and_fail(s_, r_, index, NakCode::kRemoteOperation);
    }
  }

  void owe_ack(uint32_t index) {
    Qp& qp = r_.qps[index];
    if (qp.owed == Owed::kNothing) qp.owed = Owed::kAck;  // a NAK also acknowledges what is before it
    activate(r_, index);
  }

  void owe_reply(uint32_t index, const Reply& reply) {
    Qp& qp = r_.qps[index];
    qp.reply = reply;
    qp.owed = Owed::kReply;
    activate(r_, index);
  }

  // ---- kept packets ----------------------------------------------------------------------------------------------

  void keep(Qp& qp, const Packet& packet, Raw raw) {
    const Psn next = qp.kept_list.empty() ? qp.resp.expected : qp.kept_end;
    if (packet.bth.psn.before(next)) return s_.count(Counter::kRoceRxDuplicate);
    if (packet.bth.psn != next || !keep_packet(s_, r_, qp, raw)) {
      qp.kept_dropped = true;
      return s_.drop(Counter::kRoceRxDropNoKept);
    }
    qp.kept_end = next + psns_of(packet, qp.resp.mtu);
    note_of<Host>(s_, Stage::kQpPacketKept, qp.qpn, packet.bth.psn.value());
  }

  // ---- requests --------------------------------------------------------------------------------------------------

  /// Checks a packet and carries it out, except for what has to wait for its copies.
  Verdict begin(uint32_t index, const Packet& packet) {
    if (packet.has(kShapeSend) || packet.has(kShapeWrite)) return placement().place(index, packet);
    return packet.has(kShapeAtomicEth) ? begin_atomic(index, packet) : begin_read(r_.qps[index], packet);
  }

  Verdict begin_read(Qp& qp, const Packet& packet) {
    const Reth& reth = packet.reth;
    if ((qp.access & kAccessRead) == 0 || reth.length > kMaxRequestBytes || !has_slot(slots_of(r_, qp), qp.reads)) {
      return Verdict::kInvalid;
    }
    if (reth.length != 0 && placement().memory(qp, reth.rkey, reth.address, reth.length, kAccessRead) == nullptr) {
      return Verdict::kAccess;
    }
    add(qp, packet);
    return Verdict::kDone;
  }

  Verdict begin_atomic(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    if ((qp.access & kAccessAtomic) == 0 || !has_slot(slots_of(r_, qp), qp.reads)) return Verdict::kInvalid;
    const AtomicEth& a = packet.atomic;
    std::byte* at = placement().memory(qp, a.rkey, a.address, sizeof(uint64_t), kAccessAtomic);
    if (at == nullptr) return Verdict::kAccess;
    if (reinterpret_cast<uintptr_t>(at) % sizeof(uint64_t) != 0) return Verdict::kInvalid;
    const AtomicOp op = packet.bth.opcode == Opcode::kRcCompareSwap ? AtomicOp::kCompareSwap : AtomicOp::kFetchAdd;
    const AtomicRequest request{at, op, sizeof(uint64_t), a.swap_or_add, a.compare};
    const CopyResult result =
        host_.atomic(request, &qp.atomic_old, copy_tag(r_.copy_prefix, {CopyFor::kPlace, index, 0}));
    if (result == CopyResult::kPending) ++qp.copies_pending;
    return result == CopyResult::kFailed ? Verdict::kOperation : Verdict::kDone;
  }

  /// All of a message is in memory, unless a copy failed. False: one did.
  bool finish(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    if (qp.copy_failed) {
      qp.copy_failed = false;
      return fail(index, NakCode::kRemoteOperation);
    }
    if (packet.has(kShapeAtomicEth)) add(qp, packet)->original = low_half(qp.atomic_old);
    if (packet.has(kShapeIeth)) {
      const uint32_t rkey = packet.invalidated_rkey;
      if (!invalidate_token_id(s_, qp.owner, token_id_of(rkey), key_of(rkey))) {
        return fail(index, NakCode::kRemoteAccess);
      }
    }
    if (qp.receive != 0) {
      Cqe cqe = message_completion(qp, packet);
      complete_receive(s_, qp, CrStatus::kSuccess, cqe);
    }
    return true;
  }

  bool fail(uint32_t index, NakCode why) {
    r_.qps[index].receive_status = CrStatus::kLocAccess;
    refuse_and_fail(s_, r_, index, why);
    return false;
  }

  // ---- READs and atomics -----------------------------------------------------------------------------------------

  ReadSlot* add(Qp& qp, const Packet& packet) {
    ReadSlot* slot = add_slot(slots_of(r_, qp), qp.reads, packet, qp.resp.mtu);
    serve(qp, *slot);
    return slot;
  }

  void serve(Qp& qp, const ReadSlot& slot) {
    const auto place = static_cast<uint32_t>(&slot - slots_of(r_, qp).data());
    if (place == qp.serving_slot) qp.served = 0;
    qp.serving = true;
  }

  void serve_again(uint32_t index, const Packet& packet, ReadSlot* slot) {
    if (slot == nullptr) return s_.drop(Counter::kRoceRxDropNoSlot);
    s_.count(Counter::kRoceRxDuplicate);
    Qp& qp = r_.qps[index];
    note_of<Host>(s_, Stage::kQpPacketDuplicate, qp.qpn, packet.bth.psn.value());
    if (!slot->atomic) slot->part = {packet.bth.psn.distance(slot->first_psn), packet.reth.length};
    if (!slot->serving) slot->again = true;
    slot->serving = true;
    serve(qp, *slot);
    activate(r_, index);
  }

  // ---- at the requester ------------------------------------------------------------------------------------------

  Progress on_ack_packet(Qp& qp, const Packet& packet) {
    const Syndrome syndrome = packet.aeth.syndrome;
    const bool sequence = syndrome.kind() == AckKind::kNak && syndrome.nak_code() == NakCode::kPsnSequence;
    s_.count(syndrome.kind() == AckKind::kAck   ? Counter::kRoceRxAck
             : syndrome.kind() == AckKind::kRnr ? Counter::kRoceRxRnr
             : sequence                         ? Counter::kRoceRxNakSequence
                                                : Counter::kRoceRxNakError);
    return on_ack(qp.req, ring_of(qp), s_.now, packet.bth.psn, packet.aeth);
  }

  Progress on_data(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    const bool atomic = packet.has(kShapeAtomicAckEth);
    Response response = on_response(qp.req, ring_of(qp), s_.now, packet.bth.psn, packet.has(kShapeLast),
                                    atomic ? 0 : packet.payload_bytes);
    if (!response.taken) return response.progress;
    s_.count(Counter::kRoceRxResponse);
    const uint32_t place = response.request & qp.work_mask;
    CrStatus status = CrStatus::kSuccess;
    if ((qp.requests[place].kind == RequestKind::kAtomic) != atomic) {
      status = CrStatus::kRemRespLen;
    } else if (!place_answer(index, qp.started[place], response, packet)) {
      status = CrStatus::kLocAccess;
    }
    if (status != CrStatus::kSuccess) fail_requests(s_, r_, index, response.request, status);
    return response.progress;
  }

  bool place_answer(uint32_t index, StartedRequest& started, const Response& response, const Packet& packet) {
    Qp& qp = r_.qps[index];
    const Wqe& wqe = qp.ring.slots[started.slot & qp.ring.slot_mask];
    uint32_t pending = 0;
    const ta::Copies copies{copy_tag(r_.copy_prefix, {CopyFor::kResponse, index, response.request}), pending};
    const bool atomic = packet.has(kShapeAtomicAckEth);
    std::byte original[sizeof packet.original];
    std::memcpy(original, &packet.original, sizeof original);
    const bool placed =
        ta::scatter_request(s_, host_, copies, wqe, qp.owner, response.offset, atomic ? original : packet.payload,
                            atomic ? sizeof original : packet.payload_bytes, packet.has(kShapeLast));
    started.copies += pending;
    qp.response_copies += pending;
    return placed;
  }

  Placement<Host> placement() { return {s_, r_, host_}; }

  CoreState& s_;
  State& r_;
  Host& host_;
};

}  // namespace ub::roce
