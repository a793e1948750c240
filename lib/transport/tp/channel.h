// SPDX-License-Identifier: Apache-2.0
//
// One end of a reliable TP channel (UB Base Specification Rev 2.0, 6): the state of both directions.
//
// The first cache line has what every packet touches. State that is needed only while packets are missing (which ones
// the peer has, which ones we keep beyond a gap) lies in blocks of shared pools. A TPN is the index of this record and
// a generation, so that a late packet of an earlier channel finds no channel.
//
// Receiving has two cursors. All packets before `expected` were accepted; acknowledgements say so. All packets before
// `delivered` were executed by the transaction layer. The cursors differ only while delivery waits: for a copy to
// application memory, for room for an answer, or (ROL) for a failure to be confirmed. Packets between and beyond them
// are kept, or their bytes are already placed. A reorder block says which packets beyond `expected` were accepted; a
// channel of Go-Back-N accepts none there.
#pragma once

#include <bit>
#include <cstdint>

#include "lib/base/index_list.h"
#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/base/uint128.h"
#include "lib/transport/cc/flow.h"
#include "lib/transport/cc/heard.h"
#include "lib/transport/core_types.h"
#include "lib/transport/held_frames.h"
#include "lib/transport/tp/kept_packets.h"
#include "lib/transport/tp/message_queue.h"
#include "lib/transport/tp/reorder_tolerance.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"

namespace ub::tp {

constexpr uint32_t kMaxWindow = 2048;
constexpr uint32_t kTpnIndexBits = 16;

enum class ChannelState : uint8_t { kFree, kReqSent, kHalfOpen, kOpen, kClosing, kDead };

// What was delivered of the oldest message that is not complete. Of a placed packet the number of its message is not
// known any more. As it is never the last one of its message, the next packet that is delivered with its header tells
// the number.
enum class Begun : uint8_t {
  kNothing,
  kPlaced,  // only packets placed ahead of a gap; the next header tells of which message
  kYes,     // a packet with its header
};

struct alignas(64) ChannelHot {
  ChannelState state;
  bool icrc : 1;        // the ICRC is written and checked
  bool tells_sent : 1;  // the flow is told of each packet that is sent
  bool compact : 1;     // of CTP: packets have no number and are not acknowledged
  bool go_back_n : 1;   // agreed: what arrives ahead of a gap is discarded (gap_report.h)
  bool several_paths : 1;  // it has (paths.h)
  bool feeds_back : 1;     // agreed: our acknowledgements report what the network said (cc/heard.h)
  bool cna : 1;            // agreed: it goes over UB's own network header (wire/cna_packet.h), and not by UBoE
  // It is of CTP, or queues with a priority have stood in its line (ta/turns_by_priority.h): a queue that has had its
  // turn may have to leave the line.
  bool mixed_line : 1;
  uint16_t mtu;         // payload bytes of every packet of a message but the last
  uint32_t link;
  uint32_t tpn, peer_tpn;
  // Sending: packets [oldest_unacked, next_psn) are in flight.
  Psn next_psn, oldest_unacked;
  Tpmsn next_tpmsn;      // of the next message to start
  uint32_t send_window;  // most packets in flight: `agreed_window` or fewer if the flow says so; 0 while `paced`
  // Receiving.
  Psn expected, delivered, message_start;
  Tpmsn message;            // oldest TPMSN not yet complete
  uint16_t unacknowledged;  // packets accepted since the last acknowledgement was sent
  bool ack_wanted;          // an acknowledgement is demanded: by the A bit, a duplicate or a gap
  Begun begun;              // what was delivered of `message`
  uint32_t reorder;         // block of State::reorder; 0: no packet is missing
  uint32_t recovery;        // RecoveryBlock; 0: no packet was reported missing
  uint16_t held_new;        // how many of the held packets are new ones, not retransmissions
  bool paced;               // the rate of the flow lets no packet leave now
  bool rol;                 // agreed: its acknowledgements answer WRITEs and SENDs (fused_ack.h)
};
static_assert(sizeof(ChannelHot) == 64, "the per-packet state of a channel is one cache line");

// The progress of a message at its receiver. ta/ fills it in (ta/target_executor.h).
struct OpenMessage {
  uint8_t rspst, rspinfo;  // the error that the message failed with; 0: none
  uint8_t phase;           // how far the execution of its last packet is
  bool copy_failed;
  uint32_t copies;   // pending copies into application memory
  uint32_t receive;  // RxReceive that it took; 0: none
  uint16_t context;  // SCID that its packets name, if they name one; 0: the peer has no such context
  uint16_t written;  // WRITE with byte enables: this many bytes of its payload are done, and the rest waits for copies
  uint128 atomic_old;
};

// What the last packet of a message is answered with by an acknowledgement.
struct MessageStatus {
  Psn last;       // its last packet
  Tpmsn message;  // its number
  uint8_t rspst, rspinfo;
};
// What a channel of ROL has besides (fused_ack.h).
struct FusedState {
  bool holds;         // `unexecuted` and `unexecuted_message` are valid
  bool frozen;        // `failed` is valid
  bool confirm_owed;  // `confirmed` has to be sent
  Psn unexecuted;     // last packet of the oldest message that was delivered and waits for its execution
  Tpmsn unexecuted_message;
  MessageStatus failed;     // what every acknowledgement says until the peer confirms it
  MessageStatus confirmed;  // a failure that the peer reported
};

// What has become of the TPNAK about Channel::missing (gap_report.h).
enum class GapReport : uint8_t { kNone, kOwed, kSent };

struct Channel : ChannelHot {
  // ---- sending ----
  MessageQueue in_flight;      // messages with unacknowledged packets, the newest may be half sent; CTP: not sent yet
  MessageQueue answers;        // answers that wait to be sent
  IndexList queues;            // send queues that wait to send on this channel
  bool mid_message;            // the newest message in flight is not complete
  bool fast;                   // fast retransmission agreed
  bool asks_soon;              // packets may be lost: silence for a pause says that some were
  bool read_meta;              // agreed: READs and their responses carry TAIDETAH and OFSTETAH
  wire::CcAlgorithm feedback;  // agreed: the algorithm whose feedback a receiver sends
  uint8_t so_credit;           // how many strong requests of a sequence context the peer takes early
  uint8_t lane;                // the lane of its peer that it belongs to (LaneKind)
  uint8_t place_bit;           // 1 << its place among the channels of its lane
  bool initiator;              // we sent the REQ
  bool carries_requests;       // our queues use this channel, or did until another one took its place
  bool keepalive_due;
  bool held_back;  // it has something to send and must wait for acknowledgements, answers or the rate of its flow
  uint32_t segment_bytes;    // of the segments that it carries
  uint32_t most_unanswered;  // how many of the segments of its lane may be unanswered
  ListLink on_active_list, on_ack_list, on_resting_list;
  uint32_t agreed_window;  // the smaller of the peer's window and our own (CoreConfig::window_packets)
  cc::Flow flow;

