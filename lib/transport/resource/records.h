// SPDX-License-Identifier: Apache-2.0
//
// What a Core knows of the objects that applications made: one record each, in fixed tables. No record grows
// with the number of peers times the number of queues. Sizes that this promise rests on are asserted.
#pragma once

#include <cstdint>

#include "lib/base/index_list.h"
#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/transport/core_types.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub {

constexpr uint32_t kMaxSges = 16;
constexpr uint32_t kMaxGroupMembers = 32;
constexpr uint32_t kMaxSendDepth = 16384;  // work requests of one queue
constexpr uint64_t kMaxMessageBytes = 1u << 30;

struct LinkRecord {
  bool up;
  LinkConfig config;
  IndexList queues;  // send queues of UM that wait for their turn here
  DoubleLink on_active_list;
};

constexpr uint32_t kWaitsForLink = 1u << 31;  // in SendQueue::waits_for: a link, not a channel

// In a record that may wait for room in a JFC (WaiterKind).
struct Waiter {
  DoubleLink in_line;
  explicit operator bool() const { return static_cast<bool>(in_line); }  // it waits
};

struct Jfc {
  Cqe* slots;
  QueueIndices* indices;
  uint64_t cookie;
  uint32_t mask, depth;
  uint32_t produced;
  uint32_t reserved;  // places promised to receives that were taken
  uint32_t users;     // queues that complete into it
  IndexList waiting;  // those whose completions wait for room: numbers of waiters
  ListLink on_event_list;
  ListLink on_blocked_list;  // of JFCs that were waited for
  uint32_t solicited;        // place of the newest solicited completion, from the end: 1 is the last; 0: none
  Owner owner;
  bool in_use : 1;
  bool full : 1;  // an episode of being full was reported
  bool completion_event : 1, error_event : 1;
};
static_assert(sizeof(Jfc) <= 64);

struct Jfr {
  Rqe* slots;
  QueueIndices* indices;
  uint64_t user_data;
  Token token;
  uint32_t id;
  uint32_t mask;
  uint32_t jfc;
  uint32_t consumed;
  IndexList returned;  // receives given back by aborted messages: RxReceive
  uint32_t users;      // jettys that share it
  uint32_t threshold;
  Waiter waiter;  // it flushes, and there was no room, or others had their turn
  Owner owner;
  QueueState state;
  Mode mode;
  uint8_t rnr_code;       // on the wire
  uint8_t receive_slots;  // usually
  bool limit_armed;
};

// A jetty or JFS. Its send queue is a record of its own.
struct Jetty {
  uint64_t user_data;
  uint32_t id;
  uint32_t queue;  // SendQueue
  uint32_t jfr;    // Jfr record; 0: JFS
  uint32_t recv_jfc;
  uint32_t bound_target;     // RC
  uint32_t refused_channel;  // RC: messages that need a receive are answered RNR until that queue's retry comes
  uint32_t refused_rcid;
  uint32_t group;  // 0: none
  ObjectKind kind;
  Mode mode;
  bool pinned;  // all messages on one lane
  uint8_t pad;
};
static_assert(sizeof(Jetty) <= 48, "the paper's full Jetty record");

struct Group {
  uint32_t members[kMaxGroupMembers];  // Jetty records, in the order in which they joined
  uint32_t count;
  uint32_t next;  // whose turn it is
  uint32_t id;
  Token token;
  Owner owner;
  GroupPolicy policy;
};

// The ring of a send queue, and how far it was read.
struct SendRing {
  Wqe* slots;
  const Wqe* source;  // elements are fetched from here; null: they are written to `slots`
  QueueIndices* indices;
  uint32_t slot_mask;
  uint32_t posted;     // slots, as last seen
  uint32_t produced;   // slots fetched
  uint32_t next_slot;  // first slot not started
};

