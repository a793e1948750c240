// SPDX-License-Identifier: Apache-2.0
//
// The state of one Core: tables, pools, timers and lists that all engines share, and those of UB. Other engines keep
// their own state beside it (engine.h). It is plain data. The functions of ta/, setup/ and resource/ take it as their
// first argument and change it by the rules of the protocol; those of tp/ take their part of it alone (tp/state.h).
#pragma once

#include <cstdint>

#include "lib/base/index_list.h"
#include "lib/base/prng.h"
#include "lib/base/slab.h"
#include "lib/transport/core_types.h"
#include "lib/transport/resource/id_space.h"
#include "lib/transport/resource/records.h"
#include "lib/transport/resource/rnr_faults.h"
#include "lib/transport/setup/finding.h"
#include "lib/transport/ta/repeats.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/wire/control_record.h"

namespace ub {

constexpr uint32_t kMaxEids = 64;
constexpr uint32_t kEventRing = 1024;
constexpr uint32_t kOutboxRing = 1024;
constexpr uint32_t kPeerBuckets = 8192;
constexpr uint32_t kMaxExtraPaths = 256;

// What an id of the 20-bit space names.
struct IdSlot {
  uint32_t record;    // Jetty, Jfr or Group
  uint32_t freed_ms;  // 1 + the time in ms when it was given back; 0: never
  ObjectKind kind;
};

// A control record that waits to be sent.
struct OutRecord {
  uint32_t link;
  uint32_t pad_to_mtu;  // the packet is padded to the length of the largest data packet of this MTU; 0: no padding
  wire::Endpoint local, remote;
  wire::ControlRecord record;
  bool bulk = false;  // it belongs to the class of bulk messages (CoreConfig::bulk_dscp)
};

// A kind of records that may wait for room in a JFC: send queues, JFRs or queue pairs.
struct WaiterKind {
  NumberRange numbers;  // the numbers of its waiters, one for each record
  void* table;          // a Slab of records, each of which has a Waiter
  void* engine;         // the state of the engine, for `try_again`; null: it needs none
  Waiter& (*waiter)(void* table, uint32_t record);
  void (*try_again)(CoreState& s, void* engine, uint32_t record);  // called when there may be room
};
constexpr uint32_t kMaxWaiterKinds = 8;

// How many requests ended and completions were written, modulo 2^32.
struct EndedWork {
  uint32_t requests = 0, datagrams = 0, of_queue_pairs = 0, completions = 0;
};

struct CoreState : tp::State {
  Prng prng{1};

  Eid eids[kMaxEids];
  uint32_t eid_count = 0;
  ExtraPath extra_paths[kMaxExtraPaths];
  uint32_t extra_path_count = 0;

  Slab<LinkRecord> links;
  Slab<Jfc> jfcs;
  JfcModeration* moderations = nullptr;  // by JFC, of those that are `moderated`
  Slab<Jfr> jfrs;
  Slab<Jetty> jettys;
  Slab<Group> groups;
  Slab<SendQueue> queues;
  Slab<Segment> segments;
  Slab<Target> targets;
  Slab<Peer> peers;
  Slab<MappedMemory> mapped;
  Slab<ReadJob> jobs;
  Slab<RxReceive> receives;
  Slab<ParkedMessage> parked;
  Slab<SequenceContext> contexts;
  Slab<InitiatorContext> initiator_contexts;
  Slab<ta::Repeats> repeats;  // of channels of CTP whose wires may lose packets
  Slab<ArrivingDatagram> arriving;
  uint16_t* arriving_of = nullptr;  // by Owner: how many records of `arriving` it has
  HeldPool held_datagrams;
  uint16_t* held_datagrams_of = nullptr;  // by Owner: how many numbers of `held_datagrams` it has

  IdSlot* ids = nullptr;         // kIdSpace of them
  TokenId* token_ids = nullptr;  // kIdSpace of them
  IdBlocks id_blocks;            // the blocks that ids and token ids are given out of
  uint32_t next_id = 0;          // where the search for a free id begins
  uint32_t next_token_id = 0;    // the same for token ids
  uint32_t* peer_buckets = nullptr;
  setup::Findings findings;

  NumberRanges waiter_numbers;
  WaiterKind waiter_kinds[kMaxWaiterKinds];
  uint32_t waiter_kind_count = 0;
  NumberRange queue_waiters, jfr_waiters;
  uint32_t receives_at_once = 0;  // how many receives all engines together may have taken and not completed

  uint32_t held_back = 0;               // channels and send queues whose `held_back` is set
  IndexList active_links;               // links with datagrams to send
  bool datagrams_first = false;         // the last poll asked datagrams before channels
  IndexList receives_with_late_copies;  // receives that copies of dead channels may still write into
  IndexList resting;                    // dead channels whose TPNs rest

