// SPDX-License-Identifier: Apache-2.0
// packet_content.h - what the headers of a queue pair's packets say: of its requests, packet by packet, and of the
// answers to READs. InfiniBand Architecture Specification volume 1, 9.2 and 9.3. It knows no frame and no memory, and
// changes no state.
#pragma once

#include "lib/transport/roce/qp.h"
#include "lib/transport/roce/requester.h"
#include "lib/transport/roce/wire/packet.h"

namespace ub::roce {

inline Packet to_peer(const Qp& qp, Opcode opcode, Psn psn) {
  Packet packet{};
  packet.bth.opcode = opcode;
  packet.bth.dest_qp = qp.peer_qpn;
  packet.bth.psn = psn;
  return packet;
}

// ---- answers to READs --------------------------------------------------------------------------------------------

inline Opcode response_opcode(bool first, bool last) {
  if (first) return last ? Opcode::kRcReadReplyOnly : Opcode::kRcReadReplyFirst;
  return last ? Opcode::kRcReadReplyLast : Opcode::kRcReadReplyMiddle;
}

// ---- requests ----------------------------------------------------------------------------------------------------

inline Opcode request_opcode(const Wqe& wqe, bool first, bool last) {
  switch (wqe.op) {
    case WrOp::kRead:
      return Opcode::kRcReadRequest;
    case WrOp::kCompareSwap:
      return Opcode::kRcCompareSwap;
    case WrOp::kFetchAdd:
      return Opcode::kRcFetchAdd;
    case WrOp::kWrite:
    case WrOp::kWriteImm: {
      const bool imm = wqe.op == WrOp::kWriteImm;
      if (!last) return first ? Opcode::kRcWriteFirst : Opcode::kRcWriteMiddle;
      if (first) return imm ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteOnly;
      return imm ? Opcode::kRcWriteLastImm : Opcode::kRcWriteLast;
    }
    default: {
      if (!last) return first ? Opcode::kRcSendFirst : Opcode::kRcSendMiddle;
      if (wqe.op == WrOp::kSendImm) return first ? Opcode::kRcSendOnlyImm : Opcode::kRcSendLastImm;
      if (wqe.op == WrOp::kSendInvalidate) return first ? Opcode::kRcSendOnlyInv : Opcode::kRcSendLastInv;
      return first ? Opcode::kRcSendOnly : Opcode::kRcSendLast;
    }
  }
}

inline constexpr uint32_t kControlledQkey = 1u << 31;  // 10.2.5: applications may not choose such a Q_Key

inline Packet describe_request(const Qp& qp, const Wqe& wqe, const SentRequest& request, const NextPacket& next,
                               uint32_t offset) {
  const bool first = next.skipped == 0;
  Packet packet = to_peer(qp, request_opcode(wqe, first, next.last), request.first_psn + next.skipped);
  if (qp.type == QpType::kUc) packet.bth.opcode = unreliable(packet.bth.opcode);
  if (qp.type == QpType::kUd) {
    packet.bth.opcode = wqe.op == WrOp::kSendImm ? Opcode::kUdSendOnlyImm : Opcode::kUdSendOnly;
    packet.bth.dest_qp = wqe.token_id & kQpnMask;
    packet.deth = {(wqe.token_value & kControlledQkey) != 0 ? qp.qkey : wqe.token_value, qp.qpn};
  }
  packet.bth.solicited = next.last && (wqe.flags & kWrSolicited) != 0 && takes_receive(request.kind);
  packet.immediate = static_cast<uint32_t>(wqe.immediate);
  packet.invalidated_rkey = wqe.token_id;
  packet.reth = {wqe.remote_address, wqe.token_id, request.length};
  if (request.kind == RequestKind::kRead)
    packet.reth = {wqe.remote_address + offset, wqe.token_id, request.length - offset};
  if (request.kind == RequestKind::kAtomic) {
    packet.atomic = {wqe.remote_address, wqe.token_id, wqe.immediate, extra_of(wqe).compare};
  }
  return packet;
}

}  // namespace ub::roce
