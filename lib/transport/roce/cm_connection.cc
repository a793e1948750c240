// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/cm_connection.h"

#include <algorithm>

#include "lib/base/assert.h"

namespace ub::roce {
namespace {

template <class Message>
CmStep send(CmConnection& c, CmType type, const Message& message, CmEvent event = CmEvent::kNone) {
  write_cm({type, c.transaction_id}, message, std::span(c.mad));
  return {event, true};
}

/// The message that was just sent waits for an answer.
void await_answer(CmConnection& c, Instant now, const CmTimes& times) {
  c.sent = 1;
  c.deadline = now + times.first;
}

CmStep close(CmConnection& c, CmEvent event) {
  c.state = CmState::kClosed;
  c.deadline = Instant::never();
  return {event, false};
}

void rest(CmConnection& c, Instant now, const CmTimes& times) {
  c.state = CmState::kTimeWait;
  c.deadline = now + times.time_wait;
}

CmStep on_rep(CmConnection& c, const CmRep& rep) {
  if (c.state == CmState::kEstablished) return {CmEvent::kNone, c.active};  // our RTU was lost; `mad` still has it
  if (c.state != CmState::kReqSent) return {};
  c.state = CmState::kRepReceived;
  c.remote_comm_id = rep.local_comm_id;
  c.remote_qpn = rep.qpn;
  c.deadline = Instant::never();
  return {CmEvent::kAccepted, false};
}

CmStep establish(CmConnection& c) {
  if (c.state != CmState::kRepSent) return {};
  c.state = CmState::kEstablished;
  c.deadline = Instant::never();
  return {CmEvent::kEstablished, false};
}

CmStep on_dreq(CmConnection& c, Instant now, const CmTimes& times, const CmDreq& dreq) {
  if (c.state == CmState::kTimeWait) {
    return send(c, CmType::kDrep, CmDrep{c.local_comm_id, c.remote_comm_id, {}});
  }
  if (c.state != CmState::kReqSent && c.state != CmState::kRepSent && c.state != CmState::kEstablished &&
      c.state != CmState::kDreqSent) {
    return {};
  }
  c.remote_comm_id = dreq.local_comm_id;  // in kReqSent the REP is late or lost, and means nothing any more
  rest(c, now, times);
  return send(c, CmType::kDrep, CmDrep{c.local_comm_id, c.remote_comm_id, {}}, CmEvent::kDisconnected);
}

CmStep on_rej(CmConnection& c, const CmRej& rej) {
  switch (c.state) {
    case CmState::kReqSent:
    case CmState::kRepReceived:
    case CmState::kRepSent:
      return close(c, CmEvent::kRejected);
    case CmState::kEstablished:
      // The passive side never got our RTU, and has given up.
      return c.active && rej.about == CmAbout::kRep ? close(c, CmEvent::kDisconnected) : CmStep{};
    default:
      return {};
  }
}

/// A peer that asks for more time gets it, if the connection is in the state that it speaks of.
void on_mra(CmConnection& c, Instant now, const CmTimes& times, const CmMra& mra) {
  const CmAbout awaited = c.state == CmState::kReqSent ? CmAbout::kReq : CmAbout::kRep;
  if ((c.state != CmState::kReqSent && c.state != CmState::kRepSent) || mra.about != awaited) return;
  const Duration asked = nanoseconds(4096) * (int64_t{1} << mra.service_timeout);
  c.deadline = later(c.deadline, now + std::min(asked, times.patience));
}

/// Nobody answers: the connection ends.
CmStep give_up(CmConnection& c, Instant now, const CmTimes& times) {
  if (c.state == CmState::kDreqSent) {
    rest(c, now, times);
    return {CmEvent::kDisconnected, false};
  }
  const CmAbout about = c.state == CmState::kReqSent ? CmAbout::kReq : CmAbout::kRep;
  CmRej rej;
  rej.local_comm_id = c.local_comm_id;
  rej.remote_comm_id = c.remote_comm_id;
  rej.about = about;
  rej.reason = RejReason::kTimeout;
  close(c, CmEvent::kUnreachable);
  return send(c, CmType::kRej, rej, CmEvent::kUnreachable);
}

}  // namespace

CmStep connect(CmConnection& c, Instant now, const CmTimes& times, const CmReq& request, uint64_t transaction_id) {
  c.state = CmState::kReqSent;
  c.active = true;
  c.local_comm_id = request.local_comm_id;
  c.remote_comm_id = 0;
  c.transaction_id = transaction_id;
  await_answer(c, now, times);
  return send(c, CmType::kReq, request);
}

void receive_request(CmConnection& c, const CmHead& head, const CmReq& request, uint32_t local_comm_id) {
  c.state = CmState::kReqReceived;
  c.active = false;
  c.local_comm_id = local_comm_id;
  c.remote_comm_id = request.local_comm_id;
  c.remote_qpn = request.qpn;
  c.transaction_id = head.transaction_id;
  c.deadline = Instant::never();
}

CmStep accept(CmConnection& c, Instant now, const CmTimes& times, CmRep reply) {
  UB_ASSERT(c.state == CmState::kReqReceived);
  c.state = CmState::kRepSent;
  reply.local_comm_id = c.local_comm_id;
  reply.remote_comm_id = c.remote_comm_id;
  await_answer(c, now, times);
  return send(c, CmType::kRep, reply);
}

CmStep ready(CmConnection& c) {
  UB_ASSERT(c.state == CmState::kRepReceived);
  c.state = CmState::kEstablished;
  return send(c, CmType::kRtu, CmRtu{c.local_comm_id, c.remote_comm_id, {}});
}

CmStep reject(CmConnection& c, RejReason reason, PrivateData private_data) {
  UB_ASSERT(c.state == CmState::kReqReceived || c.state == CmState::kRepReceived);
  CmRej rej;
  rej.local_comm_id = c.local_comm_id;
  rej.remote_comm_id = c.remote_comm_id;
  rej.about = c.state == CmState::kReqReceived ? CmAbout::kReq : CmAbout::kRep;
  rej.reason = reason;
  rej.private_data = private_data;
  close(c, CmEvent::kNone);
  return send(c, CmType::kRej, rej);
}

CmStep disconnect(CmConnection& c, Instant now, const CmTimes& times) {
  if (c.state != CmState::kEstablished && c.state != CmState::kRepSent) return {};
  c.state = CmState::kDreqSent;
  await_answer(c, now, times);
  return send(c, CmType::kDreq, CmDreq{c.local_comm_id, c.remote_comm_id, c.remote_qpn, {}});
}

CmStep on_message(CmConnection& c, Instant now, const CmTimes& times, CmType type, const std::byte* body) {
  switch (type) {
    case CmType::kReq:
      return {CmEvent::kNone, c.state == CmState::kRepSent};  // our REP was lost; `mad` still has it
    case CmType::kRep:
      return on_rep(c, CmRep::read(body));
    case CmType::kRtu:
      return establish(c);
    case CmType::kRej:
      return on_rej(c, CmRej::read(body));
    case CmType::kMra:
      on_mra(c, now, times, CmMra::read(body));
      return {};
    case CmType::kDreq:
      return on_dreq(c, now, times, CmDreq::read(body));
    case CmType::kDrep:
      if (c.state != CmState::kDreqSent) return {};
      rest(c, now, times);
      return {CmEvent::kDisconnected, false};
  }
  return {};
}

CmStep on_data(CmConnection& c) { return establish(c); }

CmStep on_timer(CmConnection& c, Instant now, const CmTimes& times) {
  if (now < c.deadline) return {};
  if (c.state == CmState::kTimeWait) return close(c, CmEvent::kNone);
  if (c.sent >= times.tries) return give_up(c, now, times);
  const Duration pause = times.first * (int64_t{1} << std::min<uint8_t>(c.sent, 20));
  c.deadline = now + std::min(pause, times.longest);
  ++c.sent;
  return {CmEvent::kNone, true};
}

void refuse_request(const CmHead& head, uint32_t remote_comm_id, RejReason reason, std::span<std::byte, kMadSize> mad) {
  CmRej rej;
  rej.remote_comm_id = remote_comm_id;
  rej.reason = reason;
  write_cm({CmType::kRej, head.transaction_id}, rej, mad);
}

void confirm_disconnect(const CmHead& head, const CmDreq& request, std::span<std::byte, kMadSize> mad) {
  write_cm({CmType::kDrep, head.transaction_id}, CmDrep{request.remote_comm_id, request.local_comm_id, {}}, mad);
}

}  // namespace ub::roce
