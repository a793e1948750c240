// SPDX-License-Identifier: Apache-2.0
//
// The transaction headers of a packet (UB Base Specification Rev 2.0, 7.2), and where its payload comes from. Both are
// made each time the packet is sent, from the work request, READ job or answer that its message names.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/segmentation.h"
#include "lib/transport/ta/target_order.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

// Where the payload of a packet comes from.
struct Payload {
  const Wqe* wqe = nullptr;               // a work request: its ranges or inline bytes
  uint64_t offset = 0;                    // of the first byte in the request
  const std::byte* memory = nullptr;      // READ response
  const tp::TxMessage* answer = nullptr;  // an answer; its only payload is the old value of an atomic
  uint32_t bytes = 0;
  Owner owner = 0;  // of the request
  bool atomic_operands = false;
  bool gone = false;  // the target was removed, and another application may have its record now
};

// What few requests say: that they are exclusive, or something about a sequence context (ROT).
inline void say_more(const tp::TxMessage& m, const Wqe& wqe, wire::Btah* btah) {
  btah->e_bit = wqe.exclusive != 0;
  btah->alloc = m.value == kAsksForContext;
  if (m.value == 0 || btah->alloc) return;
  btah->rc_type = wire::kRcTypeSequenceContext;
  btah->rc_id = static_cast<uint32_t>(m.value);
}

// Does the number of this request, which was given up or has lost its memory, have to be filled? Those behind it in the
// sequence context wait for it.
inline bool fills_context(const CoreState& s, const tp::TxMessage& m) {
  if ((m.kind != tp::MessageKind::kRequest && m.kind != tp::MessageKind::kFake) || m.value == 0) return false;
  const SendQueue& q = s.queues[m.source];
  return q.in_use && q.generation == m.generation && q.context != 0 && scid_of(s, q) == m.value;
}
// A WRITE of length 0: it touches nothing, and is answered.
inline wire::TaPacket empty_write(Tassn tassn, uint8_t rc_type, uint32_t rc_id) {
  wire::TaPacket ta{};
  ta.req.opcode = wire::TaOpcode::kWrite;
  ta.req.tassn = tassn;
  ta.req.rc_type = rc_type;
  ta.req.rc_id = rc_id;
  ta.has_ma = true;
  return ta;
}
// What fills the number.
inline wire::TaPacket filling_write(const tp::TxMessage& m) {
  return empty_write(m.tassn, wire::kRcTypeSequenceContext, static_cast<uint32_t>(m.value));
}

