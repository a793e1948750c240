// SPDX-License-Identifier: Apache-2.0
// qp.h - the record of a queue pair, and its life. InfiniBand Architecture Specification volume 1, 10.3.
// What arrives for it is the business of responder.h and executor.h, what it sends of requester.h and transmitter.h.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "lib/base/uint128.h"
#include "lib/transport/cc/flow.h"
#include "lib/transport/core_state.h"
#include "lib/transport/resource/owner_limits.h"
#include "lib/transport/roce/qp_states.h"
#include "lib/transport/roce/read_slots.h"
#include "lib/transport/roce/requester.h"
#include "lib/transport/roce/responder.h"
#include "lib/transport/roce/types.h"
#include "lib/transport/wire/network_header.h"

namespace ub::roce {

struct State;

/// What a started request needs besides what the requester knows of it. Same place in its ring.
struct StartedRequest {
  uint32_t slot;    ///< its Wqe
  uint32_t copies;  ///< of its READ response, pending
  CrStatus status;  ///< kSuccess until something failed here
};
inline constexpr size_t kWorkBytes = sizeof(SentRequest) + sizeof(StartedRequest);
static_assert(kWorkBytes == 32);

/// What the responder owes the peer.
enum class Owed : uint8_t {
  kNothing,
  kAck,
  kReply,      ///< a NAK or RNR NAK: Qp::reply
  kLastReply,  ///< the same, and the end: the queue pair is in ERROR
};

/// Only the last packet of a message waits for its copies, and this one never is.
inline constexpr Opcode kNotExecuted = Opcode::kRcSendFirst;

struct alignas(64) Qp {
  // ---- what every packet touches
  QpState state;
  QpType type;
  bool in_use;
  Owed owed;
  bool serving;    ///< of READ and atomic slots some have an answer that has not left
  uint8_t access;  ///< of peers: kAccessRead, ...
  uint32_t qpn, peer_qpn;
  RequesterState req;
  ResponderState resp;

  // ---- responder
  Instant next_cnp;  ///< the peer is not told of congestion again before
  uint128 atomic_old;
  uint32_t receive;  ///< RxReceive of the open message; 0: none
  uint32_t copies_pending;
  IndexList kept_list;     ///< packets that wait for them: State::kept
  Psn kept_end;            ///< behind the newest of them
  uint32_t message_bytes;  ///< so far, of the open message
  Reply reply;
  uint32_t read_block;  ///< in ReadSlotPool; 0: none
  uint32_t arriving;    ///< UC, UD: in State::arriving
  uint32_t served;      ///< packets that have left of the slot that is being served
  ReadRing reads;
  uint8_t serving_slot;     ///< which one that is
  CrStatus receive_status;  ///< kSuccess, or what became of `receive`
  uint8_t rnr_timer;
  Opcode executed;        ///< of the last packet of a message, which waits for its copies; kNotExecuted
  bool copy_failed : 1;   ///< of the open message
  bool kept_dropped : 1;  ///< there was no room to keep what came
  bool srq : 1;
  bool ask_always : 1;   ///< every packet asks for an acknowledgement: a request cannot go on
  bool drain_event : 1;  ///< in SQD: not told yet that it is drained
  bool fresh : 1;        ///< nothing came yet
  bool owes_cnp : 1;

  // ---- requester
  SentRequest* requests;
  StartedRequest* started;
  OwnerLimits* limits;
  uint32_t work_mask;
  uint32_t retired;       ///< the oldest request that has not completed
  uint32_t begin_of_end;  ///< in ERROR: this request failed or was flushed, and all behind it
  uint32_t response_copies;
  SendRing ring;

  HeldLine held_requests, held_responses;  ///< held_packets.h

  cc::Flow flow;  ///< congestion.h

  // ---- where it belongs
  wire::NetTemplate headers;
  AhAttributes path;
  uint32_t jfc, jfr, recv_jfc;  ///< records
  ListLink on_active_list;
  Waiter waiter;  ///< for room in its JFC
  uint32_t qkey;
  uint32_t connection;  ///< of CM; 0: none
  Owner owner;
  uint8_t path_mtu;  ///< code
  uint8_t timeout;   ///< code
  uint64_t user_data;
  uint64_t tx_packets, rx_packets;
  Psn gap_seen_at;  ///< while a sequence NAK is owed: the packet that came too early
  uint32_t kept;    ///< packets in the list
};
static_assert(sizeof(Qp) <= 512);

// ---- life ----------------------------------------------------------------------------------------------------------
Status create_qp(CoreState& s, State& r, const QpConfig& config, uint32_t* qpn);
Status modify_qp(CoreState& s, State& r, uint32_t qpn, const QpAttributes& attributes, uint32_t mask);
Status query_qp(const CoreState& s, const State& r, uint32_t qpn, QpAttributes* out);
Status destroy_qp(CoreState& s, State& r, uint32_t qpn);

/// To ERROR, or of UC and UD to SQE: request `number` fails with that status (kSuccess: it is flushed), all behind it
/// are flushed.
void fail_requests(CoreState& s, State& r, uint32_t qp, uint32_t number, CrStatus status);
/// To ERROR, of whatever type: it can neither send nor receive any more. Request `number` as above.
void break_down(CoreState& s, State& r, uint32_t qp, uint32_t number, CrStatus status);
/// To ERROR, for what the peer asked; it is told so once what it asked before is answered. `answer_to`: not for the
/// expected packet, but in place of that part of an answer.
void refuse_and_fail(CoreState& s, State& r, uint32_t qp, NakCode why, const Psn* answer_to = nullptr);

// ---- the rest ------------------------------------------------------------------------------------------------------
/// Wakes the queue pair when the requester wants it.
void arm_timer(CoreState& s, const State& r, uint32_t qp);
/// The requester's state has moved on.
void on_progress(CoreState& s, State& r, uint32_t qp, const Progress& progress);
void on_qp_timer(CoreState& s, State& r, uint32_t qp);
/// A copy into memory is done that was made for the responder. True: go on with what was kept.
[[nodiscard]] bool on_placed(CoreState& s, State& r, uint32_t qp, bool ok);
/// The same, of a READ response or atomic acknowledgement.
void on_response_placed(CoreState& s, State& r, uint32_t qp, uint32_t request, bool ok);

constexpr bool has_flow(const Qp& qp) { return qp.flow.algorithm != cc::Algorithm::kNone; }
inline RequestRing ring_of(const Qp& qp) { return {qp.requests, qp.work_mask + 1}; }

}  // namespace ub::roce
