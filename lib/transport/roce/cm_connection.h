// SPDX-License-Identifier: Apache-2.0
// cm_connection.h - how two NICs make and part a connection of queue pairs: one side of it, active (sends REQ) or
// passive. InfiniBand Architecture Specification volume 1, 12.9. Knows messages and time; not queue pairs, tables or
// addresses: who it is whose message came is found by the ids in it, and what it means for a queue pair is told by an
// event.
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
  kRepReceived,  // the application gets its queue pair ready
  kReqReceived,  // the application makes up its mind
  kRepSent,
  kEstablished,
  kDreqSent,
  kTimeWait,  // answers what comes late
};

enum class CmEvent : uint8_t {
  kNone,
  kAccepted,      // active: a REP came; ready() or reject() is next
  kEstablished,   // passive: the peer is ready
  kRejected,      // a REJ came; closed
  kUnreachable,   // no answer to REQ or REP; closed
  kDisconnected,  // either side wanted to part, or the other does not answer any more
};

struct CmStep {
  CmEvent event = CmEvent::kNone;
  bool send = false;  // `mad` goes to the peer

  bool operator==(const CmStep&) const = default;
};

struct CmTimes {
  Duration first = milliseconds(250);     // until a message goes again; twice as long each time,
  Duration longest = milliseconds(4300);  // but not longer than this
  uint8_t tries = 15;
  Duration time_wait = seconds(1);
  Duration patience = seconds(60);  // at most, with a peer that asks for some
};

struct CmConnection {
  CmState state = CmState::kClosed;
  bool active = false;
  uint8_t sent = 0;  // times, of the message that waits for an answer
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;  // 0: not known yet
  uint32_t remote_qpn = 0;
  uint64_t transaction_id = 0;
  Instant deadline = Instant::never();
  std::array<std::byte, kMadSize> mad;  // what was sent last
};
static_assert(sizeof(CmConnection) <= 304);

// `request.local_comm_id` names the connection from now on.
[[nodiscard]] CmStep connect(CmConnection& c, Instant now, const CmTimes& times, const CmReq& request,
                             uint64_t transaction_id);
// A REQ that belongs to no connection.
void receive_request(CmConnection& c, const CmHead& head, const CmReq& request, uint32_t local_comm_id);
// kReqReceived. The ids in `reply` are filled in here.
[[nodiscard]] CmStep accept(CmConnection& c, Instant now, const CmTimes& times, CmRep reply);
// kRepReceived: the queue pair can receive and send.
[[nodiscard]] CmStep ready(CmConnection& c);
// kReqReceived or kRepReceived; closed then.
[[nodiscard]] CmStep reject(CmConnection& c, RejReason reason, PrivateData private_data = {});
// kEstablished or kRepSent; nothing happens in other states.
[[nodiscard]] CmStep disconnect(CmConnection& c, Instant now, const CmTimes& times);

// A message that names the connection: by both ids, a REQ by its sender's alone, the REJ of a REQ by ours alone.
[[nodiscard]] CmStep on_message(CmConnection& c, Instant now, const CmTimes& times, CmType type, const std::byte* body);
// Data came on the queue pair: the peer is ready, though its RTU may be lost.
[[nodiscard]] CmStep on_data(CmConnection& c);
// `deadline` has come. Early calls do nothing. A connection in kTimeWait closes.
[[nodiscard]] CmStep on_timer(CmConnection& c, Instant now, const CmTimes& times);

// ---- answers to messages that belong to no connection --------------------------------------------------------------
// A REQ that cannot be served. Written into `mad`.
void refuse_request(const CmHead& head, uint32_t remote_comm_id, RejReason reason, std::span<std::byte, kMadSize> mad);
// A DREQ for a connection that is long forgotten: so is ours.
void confirm_disconnect(const CmHead& head, const CmDreq& request, std::span<std::byte, kMadSize> mad);

}  // namespace ub::roce
