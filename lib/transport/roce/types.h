// SPDX-License-Identifier: Apache-2.0
// types.h - the values that the RoCE engine and its callers exchange: configurations and attributes of queue pairs,
// address handles, connections. Attributes have the names and units of ibv_qp_attr. It is plain data without behaviour.
//
// Work is posted and completed as in UB (lib/base/work_queue.h). Of a Wqe that a queue pair posts
//   token_id     WRITE, READ, atomics: the rkey; SEND with invalidate: the rkey to invalidate; UD: the remote QPN
//   token_value  UD: the Q_Key, or with bit 31 set that of the queue pair
//   target       UD: the address handle
//   immediate    low 32 bits: immediate data, as a number
//   length       of an atomic: 8
// operations are kWrite, kWriteImm, kRead, kCompareSwap, kFetchAdd, kSend, kSendImm, kSendInvalidate; others
// complete with kUnsupportedOpcode. Of its Cqe
//   local_id     the QPN; of a receive that was flushed where it was posted: the id of the JFR
//   user_data    of the queue pair (of such a receive: of the JFR)
//   remote_id    of a send: the WrOp; of a receive: the QPN of the sender
//   remote_eid   UD receives: the GID of the sender
//   immediate    of a receive: immediate data, or the rkey that was invalidated
//   length       UD receives: with the 40 bytes in front of the payload
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/transport/core_types.h"
#include "lib/transport/roce/qp_states.h"
#include "lib/transport/roce/wire/cm_message.h"

namespace ub::roce {

/// An rkey consists of a token id and a key of 12 bits. The token of a segment for RoCE has the key as its value.
inline constexpr uint32_t kKeyBits = 12;
inline constexpr uint32_t kKeyMask = (1u << kKeyBits) - 1;
constexpr uint32_t make_rkey(uint32_t token_id, uint32_t key) { return token_id << kKeyBits | (key & kKeyMask); }
constexpr uint32_t token_id_of(uint32_t rkey) { return rkey >> kKeyBits; }
constexpr uint32_t key_of(uint32_t rkey) { return rkey & kKeyMask; }

inline constexpr uint32_t kGrhBytes = 40;    ///< they lie in front of the payload in a UD receive
inline constexpr uint32_t kMaxInline = 512;  ///< most bytes that a library should admit in an element

struct QpConfig {
  QpType type = QpType::kRc;
  SendQueueConfig sq;  ///< `work` has Engine::work_bytes(depth). rnr_retry and err_timeout are attributes here
  uint32_t jfr = 0;    ///< id of a JFR of the same owner
  /// The JFR is shared with others: if this queue pair fails, what is posted there stays.
  bool srq = false;
  uint32_t recv_jfc = 0;  ///< 0: that of the JFR
  uint64_t user_data = 0;
  Owner owner = 0;  ///< also the protection domain: the queue pair cannot use segments of other owners
};

/// How a peer is reached, as in ibv_ah_attr.
struct AhAttributes {
  uint32_t link = 0;
  Gid sgid{}, dgid{};
  uint8_t traffic_class = 0;  ///< the upper six bits are the DSCP
};

struct AddressHandleConfig {
  AhAttributes attributes{};
  Owner owner = 0;
};

struct QpAttributes {
  QpState qp_state = QpState::kReset;  ///< the new state; to stay in a state, name the current one
  uint8_t path_mtu = 3;                ///< codes 1 to 5 stand for 256 to 4096
  uint32_t qkey = 0;
  uint32_t rq_psn = 0;  ///< 24 bits
  uint32_t sq_psn = 0;
  uint32_t dest_qp_num = 0;
  uint8_t qp_access_flags = 0;  ///< kAccessRead, kAccessWrite, kAccessAtomic
  AhAttributes ah_attr{};
  uint16_t pkey_index = 0;  ///< there is one P_Key, the default
  uint8_t port_num = 1;     ///< there is one port, because the path names the link
  uint8_t max_rd_atomic = 0;
  uint8_t max_dest_rd_atomic = 0;
  uint8_t min_rnr_timer = 0;  ///< a code of 5 bits
  uint8_t timeout = 0;        ///< 5 bits: 4.096 us * 2^n; 0: none
  uint8_t retry_cnt = 0;      ///< 3 bits
  uint8_t rnr_retry = 0;      ///< 3 bits; 7: for ever
  bool sq_draining = false;   ///< only in queries: in SQD, something that was begun is not complete
};

/// A mask of everything that modify_qp() may be told.
inline constexpr uint32_t kAllQpAttributes = (kQpSendPsn << 1) - 1;

// ---- connections ---------------------------------------------------------------------------------------------------
/// A connection is named by its communication id. The engine moves its queue pair: from INIT to RTS when the two ends
/// agree, and to ERROR when they part. A call that comes late, about a connection that is gone, returns kInvalid.
struct ListenConfig {
  Gid address{};  ///< all zero: any address
  uint16_t port = 0;
  uint64_t cookie = 0;  ///< it comes back in events
  Owner owner = 0;
};

struct ConnectConfig {
  uint32_t qpn = 0;     ///< of type RC, in INIT
  AhAttributes path{};  ///< its addresses are those of the connection
  uint16_t local_port = 0, remote_port = 0;
  uint8_t path_mtu = 3;
  uint8_t responder_resources = 1;  ///< READs and atomics that this side serves at a time
  uint8_t initiator_depth = 1;      ///< READs and atomics that this side has in flight
  uint8_t timeout = 14;             ///< that of both queue pairs
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  PrivateData private_data{};  ///< at most 56 bytes
  uint64_t cookie = 0;
};

struct AcceptConfig {
  uint32_t qpn = 0;                 ///< of type RC, in INIT
  uint8_t responder_resources = 1;  ///< lowered to what the peer would like to have in flight
  uint8_t initiator_depth = 1;      ///< lowered to what the peer serves
  uint8_t rnr_retry = 7;
  PrivateData private_data{};  ///< at most 196 bytes
  uint64_t cookie = 0;
};

enum class ConnectionEventKind : uint8_t {
  kConnectRequest,  ///< a request came for a listener; accept() or reject() is next
  kEstablished,     ///< the queue pair is in RTS
  kRejected,        ///< the peer refused, with `reason`
  kUnreachable,     ///< nobody answered
  kDisconnected,    ///< the queue pair is in ERROR; or in INIT, if the peer accepted and hung up before its REP came
};

struct ConnectionEvent {
  ConnectionEventKind kind = ConnectionEventKind::kConnectRequest;
  uint8_t responder_resources = 0;  ///< those of the peer: kConnectRequest, kEstablished
  uint8_t initiator_depth = 0;
  uint8_t private_data_bytes = 0;  ///< size of the whole field: the sender's length is not on the wire
  RejReason reason{};
  Owner owner = 0;
  uint32_t connection = 0;
  uint64_t cookie = 0;  ///< that of the connection; kConnectRequest: that of the listener
  uint32_t remote_qpn = 0;
  uint8_t path_mtu = 0;  ///< kConnectRequest: the one that the peer asks for
  AhAttributes path{};
  uint16_t local_port = 0, remote_port = 0;
  std::array<std::byte, CmRep::kPrivateDataSize> private_data{};
};

}  // namespace ub::roce