  // ---- time ----
  union {
    Instant rto_at{};  // never: nothing outstanding
    Instant freed_at;  // of a dead channel
  };
  Instant progress_at;  // last acceptable acknowledgement, even of nothing new, or since when packets are in flight
  Instant heard_at;     // last packet from the peer
  Instant ack_due;      // an acknowledgement that is owed leaves by then
  Instant created_at, setup_at;
  Instant timed_at;  // when timed_psn was first sent
  Psn timed_psn;
  bool timing;
  uint8_t timeouts;  // consecutive
  uint8_t probes;    // consecutive
  bool peer_asked;   // for the acknowledgement that is owed, and where packets may be lost (delay_if_asked())
  ReorderTolerance tolerance;
  uint16_t paths;  // PathBlock, if it has `several_paths`
  Psn asked;  // newest packet that asked for an acknowledgement, if `asks_soon`
  uint8_t calm;  // how calm it is: questions in a row without a packet that went again (asks_for_ack())
  uint8_t setup_tries;
  uint16_t repeats;        // of CTP on a wire that may lose packets: CoreState::repeats; 0: the wire loses nothing
  RoundTrip round_trip;
  Duration rto;            // a timeout
  Duration patience;       // until the retransmission timer fires: a pause or a timeout
  Duration give_up_after;  // CoreConfig::channel_timeout, or the longest timeout of a request on it if that is longer
  Instant pinged_at;