// describe() for a message of a work request.
inline bool describe_request(CoreState& s, const tp::Channel& ch, const tp::TxMessage& m, uint32_t index,
                             wire::TaPacket* ta, Payload* payload) {
  const SendQueue& q = s.queues[m.source];
  const WrState& wr = q.work[m.work_request & q.work_mask];
  const Wqe& wqe = wqe_of(q, wr);
  const Target& target = s.targets[wqe.target];
  SegmentShape shape = shape_of(wqe.op, wqe.length, ch.mtu, ch.segment_bytes, m.segment);
  bool last = index + 1 == shape.packets;
  uint32_t in_segment = index * ch.mtu;
  bool send = is_send(wqe.op);

  wire::Btah& btah = ta->req;
  btah.opcode = wire_opcode(shape.op);
  if (!last && send) btah.opcode = wire::TaOpcode::kSend;
  btah.tassn = m.tassn;
  btah.rc_id = q.rcid;
  if ((m.value | wqe.exclusive) != 0) [[unlikely]]
    say_more(m, wqe, &btah);
  btah.odr = static_cast<uint8_t>((wqe.place_order & 3) | ((wqe.flags & kWrCompOrder) != 0 ? wire::kOdrCompletion : 0));
  btah.fce = (wqe.flags & kWrSolicited) != 0;
  btah.retry = m.retry;
  bool memory_token = (wqe.flags & kWrToken) != 0;
  ta->tv = send ? target.token.required : memory_token;
  ta->token_value = send ? target.token.value : wqe.token_value;
  if (send || shape.op == WrOp::kWriteImm) {
    payload->gone = target.owner != q.owner;
    ta->has_mt = true;
    ta->mt = {wqe.hint, target.kind == ObjectKind::kGroup ? wire::kTcTypeGroup : wire::kTcTypeQueue, target.id};
  }
  if (send) {
    ta->has_ofst = true;
    ta->ofst.offset_kib = in_segment / 1024;
  } else {
    ta->has_ma = true;
    bool read = shape.op == WrOp::kRead;
    ta->ma = {wqe.remote_address + shape.offset + (read ? 0 : in_segment), wqe.token_id, shape.bytes};
    if (read && ch.read_meta) {
      ta->has_taid = ta->has_ofst = true;
      ta->taid = 0;
      ta->ofst.offset_kib = static_cast<uint32_t>(shape.offset / 1024);
    }
  }
  if (last && (wqe.op == WrOp::kSendImm || wqe.op == WrOp::kSendInvalidate || shape.op == WrOp::kWriteImm)) {
    ta->has_imm = true;
    bool write = shape.op == WrOp::kWriteImm;
    uint64_t immediate =
        wqe.op == WrOp::kSendInvalidate ? uint64_t{wqe.token_id} << 32 | wqe.token_value : wqe.immediate;
    ta->imm = {immediate, write ? target.token.value : 0, write ? wqe.length : 0};
  }
  if (shape.op == WrOp::kWriteNotify) {
    const WqeExtra& extra = extra_of(wqe);
    ta->has_ntf = true;
    ta->ntf = {extra.notify_address, extra.notify_token_id, extra.notify_token_value, wqe.immediate};
  }
  if (shape.op == WrOp::kRead) return true;
  payload->wqe = &wqe;
  payload->owner = q.owner;
  payload->atomic_operands = is_atomic(wqe.op);
  payload->offset = shape.offset + in_segment;
  uint32_t left = shape.bytes - in_segment;
  payload->bytes = payload->atomic_operands ? 2 * wqe.length : (left < ch.mtu ? left : ch.mtu);
  return last;
}

// Says in ATAH whom an answer is for. `source`: TxMessage::source of an answer.
inline void name_source(uint32_t source, wire::Atah* rsp) {
  rsp->rc_id = source & kAnswerRcid;
  if (source <= kAnswerRcid) [[likely]]
    return;
  if ((source & kAnswerToContext) != 0) rsp->rc_type = wire::kRcTypeSequenceContext;
  rsp->sv = (source & kAnswerGrants) != 0;
}

// Fills in headers and payload of packet `index` of a message. Returns whether it is the last one.
inline bool describe(CoreState& s, const tp::Channel& ch, const tp::TxMessage& m, uint32_t index, wire::TaPacket* ta,
                     Payload* payload) {
  if (m.kind == tp::MessageKind::kRequest) return describe_request(s, ch, m, index, ta, payload);
  ta->is_response = true;
  if (m.kind == tp::MessageKind::kAnswer) {
    name_source(m.source, &ta->rsp);
    ta->rsp.tassn = m.tassn;
    ta->rsp.opcode = m.opcode;
    ta->rsp.rspst = m.rspst;
    ta->rsp.rspinfo = m.rspinfo;
    if (m.opcode == wire::TaOpcode::kReadResponse && ch.read_meta) {
      ta->has_taid = ta->has_ofst = true;
      ta->taid = static_cast<uint16_t>(m.value_high);
      ta->ofst.offset_kib = static_cast<uint32_t>(m.value);
    }
    payload->answer = &m;
    payload->bytes = m.value_bytes;
    return true;
  }
  const ReadJob& job = s.jobs[m.source];
  uint32_t packets = packets_of(job.length, ch.mtu);
  uint32_t offset = index * ch.mtu;
  ta->rsp.opcode = wire::TaOpcode::kReadResponse;
  name_source(job.source, &ta->rsp);
  ta->rsp.tassn = job.tassn;
  if (ch.read_meta) {
    ta->has_taid = ta->has_ofst = true;
    ta->taid = job.taid;
    ta->ofst.offset_kib = job.offset_kib + offset / 1024;
  }
  payload->memory = job.memory + offset;
  payload->bytes = job.length - offset < ch.mtu ? job.length - offset : ch.mtu;
  return index + 1 == packets;
}

}  // namespace ub::ta
