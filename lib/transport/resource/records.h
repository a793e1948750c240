// SPDX-License-Identifier: Apache-2.0
//
// The records of the objects that applications create, and of what a Core has to do for them. They lie in fixed tables.
// No record grows with the number of peers times the number of queues; the sizes on which this rests are asserted.
#pragma once

#include <cstdint>

#include "lib/base/index_list.h"
#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/transport/core_types.h"
#include "lib/transport/ta/tassn_window.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub {

constexpr uint32_t kMaxSges = 16;
constexpr uint32_t kMaxGroupMembers = 32;
constexpr uint32_t kMaxSendDepth = 16384;  // work requests of one queue
constexpr uint64_t kMaxMessageBytes = 1u << 30;

struct LinkRecord {
  bool up = false;
  LinkConfig config;
  IndexList queues = {};  // send queues of UM that wait for their turn here
  DoubleLink on_active_list = {};
  bool records_wait = false;  // RecordSender, while it sends: the port has no room for control records
};

constexpr uint32_t kWaitsForLink = 1u << 31;  // in SendQueue::waits_for: the queue waits for a link, not a channel

// Part of a record that may wait for room in a JFC (WaiterKind). It is true while the record waits.
struct Waiter {
  DoubleLink in_line;
  explicit operator bool() const { return static_cast<bool>(in_line); }
};

struct Jfc {
  Cqe* slots;
  QueueIndices* indices;
  uint64_t cookie;
  uint32_t mask, depth;
  uint32_t produced;
  uint32_t reserved;  // places promised to receives that were taken
  uint32_t users;     // queues that complete into it
  IndexList waiting;  // waiters (by number) whose completions found no room
  ListLink on_event_list;
  ListLink on_blocked_list;  // CoreState::blocked_jfcs
  uint32_t solicited;        // place of the newest solicited completion, counted from the end (1: the last); 0: none
  Owner owner;
  bool in_use : 1;
  bool full : 1;                               // it is full, and that was reported
  bool completion_event : 1, error_event : 1;  // events that the application has not been told of yet
  bool moderated : 1;                          // it has a JfcModeration
};
static_assert(sizeof(Jfc) <= 64);

// When an armed JFC tells of its completions (Moderation). Few JFCs have one, so it is not part of their records.
struct JfcModeration {
  Duration period;  // 0: the time does not matter
  uint16_t count;   // 0: the number does not matter
};

struct Jfr {
  Rqe* slots;
  QueueIndices* indices;
  uint64_t user_data;
  AcceptedToken token;
  uint32_t id;
  uint32_t mask;
  uint32_t jfc;
  uint32_t consumed;
  IndexList returned;  // RxReceive: receives that messages gave back
  uint32_t users;      // jettys that share it
  uint32_t threshold;
  Waiter waiter;  // flushing is not finished: there was no room, or others had their turn
  Owner owner;
  QueueState state;
  Mode mode;
  uint8_t rnr_code;       // the wire's code of JfrConfig::min_rnr_timer
  uint8_t receive_slots;  // JfrConfig::receive_slots
  bool limit_armed;
};

// A jetty or JFS. Its send queue is a record of its own.
struct Jetty {
  uint64_t user_data;
  uint32_t id;
  uint32_t queue;  // SendQueue
  uint32_t jfr;    // Jfr record; 0: JFS
  uint32_t recv_jfc;
  uint32_t bound_target;  // RC
  // RC: messages of this channel (TPN) and RCID that need a receive are answered RNR until one comes with BTAH.Retry.
  uint32_t refused_channel;
  uint32_t refused_rcid;
  uint32_t group;  // 0: none
  ObjectKind kind;
  Mode mode;
  // Of its send queue (ta/turns_by_priority.h). Larger ones are more urgent.
  uint8_t priority : 4;
  uint8_t passes : 4;     // how often more urgent ones have passed it in line
  uint8_t passed_before;  // low bits of the TASSN that was next then
};
static_assert(sizeof(Jetty) <= 48, "the full Jetty record of the OpenURMA paper");

struct Group {
  uint32_t members[kMaxGroupMembers];  // Jetty records, in the order in which they joined
  uint32_t count;
  uint32_t next;  // kRoundRobin: index of the member whose turn it is
  uint32_t id;
  AcceptedToken token;
  Owner owner;
  GroupPolicy policy;
};

// The ring of a send queue, and how far it was read. The last three count slots modulo 2^32.
struct SendRing {
  Wqe* slots;
  Wqe* source;  // SendQueueConfig::source
  QueueIndices* indices;
  uint32_t slot_mask;
  uint32_t posted;     // slots posted, as last read
  uint32_t produced;   // slots fetched into `slots`
  uint32_t next_slot;  // first slot that is not started
};

