// SPDX-License-Identifier: Apache-2.0
// qp.h - the record of a queue pair, and its life. InfiniBand Architecture Specification volume 1, 10.3. What arrives
// for a queue pair is handled in responder.h and executor.h, and what it sends in requester.h and transmitter.h.
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

/// What a request that is begun needs besides the state that the requester has of it. It has the same place in its
/// ring.
struct StartedRequest {
  uint32_t slot;    ///< that of its Wqe
  uint32_t copies;  ///< pending copies of its READ response
  CrStatus status;  ///< kSuccess until something fails on this side
};
inline constexpr size_t kWorkBytes = sizeof(SentRequest) + sizeof(StartedRequest);
static_assert(kWorkBytes == 32);

/// What the responder owes the peer.
enum class Owed : uint8_t {
  kNothing,
  kAck,
  kReply,      ///< a NAK or RNR NAK, which is in Qp::reply
  kLastReply,  ///< the same, but it is the last one: the queue pair is in ERROR
};

/// A value for Qp::executed: only the last packet of a message waits for its copies, and this opcode is never a last
/// one.
inline constexpr Opcode kNotExecuted = Opcode::kRcSendFirst;

struct alignas(64) Qp {
  // ---- what every packet touches
  QpState state;
  QpType type;
  bool in_use;
  Owed owed;
  bool serving;    ///< READs or atomics have an answer that has not left
  uint8_t access;  ///< what peers may do: kAccessRead, ...
  uint16_t kept;   ///< how many packets are in kept_list
  uint32_t qpn, peer_qpn;
  RequesterState req;
  ResponderState resp;

  // ---- responder
  Instant next_cnp;  ///< before this time the peer is not told of congestion again
  uint128 atomic_old;
  uint32_t receive;  ///< the RxReceive of the open message; 0: none
  uint32_t copies_pending;
  IndexList kept_list;     ///< packets that wait for those copies: State::kept
  Psn kept_end;            ///< the PSN behind the newest of them
  uint32_t message_bytes;  ///< so many bytes of the open message have come
  Reply reply;
  uint32_t read_block;  ///< number of the block in ReadSlotPool; 0: none
  uint32_t arriving;    ///< UC, UD: its record in State::arriving
  uint32_t served;      ///< packets of the answer in `serving_slot` that have left
  ReadRing reads;
  uint8_t serving_slot;     ///< the slot whose answer is being sent
  CrStatus receive_status;  ///< kSuccess, or what became of `receive`
  uint8_t rnr_timer;
  Opcode executed;        ///< opcode of a last packet that waits for its copies; else kNotExecuted
  bool copy_failed : 1;   ///< a copy of the open message failed
  bool kept_dropped : 1;  ///< packets came that there was no room to keep
  bool srq : 1;
  bool ask_always : 1;   ///< every packet asks for an acknowledgement, because a request cannot go on
  bool drain_event : 1;  ///< in SQD: the application was not told yet that it is drained
  bool fresh : 1;        ///< no packet has come yet
  bool owes_cnp : 1;
  uint8_t path_mtu;  ///< as a code
  uint8_t timeout;   ///< as a code
  Owner owner;

  // ---- requester
  SentRequest* requests;
  StartedRequest* started;
  OwnerLimits* limits;
  uint32_t work_mask;
  uint32_t retired;       ///< the oldest request that has not completed
  uint32_t begin_of_end;  ///< in ERROR: this request and all behind it failed or were flushed
  uint32_t response_copies;
  SendRing ring;

  HeldLine held_requests, held_responses;  ///< held_packets.h

  cc::Flow flow;  ///< congestion.h

  // ---- where it belongs
  wire::NetTemplate headers;
  AhAttributes path;
  uint32_t jfc, jfr, recv_jfc;  ///< numbers of their records
  ListLink on_active_list;
  Waiter waiter;  ///< for room in its JFC
  uint32_t qkey;
  uint32_t connection;  ///< number of its connection by CM; 0: none
  Psn gap_seen_at;      ///< while a sequence NAK is owed: PSN of the packet that came too early
  uint64_t user_data;
  uint64_t tx_packets, rx_packets;
};
static_assert(sizeof(Qp) <= 512);

// ---- life ----------------------------------------------------------------------------------------------------------
Status create_qp(CoreState& s, State& r, const QpConfig& config, uint32_t* qpn);
Status modify_qp(CoreState& s, State& r, uint32_t qpn, const QpAttributes& attributes, uint32_t mask);
Status query_qp(const CoreState& s, const State& r, uint32_t qpn, QpAttributes* out);
Status destroy_qp(CoreState& s, State& r, uint32_t qpn);

/// The queue pair goes to ERROR (one of UC or UD to SQE). Request `number` fails with that status (kSuccess: it is
/// flushed), and all requests behind it are flushed.
void fail_requests(CoreState& s, State& r, uint32_t qp, uint32_t number, CrStatus status);
/// The queue pair goes to ERROR, whatever its type: it can neither send nor receive any more. `number` and `status` are
/// as above.
void break_down(CoreState& s, State& r, uint32_t qp, uint32_t number, CrStatus status);
/// The queue pair goes to ERROR because of what the peer asked. The peer is told so when all that it asked before is
/// answered. `answer_to`: if it is given, the NAK replaces that part of an answer; else it answers the expected packet.
void refuse_and_fail(CoreState& s, State& r, uint32_t qp, NakCode why, const Psn* answer_to = nullptr);

// ---- the rest ------------------------------------------------------------------------------------------------------
/// Sets the timer of the queue pair to the time at which the requester wants to be called.
void arm_timer(CoreState& s, const State& r, uint32_t qp);
/// The requester's state has moved on.
void on_progress(CoreState& s, State& r, uint32_t qp, const Progress& progress);
void on_qp_timer(CoreState& s, State& r, uint32_t qp);
/// A copy into memory for the responder is done. True: the caller goes on with the packets that were kept.
[[nodiscard]] bool on_placed(CoreState& s, State& r, uint32_t qp, bool ok);
/// A copy into memory of a READ response or atomic acknowledgement is done.
void on_response_placed(CoreState& s, State& r, uint32_t qp, uint32_t request, bool ok);

constexpr bool has_flow(const Qp& qp) { return qp.flow.algorithm != cc::Algorithm::kNone; }
inline RequestRing ring_of(const Qp& qp) { return {qp.requests, qp.work_mask + 1}; }

}  // namespace ub::roce
