// SPDX-License-Identifier: Apache-2.0
//
// One end of a reliable TP channel (UB Base Specification Rev 2.0, 6): the state of both directions.
//
// The first line is what every packet touches. What exists only while packets are missing (which ones the peer
// has, which ones we keep ahead of a gap) lies in blocks of shared pools. A TPN is this record's index and a
// generation, so that a late packet of an earlier channel finds nobody.
//
// Receiving has two cursors. `expected` is the acknowledgement's: all before it was accepted. `delivered` is the
// transaction layer's: all before it was executed. They differ only while a copy to application memory is
// pending; packets between and beyond them are kept or already placed (ReorderBlock).
#pragma once

#include <cstdint>

#include "lib/base/index_list.h"
#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/base/uint128.h"
#include "lib/transport/cc/flow.h"
#include "lib/transport/core_types.h"
#include "lib/transport/tp/message_queue.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"

namespace ub::tp {

constexpr uint32_t kMaxWindow = 2048;
constexpr uint32_t kTpnIndexBits = 16;

enum class ChannelState : uint8_t { kFree, kReqSent, kHalfOpen, kOpen, kClosing, kDead };

struct alignas(64) ChannelHot {
  ChannelState state;
  bool icrc;     // the ICRC is written and checked
  uint16_t mtu;  // payload bytes of every packet but a message's last
  uint32_t link;
  uint32_t tpn, peer_tpn;
  // Sending: packets [oldest_unacked, next_psn) are in flight.
  Psn next_psn, oldest_unacked;
  Tpmsn next_tpmsn;      // of the next message to start
  uint32_t send_window;  // packets in flight at most: `agreed_window`, and what the flow allows; 0: `paced`
  // Receiving.
  Psn expected, delivered, message_start;
  Tpmsn message;            // oldest TPMSN not yet complete
  uint16_t unacknowledged;  // packets accepted since the last acknowledgement was sent
  bool ack_wanted;          // something demands one: A, a duplicate, a gap
  bool message_open;        // at least one packet of `message` was delivered
  uint32_t reorder;         // ReorderBlock, 0: nothing is missing
  uint32_t recovery;        // RecoveryBlock, 0: nothing was reported missing
  uint16_t held_count;      // packets that wait for memory (below)
  bool paced;               // the flow's rate lets nothing leave now
  bool tells_sent;          // the flow hears of each packet that leaves
};
static_assert(sizeof(ChannelHot) == 64, "the per-packet state of a channel is one cache line");

// What the packets of a message came to so far, at its receiver. Whoever executes messages says what it means.
struct OpenMessage {
  uint8_t rspst, rspinfo;  // its error, 0: none
  uint8_t phase;           // how far the execution of its last packet is
  bool copy_failed;
  uint32_t copies;   // into application memory, pending
  uint32_t receive;  // RxReceive of a SEND
  uint128 atomic_old;
};

struct Channel : ChannelHot {
  // ---- sending ----
  MessageQueue in_flight;  // messages with unacknowledged packets; the newest may be half sent
  MessageQueue answers;    // answers that wait for their turn
  IndexList queues;        // send queues that wait for their turn here
  bool mid_message;        // the newest message in flight is not complete
  bool fast;               // fast retransmission agreed
  bool read_meta;
  wire::CcAlgorithm feedback;  // agreed: how a receiver says what the network said
  bool bulk;
  uint8_t place;  // among the channels of its lane
  bool initiator;         // we sent the REQ
  bool carries_requests;  // it is, or was until it was replaced, the one that our queues use
  bool keepalive_due;
  bool held_back;  // has something to send, and waits for acknowledgements, answers or its rate
  ListLink on_active_list, on_ack_list, on_resting_list;
  uint32_t agreed_window;  // smallest of the peer's window and what this build can track
  cc::Flow flow;