// The sending side of a jetty or JFS. Requests [started_head, started_tail) have a WrState.
struct alignas(64) SendQueue : SendRing {
  struct WrState* work;
  OwnerLimits* limits;  // null: none
  uint32_t work_mask;
  uint32_t started_head, started_tail;
  uint32_t jetty;  // Jetty record
  uint32_t rcid;   // id of the jetty
  uint32_t jfc;
  DoubleLink in_line;  // on the list of the channel or link that it waits for
  Waiter waiter;       // a completion found no room in the JFC
  uint16_t unanswered_segments;
  uint16_t unanswered_fenced;  // READ and atomic segments
  uint32_t ordered_from;       // no older request that asks for an order is unfinished (a request number)
  uint32_t waiting_from;       // the oldest waiting request
  Tassn next_tassn;
  uint16_t context;    // ROT: InitiatorContext; 0: none
  uint32_t waits_for;  // the channel, or link | kWaitsForLink, on whose list it stands; 0: none
  Owner owner;
  QueueState state;
  uint8_t rnr_retry;
  uint8_t generation;
  bool in_use : 1;
  bool unreliable : 1;         // UM: each request is a datagram, complete when it is sent
  bool retry_next : 1;         // the next message that takes a receive carries BTAH.Retry
  bool pinned : 1;             // all its messages stay on one lane
  bool pinned_bulk : 1;        // the queue is pinned and has moved to the bulk lane
  bool marker_pending : 1;     // in kError and kSuspended: kWrFlushDone or kWrSuspendDone is not written yet
  bool suspends : 1;           // a request that fails suspends it
  bool completes_early : 1;    // a request completes when it ends, whatever is older
  bool rol : 1;                // RC: channels of ROL keep its order, where the peer accepts them
  bool compact : 1;            // CTP may carry its requests that fit
  // One of its messages that take a receive was too long for CTP: RTP carries all of them. ROL: it has left CTP.
  bool long_messages : 1;
  bool rot : 1;                // RC: its target keeps its order, if that has a context for it (ta/target_order.h)
  bool takes_other_turns : 1;  // it is `unreliable`, or has a priority (ta/turns_by_priority.h)
  uint8_t receive_lane;        // the lane of the unanswered messages that take a receive (LaneKind)
  bool held_back;              // it has something to start and must wait for answers
  uint8_t silent;              // requests sent of which no answer on its way will tell (ta/silent_requests.h)
  uint16_t oldest_refused;     // the oldest request with refused segments, by index in `work`; valid if `retries` != 0
  Duration request_timeout;
  Instant deadline;             // no request's deadline is earlier; UM: a datagram that still waits then is dropped
  Instant no_retry_before;      // no refused request may be sent again before; in the past: not computed
  Instant passed_at;            // when elements that need no packet were passed last
  uint64_t waiting;             // a bit for each request from waiting_from on: it waits (ta/waiting_requests.h)
  uint32_t copies_pending;      // copies of READ and atomic responses; their tags name this record
  union {
    uint32_t held;              // UM: HeldFrame of the newest started request; 0: none
    // ROL, and ROT with a context: no older ordered request that the initiator waits for is unfinished (its number).
    uint32_t unfinished_from;
    uint32_t asked_by;          // ROT without a context: the request that asked for one last
  };
  uint32_t looked_ahead;        // the channels that elements up to this slot need were begun
  uint32_t receives_from;       // no older request that takes a receive is unfinished (a request number)
  uint16_t passed_slots;        // how many slots were passed at `passed_at`
  uint16_t receives_in_flight;  // unanswered segments that take a receive
  uint16_t receives_refused;    // how many of these were refused
  uint16_t retries;             // requests with refused segments (ta/refused_requests.h)
};
static_assert(sizeof(SendQueue) <= 192);