  // ---- receiving ----
  OpenMessage open;  // the progress of `message`
  IndexList ending;  // ParkedMessage: all packets are delivered, and copies are pending; in the order of arrival
  IndexList ahead;   // ParkedMessage: messages after `message` of which packets were placed
  IndexList early;   // ParkedMessage: all packets are delivered, and their turn has not come (ROT)
  uint8_t parked;    // length of these lists together
  uint8_t early_count;
  bool stalled;        // delivery waits for a copy or for room
  Psn highest_seen;    // highest PSN accepted (MaxRcvPSN)
  KeptCount kept;      // its places in State::kept
  union {
    Instant next_cnp{};  // DCQCN: no CNP is sent before
    cc::Heard heard;     // C-AQM and LDCP: what our acknowledgements report
  };
  uint8_t owed_cnp;    // a CNP with this ECN code point has to be sent; 0: none
  GapReport gap_report;
  uint16_t ack_follows;  // if `peer_asked`: low bits of the PSN behind which the acknowledgement leaves
  uint32_t read_jobs;    // READs that are being served
  FusedState fused;
  Psn missing;  // Go-Back-N: the packet that was reported, or is to be, unless `gap_report` is kNone

  // ---- packets that wait for memory which answers later (held_packets.h) ----
  HeldLine held;
  Instant gather_since;  // when the first of them began to wait

  // ---- identity, set-up ----
  uint32_t peer;     // Peer record
  uint32_t attempt;  // random number of the set-up; all its records carry it
  uint64_t peer_incarnation;
  Psn initial_psn, peer_initial_psn;
  uint16_t offered_mtu;  // of the last REQ sent or REP answered
  bool several_mtus : 1;  // REPs with different MTUs were sent: only CONF tells which one is agreed
  bool takes_paths : 1;   // agreed: it may have several paths
  uint8_t record_flags;  // agreed
  InstanceId remote;
  wire::Endpoint local_endpoint, remote_endpoint;
  union {
    wire::NetTemplate headers{};
    wire::CompactTemplate compact_headers;  // of CTP
  };

  // ---- statistics (the rest is in State::channel_counts) ----
  uint64_t tx_packets, rx_packets, retransmits;

  bool is_up() const { return state == ChannelState::kOpen; }
  uint32_t place() const { return static_cast<uint32_t>(std::countr_zero(place_bit)); }
  uint32_t outstanding() const { return next_psn.distance(oldest_unacked); }
};
static_assert(sizeof(Channel) <= 640, "ten cache lines: there are thousands of them");

// A retransmission that is not known to have arrived.
struct Resent {
  Psn psn;
  Psn mark;         // the next new PSN when it was sent
  uint32_t number;  // how many of the channel were sent before, and this one
  Instant at;
  DoubleLink in_line;
};
// The retransmission sent last of those that arrived.
struct Late {
  Psn mark;
  uint32_t number;  // 0: there is none
};

// What is known of the packets in flight when some were lost (recovery.h). The bitmaps are indexed by PSN mod
// kMaxWindow.
struct RecoveryBlock {
  uint64_t sacked[kMaxWindow / 64];
  uint64_t resend[kMaxWindow / 64];  // waiting to be sent again
  uint64_t held[kMaxWindow / 64];    // retransmissions that are built and wait for memory; not in `resend`
  uint64_t resent[kMaxWindow / 64];  // sent more than once
  uint32_t sacked_count, resend_count, held_count, resent_count;  // bits set
  IndexList records;  // Resent, the oldest first; those for which there was no room are missing
  uint32_t record_count;
  uint32_t last_number;
  Psn reach;   // highest PSN that arrived
  Psn border;  // of the packets before it that were sent once, it is known which are lost
  Late late;
  Instant judge_at;  // never: no packet is missing without being known as lost
  Psn judge_reach;   // `reach` and `late` when this was set
  Late judge_late;
  Psn nak;  // PSN of the last TPNAK
  bool nak_seen;
};

constexpr void set_bit(uint64_t* bits, uint32_t at) { bits[at / 64] |= uint64_t{1} << (at % 64); }
constexpr void clear_bit(uint64_t* bits, uint32_t at) { bits[at / 64] &= ~(uint64_t{1} << (at % 64)); }
constexpr bool test_bit(const uint64_t* bits, uint32_t at) { return (bits[at / 64] >> (at % 64) & 1) != 0; }

}  // namespace ub::tp