  Event events[kEventRing];
  uint32_t event_head = 0, event_tail = 0;
  IndexList event_jfcs;    // JFCs with an event to report
  IndexList blocked_jfcs;  // JFCs that had no room when somebody wanted to complete into them
  OutRecord outbox[kOutboxRing];
  uint32_t outbox_head = 0, outbox_tail = 0;
  Instant reset_window{};    // beginning of the second in which `resets_sent` RESETs were sent
  uint32_t resets_sent = 0;  // their number is limited
  RnrFaults rnr_faults;
  EndedWork of_gone;  // of queues and JFCs that are destroyed; the indices of others say theirs

  uint32_t mapped_buckets[kMappedBuckets] = {};  // by instance and token id: MappedMemory
  uint32_t invalidations = 0;  // token ids that peers revoked
  Route routes[kRoutes] = {};
  uint64_t route_epoch = 1;  // routes with another epoch are not valid any more (forget_routes())

  NumberRange queue_timers;
  NumberRange jfc_timers;  // the Core handles them: the period of a moderated JFC ends (ta::end_period())
  uint32_t wake_up = 0;    // a timer that nobody handles: its deadline makes the driver come back (drive_again())
  uint32_t timer_of_queue(uint32_t queue) const { return queue_timers.of(queue); }
};

// The words of the state that mean something in this process alone: an image of a Core does not carry them over
// (Core::replace_state()).
class ProcessWords {
 public:
  explicit ProcessWords(const CoreState& s)
      : looker_(s.looker), last_notes_(s.last_notes), call_log_(s.call_log), observed_(s.observed) {
    for (uint32_t i = 0; i < kMaxWaiterKinds; ++i) kinds_[i] = s.waiter_kinds[i];
  }
  void restore(CoreState& s) const {
    s.looker = looker_;
    s.last_notes = last_notes_;
    s.call_log = call_log_;
    s.observed = observed_;
    for (uint32_t i = 0; i < kMaxWaiterKinds; ++i) s.waiter_kinds[i] = kinds_[i];
  }

 private:
  Looker looker_;
  LastNotes* last_notes_;
  CallLog* call_log_;
  bool observed_;
  WaiterKind kinds_[kMaxWaiterKinds];
};

// Take the tables from the arena; an arena with a null base only measures. Each engine takes its own tables first, in
// any order; lay_out_shared() comes last.
void lay_out_ub(CoreState& s, Arena& arena);
void lay_out_shared(CoreState& s, Arena& arena);

// Adds a kind of waiters: the records of `table`, whose member kWaiter is a Waiter.
template <auto kWaiter, class T>
NumberRange add_waiters(CoreState& s, Slab<T>& table, uint32_t count, void* engine,
                        void (*try_again)(CoreState& s, void* engine, uint32_t record)) {
  UB_ASSERT(s.waiter_kind_count < kMaxWaiterKinds);
  const auto waiter = [](void* records, uint32_t record) -> Waiter& {
    return (*static_cast<Slab<T>*>(records))[record].*kWaiter;
  };
  const NumberRange numbers = s.waiter_numbers.take(count);
  s.waiter_kinds[s.waiter_kind_count++] = {numbers, &table, engine, waiter, try_again};
  return numbers;
}

// ---- lists and events, used everywhere -------------------------------------------------------------------------
// Some work was interrupted and goes on at the next turn, so the driver must not sleep. The timer is set 1 ns ahead: if
// it were due now, a call of on_timer() that is under way would consume it.
inline void drive_again(CoreState& s) { s.timers.arm(s.wake_up, s.now + nanoseconds(1)); }

// Something has changed that may decide which channel a request takes.
inline void forget_routes(CoreState& s) { ++s.route_epoch; }

// `held_back` of a channel or send queue: it has something to send and must hear from the peer first.
inline void set_held_back(CoreState& s, bool* held_back, bool yes) {
  if (*held_back == yes) return;
  UB_DCHECK(yes || s.held_back != 0);
  *held_back = yes;
  yes ? ++s.held_back : --s.held_back;
}

inline void activate_link(CoreState& s, uint32_t link) {
  if (s.links[link].on_active_list) return;
  s.active_links.push_back<&LinkRecord::on_active_list>(s.links, link);
}

void push_event(CoreState& s, const Event& event);
// The lane that a channel belongs to. The channel has a peer.
inline Lane& lane_of(CoreState& s, const tp::Channel& ch) { return s.peers[ch.peer].lanes[ch.lane]; }
// The record of a channel of CTP whose wire may lose packets. The channel has one.
inline ta::Repeats& repeats_of(CoreState& s, const tp::Channel& ch) { return s.repeats[ch.repeats]; }

inline void push_event(CoreState& s, EventKind kind, uint64_t object, Owner owner = 0) {
  push_event(s, {kind, object, owner});
}
void push_jfc_event(CoreState& s, uint32_t jfc, bool completion);
size_t drain_events(CoreState& s, Event* out, size_t room);

}  // namespace ub