// One started work request.
struct WrState {
  uint32_t slot;      // its Wqe
  uint32_t channel;   // the channel that it began on; its completion names it
  uint64_t answered;  // bit (segment mod 64) for the segments [base, base + 64)
  uint64_t refused;   // in the same way: refused segments, to be sent again after `retry_at`
  Instant deadline;   // by when an acknowledgement or answer has to come
  Instant retry_at;
  uint16_t segments;                      // how many it has
  uint16_t cut;                           // how many of them were sent at least once
  uint16_t base;                          // the oldest unanswered segment
  uint16_t older_refused, newer_refused;  // its neighbours in the ring of refused requests, by index in `work`
  Tassn first_tassn;
  uint8_t places;      // a bit for each channel of the lane that carried segments of it, by its place
  uint8_t rnr_left;    // how often it may still be refused
  CrStatus status;     // of its first failure; kSuccess: none so far
  bool done;           // no more of it will be sent, and no answer is awaited
  bool blocks_target : 1;  // RC: the target refuses the messages behind it until a retry comes
  bool reported : 1;       // it has completed before older ones (ta/early_completion.h)
  bool in_context : 1;     // the target keeps its order: `context_tassn` is its number in the sequence context
  bool asks : 1;           // it asks for a sequence context
  bool silent : 1;         // it was sent and wants no answer (ta/silent_requests.h)
  uint16_t copies;         // pending copies of its READ or atomic responses
  Tassn context_tassn;
};
static_assert(sizeof(WrState) <= 64);
constexpr uint32_t kSegmentsInFlight = 64;         // of one request
constexpr uint32_t kQueueSegmentsInFlight = 2048;  // of one queue
constexpr uint32_t kLaneSegmentsInFlight = 4096;   // segments of one lane

// What the initiator knows of a sequence context (ROT, ta/target_order.h).
struct InitiatorContext {
  uint32_t scid;
  uint32_t peer;
  Tassn next;                  // number of the next request
  uint16_t strong_unanswered;  // requests of strong order
  Tassn overdue;               // number of a request that was given up, and that the target is to answer
  Instant overdue_at;          // until then; never: there is none
  ta::TassnWindow answered;
  uint64_t strong[ta::TassnWindow::kSpan / 64];  // a bit for each number: an unanswered request of strong order has it
  uint32_t requests[ta::TassnWindow::kSpan];     // the request that has the number
};
static_assert(sizeof(InitiatorContext) <= 1120);

// The target's record of a sequence context (ROT, ta/sequence_contexts.h).
constexpr uint32_t kEarlyOfContext = 32;
struct SequenceContext {
  uint32_t peer;
  uint32_t rcid;  // the send queue whose order it keeps
  ta::TassnWindow executed;
  uint32_t early[kEarlyOfContext];  // ParkedMessage: messages whose turn has not come
  uint32_t early_count;
  uint8_t generation;  // of the record, part of the SCID
  bool in_use;
};
static_assert(sizeof(SequenceContext) <= 184);
constexpr uint32_t kSequenceContexts = 1024;  // of one kind

// Registered memory. SegmentConfig says what the three addresses are.
struct Segment {
  std::byte* memory;
  uint64_t address;
  uint64_t local_address;
  uint64_t length;
  uint32_t token_id : 20;
  uint32_t generation : 12;  // of the record, part of the handle
  uint32_t left, right;      // its children in the tree of its token id (resource/segment_tree.h)
  uint32_t priority;         // in that tree
  AcceptedToken token;
  Owner owner;
  uint8_t access;  // kAccess...; of exclusive memory as exclusively() makes it
  bool in_use : 1;
  bool own_token_id : 1;  // the token id was allocated with the segment
  bool direct : 1;        // as SegmentConfig
};
static_assert(sizeof(Segment) <= 64);

struct TokenId {
  uint32_t segments;  // root of the tree of its segments; 0: none
  uint32_t freed_ms;  // as IdSlot::freed_ms
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

// Memory of another instance that the host has mapped (resource/mapped_memory.h).
struct MappedMemory : MappedConfig {
  uint32_t next_in_bucket;
  bool in_use;
};
constexpr uint32_t kMappedBuckets = 256;

// Which channel carries the straight requests of a queue to a target (ta/routes.h).
struct Route {
  uint64_t epoch;  // CoreState::route_epoch when it was noted
  uint32_t queue, target;
  uint32_t channel;
  uint32_t most_bytes;  // of one request
};
constexpr uint32_t kRoutes = 64;

constexpr uint32_t kChannelsOfLane = 8;

// The lanes of a peer. Channels of the ordered ones are of ROL (7.3.3): they carry only the requests of queues that
// leave their order to them. The two compact lanes have one channel each, of CTP (6.2.1). The values are made of bits;
// 5 would be a lane for long messages of CTP, which there is not.
enum LaneKind : uint8_t {
  kSmallLane = 0,
  kBulkLane = 1,
  kOrderedLane = 2,
  kOrderedBulkLane = 3,
  kCompactLane = 4,
  kOrderedCompactLane = 6,
};
constexpr uint32_t kLanes = 7;

constexpr LaneKind lane_kind(bool ordered, bool bulk) { return static_cast<LaneKind>(2 * ordered + bulk); }
constexpr bool is_bulk(uint32_t lane) { return (lane & kBulkLane) != 0; }
constexpr bool is_ordered(uint32_t lane) { return (lane & kOrderedLane) != 0; }
constexpr bool is_compact(uint32_t lane) { return lane >= kCompactLane; }

// The channels of one lane (LaneKind) to a peer, indexed by their place.
struct Lane {
  uint32_t channels[kChannelsOfLane];  // the channels that carry our requests; 0: none yet
  uint32_t accepted[kChannelsOfLane];  // the channels made by the peer's latest REQ for the place; mostly the same
  uint32_t unanswered;                 // segments of requests that were sent on them and not answered

