// SPDX-License-Identifier: Apache-2.0
//
// What one Core knows: its tables, pools, timers and outgoing lists; those that all engines share, and UB's. Other engines
// have a state of their own beside it (engine.h). Plain state; the rules that move it live in the functions of ta/, setup/
// and resource/, which take it as their first argument, and of tp/, which take their part of it (tp/state.h) and see
// nothing else.
#pragma once

#include <cstdint>

#include "lib/base/index_list.h"
#include "lib/base/prng.h"
#include "lib/base/slab.h"
#include "lib/transport/core_types.h"
#include "lib/transport/resource/id_space.h"
#include "lib/transport/resource/records.h"
#include "lib/transport/setup/finding.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/wire/control_record.h"

namespace ub {

constexpr uint32_t kMaxEids = 64;
constexpr uint32_t kEventRing = 1024;
constexpr uint32_t kOutboxRing = 1024;
constexpr uint32_t kPeerBuckets = 8192;

// What an id of the 20-bit space names.
struct IdSlot {
  uint32_t record;    // Jetty, Jfr or Group
  uint32_t freed_ms;  // rests since
  ObjectKind kind;
};

// A control record on its way out.
struct OutRecord {
  uint32_t link;
  uint32_t pad_to_mtu;  // 0: as it is; else as long as the largest data packet of that MTU
  wire::Endpoint local, remote;
  wire::ControlRecord record;
};

// Those of one kind who may wait for room in a JFC: send queues, JFRs, queue pairs.
struct WaiterKind {
  NumberRange numbers;  // by record
  void* table;          // a Slab of records, each of which has a Waiter
  void* engine;         // its state, null: none is needed
  Waiter& (*waiter)(void* table, uint32_t record);
  void (*try_again)(CoreState& s, void* engine, uint32_t record);  // there may be room now
};
constexpr uint32_t kMaxWaiterKinds = 8;

struct CoreState : tp::State {
  Instant now;
  Prng prng{1};

  Eid eids[kMaxEids];
  uint32_t eid_count = 0;

  Slab<LinkRecord> links;
  Slab<Jfc> jfcs;
  Slab<Jfr> jfrs;
  Slab<Jetty> jettys;
  Slab<Group> groups;
  Slab<SendQueue> queues;
  Slab<Segment> segments;
  Slab<Target> targets;
  Slab<Peer> peers;
  Slab<ReadJob> jobs;
  Slab<RxReceive> receives;
  Slab<ParkedMessage> parked;
  Slab<GatheringDatagram> gathering;
  Slab<ArrivingDatagram> arriving;
  uint16_t* gathering_of = nullptr;  // how many an owner has
  uint16_t* arriving_of = nullptr;

  IdSlot* ids = nullptr;         // kIdSpace
  TokenId* token_ids = nullptr;  // kIdSpace
  IdBlocks id_blocks;            // of both
  uint32_t next_id = 0;          // whose turn it is
  uint32_t next_token_id = 0;
  uint32_t* peer_buckets = nullptr;
  setup::Findings findings;

  NumberRanges waiter_numbers;
  WaiterKind waiter_kinds[kMaxWaiterKinds];
  uint32_t waiter_kind_count = 0;
  NumberRange queue_waiters, jfr_waiters;
  uint32_t receives_at_once = 0;  // so many may be taken and not completed, of all engines

  uint32_t held_back = 0;  // channels and send queues whose `held_back` is set
  // Links with datagrams to send.
  IndexList active_links;
  bool datagrams_first = false;         // before channels, at the last poll
  IndexList receives_with_late_copies;  // that copies of dead channels may still write
  IndexList resting;                    // dead channels whose TPNs rest

  Event events[kEventRing];
  uint32_t event_head = 0, event_tail = 0;
  IndexList event_jfcs;    // with an event to report
  IndexList blocked_jfcs;  // that were waited for
  OutRecord outbox[kOutboxRing];
  uint32_t outbox_head = 0, outbox_tail = 0;
  Instant reset_window{};
  uint32_t resets_sent = 0;

  NumberRange held_datagrams, queue_timers;
  uint32_t wake_up = 0;  // a timer of nobody: when it is due, the driver comes, and that is all
  uint32_t held_of_datagram(uint32_t record) const { return held_datagrams.of(record); }
  uint32_t timer_of_queue(uint32_t queue) const { return queue_timers.of(queue); }
};

// Take tables from the arena; a null arena only measures. UB's come first or behind those of other engines, what all
// share comes last.
void lay_out_ub(CoreState& s, Arena& arena);
void lay_out_shared(CoreState& s, Arena& arena);

// A kind of waiters: records of `table`, each with a Waiter.
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
// Something goes on by itself, bit by bit, so the driver must not sleep. It comes behind this moment: a round of timers
// that is under way would use up one that is due now.
inline void drive_again(CoreState& s) { s.timers.arm(s.wake_up, s.now + nanoseconds(1)); }

// It has something to send, and must first hear from the peer.
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
// That of the channel, which has a peer.
inline Lane& lane_of(CoreState& s, const tp::Channel& ch) { return s.peers[ch.peer].lanes[ch.bulk ? 1 : 0]; }

inline void push_event(CoreState& s, EventKind kind, uint64_t object, Owner owner = 0) {
  push_event(s, {kind, object, owner});
}
void push_jfc_event(CoreState& s, uint32_t jfc, bool completion);
size_t drain_events(CoreState& s, Event* out, size_t room);

}  // namespace ub