// The sending side of a jetty or JFS. Requests [started_head, started_tail) have a WrState.
struct alignas(64) SendQueue : SendRing {
  struct WrState* work;
  OwnerLimits* limits;  // null: none
  uint32_t work_mask;
  uint32_t started_head, started_tail;
  uint32_t jetty;  // Jetty record
  uint32_t rcid;   // its id
  uint32_t jfc;
  DoubleLink in_line;  // of the channel or link it waits for
  Waiter waiter;       // a completion found no room
  uint32_t unanswered_segments;
  uint32_t unanswered_ordered;  // RO and SO segments
  uint32_t unanswered_fenced;   // READ and atomic segments
  Tassn next_tassn;
  uint32_t waits_for;  // channel, or link | kWaitsForLink, on whose list it is; 0: none
  Owner owner;
  QueueState state;
  uint8_t rnr_retry;
  uint8_t generation;
  bool in_use;
  bool unreliable;          // UM: each request is a datagram, complete when it left
  bool retry_next;          // the next message that takes a receive carries BTAH.Retry
  bool receive_lane_bulk;   // lane of the receives in flight
  bool pinned_bulk;         // a pinned queue that met its first bulk message
  bool flush_done_pending;  // in kError: kWrFlushDone not yet delivered
  Duration request_timeout;
  Instant deadline;             // no request's is earlier; UM: what waits for its port from then on is dropped
  Instant no_retry_before;      // none may go until then; past: to be found out
  Instant passed_at;            // when slots were passed for which nothing is sent
  uint32_t copies_pending;      // of READ responses; they name this record
  uint32_t gathering;           // UM: GatheringDatagram of the newest request started, 0: none
  uint32_t looked_ahead;        // up to here the channels that elements need were begun
  uint32_t receives_from;       // no unfinished request that takes a receive is older
  uint16_t passed_slots;        // so many slots were passed at `passed_at`
  uint16_t receives_in_flight;  // segments that take a receive
  uint16_t receives_refused;    // of these
  uint16_t retries;             // requests with a refused segment: a ring by age, see WrState
  uint16_t oldest_refused;      // index in `work`, with `retries`
  bool held_back;               // has something to start, and waits for answers
};
static_assert(sizeof(SendQueue) <= 192);

// One started work request.
struct WrState {
  uint32_t slot;  // its Wqe
  uint32_t channel;   // that it began on, and that it ends with
  uint64_t answered;  // segments [base, base + 64): bit (segment mod 64)
  uint64_t refused;   // of these, the ones to send again after `retry_at`
  Instant deadline;   // for the next sign of progress
  Instant retry_at;
  uint16_t segments;                      // in all
  uint16_t cut;                           // sent at least once
  uint16_t base;                          // oldest unanswered
  uint16_t older_refused, newer_refused;  // neighbours in the ring of those with refused segments, by index
  Tassn first_tassn;
  uint8_t places;  // of the channels of that lane which carried segments, a bit each
  uint8_t rnr_left;
  CrStatus status;     // the first failure
  bool done;           // nothing of it will be sent or awaited any more
  bool blocks_target;  // RC: the target refuses what comes behind it until a retry
  uint16_t copies;     // of its READ responses, not yet finished
};
static_assert(sizeof(WrState) <= 64);
constexpr uint32_t kSegmentsInFlight = 64;         // of one request
constexpr uint32_t kQueueSegmentsInFlight = 2048;  // of one queue
constexpr uint32_t kLaneRequestsInFlight = 4096;

struct Segment {
  std::byte* memory;
  uint64_t address;
  uint64_t local_address;
  uint64_t length;
  uint32_t token_id;
  uint32_t left, right;  // in the tree of its token id: resource/segment_tree.h
  uint32_t priority;     // there
  Token token;
  Owner owner;
  uint16_t generation;
  uint8_t access;
  bool in_use;
  bool own_token_id;  // the token id was allocated with the segment
};
static_assert(sizeof(Segment) <= 64);

struct TokenId {
  uint32_t segments;  // root of their tree
  uint32_t freed_ms;  // rests since
  bool in_use;
};