  bool operator==(const Lane&) const = default;
};

// An instance that we talk to. There is one record for each of our EIDs, each application of this Core that sends there
// and each application of the peer that sends here. Each record has channels of its own, so that memory that does not
// answer, on either side, holds up only the application whose requests touch it.
struct Peer {
  Eid local_eid;
  InstanceId instance;
  Owner owner;       // the application whose requests go there; 0: it has this Core to itself
  uint32_t visitor;  // the peer's application whose requests come from there; 0: it has the peer's Core to itself
  PeerAddress path;
  bool named;  // an application named the path; else a request came by it, which may be another than the usual one
  Lane lanes[kLanes];  // by LaneKind
  uint32_t next_in_bucket;
  uint32_t users;     // targets and channels
  uint32_t contexts;  // sequence contexts that its queues have here
  bool in_use;
  bool refuses_rol;  // it refused a channel of ROL: queues that wanted one keep their order themselves (ROI)
  bool refuses_compact;  // it refused a channel of CTP
  bool refuses_compact_rol;  // it refused one of CTP and ROL
  bool compact_rol;      // channels of CTP may be of ROL, too
  // A channel of CTP that there is may be of another wire, and then be different.
  bool compact_loses;    // the wire that carries CTP may lose packets
  uint16_t compact_mtu;  // payload bytes of a packet of CTP; 0: RTP carries all
};

// A READ that is being served.
struct ReadJob {
  const std::byte* memory;
  uint32_t segment;  // handle of the segment that it reads
  uint32_t length;
  uint32_t channel;
  uint32_t source;      // as TxMessage::source of an answer
  uint32_t offset_kib;  // OFSTETAH of the request
  uint16_t taid;
  Tassn tassn;
  uint8_t generation;
  bool in_use;
  bool vanished;  // its memory is gone
};

// A receive that was taken for an arriving message.
struct RxReceive {
  uint64_t user_ctx;
  uint32_t length;
  uint32_t filled;
  uint32_t jfr;    // record
  uint32_t jetty;  // record; 0: addressed to the JFR
  uint32_t jfc;
  DoubleLink on_list;  // Jfr::returned or CoreState::receives_with_late_copies
  uint32_t dead_tpn;   // on the latter: the channel and message whose copies may still write into it
  Tpmsn dead_message;
  uint32_t copies;  // on the latter: how many of these copies are pending
  uint8_t sge_count;
  bool counted;  // a place in the JFC is reserved for it
  bool returns;  // its jetty is gone: it goes back to the JFR when the message ends
  Sge sges[kMaxSges];
};

// A message whose copies are pending while delivery goes on behind it, or which delivery has not reached yet
// (ta/parked_messages.h), or whose turn in its sequence context has not come (ta/sequence_contexts.h).
struct ParkedMessage : tp::OpenMessage {
  Tpmsn number;
  DoubleLink in_line;   // Channel::ending, Channel::ahead or Channel::early
  uint32_t channel;     // on the last
  Instant held_until;   // on the last: then it is refused
  bool vanished;        // the rest of it will not come: it ends without an answer
  uint32_t kept;        // KeptPacket with the payload of its last packet, which is placed last; 0: it was placed
  Psn start;            // PSN of its first packet
  wire::RtpHeader rtp;  // of its last packet
  wire::TaPacket last;
};
constexpr uint32_t kParkedMessages = 4096;       // where memory may answer later
constexpr uint32_t kParkedMessagesAtOnce = 1024;  // where it answers at once: those whose turn has not come

// How many datagrams may be held because their memory answers later.
constexpr uint32_t kHeldDatagrams = 4096;
constexpr uint32_t kHeldDatagramsOfOwner = 8;

// A datagram whose payload is being copied into a receive.
struct ArrivingDatagram {
  Cqe completion;    // complete but for status and length
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