  // ---- time ----
  Instant rto_at;       // never: nothing outstanding
  Instant progress_at;  // last acknowledgement of what is in flight, be it nothing new, or the flight began
  Instant heard_at;     // last packet from the peer
  Instant ack_due;      // an acknowledgement that is owed leaves by then
  Instant created_at, setup_at, freed_at;
  Instant timed_at;  // when timed_psn was first sent
  Psn timed_psn;
  bool timing;
  uint8_t timeouts;  // consecutive
  uint8_t setup_tries;
  Duration srtt, rto;
  Duration give_up_after;  // longest of the configured time and the deadlines of requests on it

  // ---- receiving ----
  OpenMessage open;    // `message`
  IndexList ending;    // messages behind `delivered` that wait for copies: ParkedMessage, in order
  IndexList ahead;     // messages beyond `message` with bytes that were placed: ParkedMessage
  uint8_t parked;      // on both lists
  bool stalled;        // delivery waits for a copy or for room
  Psn highest_seen;    // MaxRcvPSN
  uint32_t kept;       // packets of State::kept
  Instant next_cnp;    // the peer is not told of congestion again before
  uint8_t owed_cnp;    // that of a code point is owed; 0: none
  uint32_t read_jobs;  // READs that are being served

  // ---- packets that wait for memory which answers later (held_packets.h) ----
  IndexList held;        // HeldPacket, in the order in which they leave
  uint8_t held_new;      // of them: follow those in flight
  Instant gather_since;  // the one that leaves next waits, or waited, since

  // ---- identity, set-up ----
  uint32_t peer;  // Peer record
  uint32_t attempt;
  uint64_t peer_incarnation;
  Psn initial_psn, peer_initial_psn;
  uint16_t offered_mtu;  // of the last REQ sent or REP answered
  bool several_mtus;     // REPs of different MTUs went out: only CONF tells which one holds
  uint8_t record_flags;  // agreed
  InstanceId remote;
  Eid local_eid;
  wire::Endpoint local_endpoint, remote_endpoint;
  wire::NetTemplate headers;
  Instant pinged_at;

  // ---- statistics ----
  uint64_t tx_packets, rx_packets, retransmits;

  bool is_up() const { return state == ChannelState::kOpen; }
  uint32_t outstanding() const { return next_psn.distance(oldest_unacked); }
};

// A packet whose memory answers later. It has its number, and leaves when all that were built before it have left.
struct HeldPacket {
  TxMessage* message;  // of a new packet; it stays in the queue until all of its packets left
  uint32_t channel;    // 0: nobody's
  ListLink in_line;
  uint32_t bytes;    // of the frame, which is in CoreCommon::held_frames
  uint32_t pending;  // gathers
  Psn psn;
  bool again;  // it goes again
  bool last;   // of its message
  bool failed;
  bool given_up;  // without a frame: what is pending goes nowhere, and nothing leaves
};

// Which packets in flight the peer has out of order, and which go again. Index: PSN mod kMaxWindow.
struct RecoveryBlock {
  uint64_t sacked[kMaxWindow / 64];
  uint64_t resend[kMaxWindow / 64];
  uint64_t held[kMaxWindow / 64];  // go again, are built and wait for memory; not in `resend`
  uint32_t resend_count;           // bits of `resend`
  Psn high_resent;  // largest PSN resent in this burst: later reports of the same hole do not count
  Psn last_first;   // first PSN of the latest burst
  Psn mark;         // first new PSN after the latest burst: a report of it proves the resent ones lost
  bool burst;       // high_resent, last_first and mark are valid
};

constexpr void set_bit(uint64_t* bits, uint32_t at) { bits[at / 64] |= uint64_t{1} << (at % 64); }
constexpr void clear_bit(uint64_t* bits, uint32_t at) { bits[at / 64] &= ~(uint64_t{1} << (at % 64)); }
constexpr bool test_bit(const uint64_t* bits, uint32_t at) { return (bits[at / 64] >> (at % 64) & 1) != 0; }

}  // namespace ub::tp
