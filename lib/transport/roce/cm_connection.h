// SPDX-License-Identifier: Apache-2.0
// cm_connection.h - how two NICs make and part a connection of queue pairs: one side of it, either the active one
// (which sends REQ) or the passive one. InfiniBand Architecture Specification volume 1, 12.9. It knows messages and
// time, but no queue pairs, tables or addresses. The caller finds the connection by the ids in a message, and an event
// tells the caller what a step means for the queue pair.
//
//   active    connect > ReqSent > (REP) RepReceived > ready > Established
//   passive   receive > ReqReceived > accept > RepSent > (RTU, or data) Established
//   both      Established > disconnect > DreqSent > (DREP) TimeWait > Closed;  (DREQ) > TimeWait
//   active    ReqSent > (DREQ) > TimeWait: the passive side accepted and hung up, and its REP is late
//
// Each step may leave a datagram in `mad`, which the caller then sends to the peer. REQ, REP and DREQ are sent again
// until they are answered. A message that comes twice is answered twice.
//
//   active    connect > ReqSent > (REP) RepReceived > ready > Established
//   passive   receive > ReqReceived > accept > RepSent > (RTU, or data) Established
//   both      Established > disconnect > DreqSent > (DREP) TimeWait > Closed;  (DREQ) > TimeWait
//   active    ReqSent > (DREQ) > TimeWait: the passive side accepted and hung up, and its REP is late
//
// Each step may leave a datagram in `mad`, which is to be sent to the peer then. REQ, REP and DREQ go again until they
// are answered; what comes twice is answered twice.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.h"
#include "lib/transport/roce/wire/cm_message.h"

namespace ub::roce {

enum class CmState : uint8_t {
  kClosed,
  kReqSent,
  kRepReceived,  // the application prepares its queue pair
  kReqReceived,  // the application decides
  kRepSent,
  kEstablished,
  kDreqSent,
  kTimeWait,  // messages that come late are still answered
};

enum class CmEvent : uint8_t {
  kNone,
  kAccepted,      // active: a REP came; ready() or reject() is next
  kEstablished,   // passive: the peer is ready
  kRejected,      // a REJ came; closed
  kUnreachable,   // no answer to REQ or REP; closed
  kDisconnected,  // one side wanted to part, or the other does not answer any more
};

struct CmStep {
  CmEvent event = CmEvent::kNone;
  bool send = false;  // `mad` is to be sent to the peer

  bool operator==(const CmStep&) const = default;
};

struct CmTimes {
  Duration first = milliseconds(250);     // time until a message is sent again; it doubles each time,
  Duration longest = milliseconds(4300);  // but is never longer than this
  uint8_t tries = 15;
  Duration time_wait = seconds(1);
  Duration patience = seconds(60);  // the longest wait for a peer that asks for more time
};

struct CmConnection {
  CmState state = CmState::kClosed;
  bool active = false;
  uint8_t sent = 0;  // how often the message that waits for an answer was sent
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;  // 0: it is not known yet
  uint32_t remote_qpn = 0;
  uint64_t transaction_id = 0;
  Instant deadline = Instant::never();
  std::array<std::byte, kMadSize> mad;  // the message that was sent last
};
static_assert(sizeof(CmConnection) <= 304);

// Sends the REQ. `request.local_comm_id` names the connection from now on.
[[nodiscard]] CmStep connect(CmConnection& c, Instant now, const CmTimes& times, const CmReq& request,
                             uint64_t transaction_id);
// A REQ came that belongs to no connection: it begins this one.
void receive_request(CmConnection& c, const CmHead& head, const CmReq& request, uint32_t local_comm_id);
// In kReqReceived. The function fills in the ids in `reply`.
[[nodiscard]] CmStep accept(CmConnection& c, Instant now, const CmTimes& times, CmRep reply);
// In kRepReceived: the queue pair can receive and send.
[[nodiscard]] CmStep ready(CmConnection& c);
// In kReqReceived or kRepReceived. The connection is closed then.
[[nodiscard]] CmStep reject(CmConnection& c, RejReason reason, PrivateData private_data = {});
// In kEstablished or kRepSent. In other states nothing happens.
[[nodiscard]] CmStep disconnect(CmConnection& c, Instant now, const CmTimes& times);

// A message came that names the connection. Most name it by both ids, a REQ by the id of its sender alone, and the REJ
// of a REQ by our id alone.
[[nodiscard]] CmStep on_message(CmConnection& c, Instant now, const CmTimes& times, CmType type, const std::byte* body);
// Data came on the queue pair: the peer is ready, though its RTU may be lost.
[[nodiscard]] CmStep on_data(CmConnection& c);
// `deadline` has come. A call before it does nothing. A connection in kTimeWait closes.
[[nodiscard]] CmStep on_timer(CmConnection& c, Instant now, const CmTimes& times);

// ---- answers to messages that belong to no connection --------------------------------------------------------------
// Writes the REJ of a REQ that cannot be served into `mad`.
void refuse_request(const CmHead& head, uint32_t remote_comm_id, RejReason reason, std::span<std::byte, kMadSize> mad);
// Writes the DREP for a DREQ of a connection that this side has long forgotten into `mad`.
void confirm_disconnect(const CmHead& head, const CmDreq& request, std::span<std::byte, kMadSize> mad);

}  // namespace ub::roce