struct Target {
  InstanceId instance;
  uint32_t peer;
  uint32_t id;
  Token token;
  Owner owner;
  ObjectKind kind;
  Mode mode;
  bool in_use;
};

constexpr uint32_t kChannelsOfLane = 8;

// The channels to a peer for messages of one size class, by their place.
struct Lane {
  uint32_t channels[kChannelsOfLane];  // those that carry our requests; 0: none yet
  uint32_t accepted[kChannelsOfLane];  // those made by the peer's latest REQ for that place; usually the same
  uint32_t unanswered;                 // requests sent on them and not answered

  bool operator==(const Lane&) const = default;
};

// An instance that we talk to, seen from one of our EIDs, by one of the applications that share this Core, or for one
// of those that share the peer's: each has channels of its own, so that memory which does not answer, on either side,
// holds up nobody but who asked for it.
struct Peer {
  Eid local_eid;
  InstanceId instance;
  Owner owner;       // whose requests go there; 0: those of an application that has the Core to itself
  uint32_t visitor;  // the peer's application whose requests come from there; 0: as above
  PeerAddress path;
  Lane lanes[2];  // small, bulk
  uint32_t next_in_bucket;
  uint32_t users;  // targets and channels
  bool in_use;
};

// A READ that is being served.
struct ReadJob {
  const std::byte* memory;
  uint32_t segment;  // handle
  uint32_t length;
  uint32_t channel;
  uint32_t rc_id;
  uint32_t offset_kib;  // of the request
  uint16_t taid;
  Tassn tassn;
  uint8_t generation;
  bool in_use;
  bool vanished;
};

// A receive taken by the SEND that is arriving on a channel.
struct RxReceive {
  uint64_t user_ctx;
  uint32_t length;
  uint32_t filled;
  uint32_t jfr;    // record
  uint32_t jetty;  // record; 0: addressed to the JFR
  uint32_t jfc;
  DoubleLink on_list;  // Jfr::returned, or those that copies of a dead channel may still write
  uint32_t dead_tpn;   // the latter: the channel,
  Tpmsn dead_message;
  uint32_t copies;  // and how many copies of that message are pending
  uint8_t sge_count;
  bool counted;  // a place in the JFC is reserved for it
  bool returns;  // its jetty is gone: back to the JFR with it when the message ends
  Sge sges[kMaxSges];
};

// A message that a channel goes on behind while copies of it are pending, or that was not reached yet.
struct ParkedMessage : tp::OpenMessage {
  Tpmsn number;
  DoubleLink in_line;   // Channel::ending or ::ahead
  bool vanished;        // ends without an answer
  uint32_t kept;        // KeptPacket with the payload of its last packet, which is placed last; 0: it was placed
  Psn start;            // its first packet
  wire::RtpHeader rtp;  // of its last packet
  wire::TaPacket last;
};
constexpr uint32_t kParkedMessages = 4096;

// A datagram whose payload comes from memory that answers later; its request is the newest one started of its queue.
struct GatheringDatagram {
  uint32_t bytes;  // of its frame
  uint32_t link;
  uint32_t queue;
  uint32_t pending;     // pieces; 0: it waits for its turn and for room in the port
  uint32_t generation;  // an answer for an earlier use of this record finds nobody
  Owner owner;
  bool v6;
  bool failed;
  bool in_use;
};
constexpr uint32_t kGatheringDatagrams = 4096;
constexpr uint32_t kGatheringOfOwner = 8;

// A datagram on its way into the receive it took.
struct ArrivingDatagram {
  Cqe completion;    // but for status and length
  uint32_t receive;  // 0: its JFR is gone
  uint32_t bytes;
  uint32_t pending;
  uint32_t generation;
  Owner owner;
  bool failed;
  bool in_use;
};
constexpr uint32_t kArrivingDatagrams = 16384;
constexpr uint32_t kArrivingOfOwner = 128;

}  // namespace ub
