// SPDX-License-Identifier: Apache-2.0
//
// All that one Core knows: its tables, pools, timers and outgoing lists. Plain state; the rules that move it live
// in the functions of tp/, ta/, setup/ and resource/, which take it as their first argument.
#pragma once

#include <cstdint>

#include "lib/base/counters.h"
#include "lib/base/prng.h"
#include "lib/base/slab.h"
#include "lib/base/timer_heap.h"
#include "lib/transport/core_types.h"
#include "lib/transport/resource/id_space.h"
#include "lib/transport/resource/records.h"
#include "lib/transport/setup/finding.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub {

namespace roce {
struct State;
}

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

// A packet that arrived ahead of what can be delivered: everything behind its transport header. Of RoCE: all of it.
struct KeptPacket {
  wire::RtpHeader rtp;
  uint32_t bytes;
  uint32_t next = 0;  // RoCE: of the same queue pair
};

// A control record on its way out.
struct OutRecord {
  uint32_t link;
  uint32_t pad_to_mtu;  // 0: as it is; else as long as the largest data packet of that MTU
  wire::Endpoint local, remote;
  wire::ControlRecord record;
};

struct CoreState {
  CoreConfig config;
  Instant now;
  Prng prng{1};
  Counters counters;

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
  Slab<tp::Channel> channels;
  Slab<ReadJob> jobs;
  Slab<RxReceive> receives;
  Slab<GatheringDatagram> gathering;
  Slab<ArrivingDatagram> arriving;
  uint16_t* gathering_of = nullptr;  // how many an owner has
  uint16_t* arriving_of = nullptr;
  Slab<tp::RecoveryBlock> recovery;
  tp::MessagePool messages;

  IdSlot* ids = nullptr;         // kIdSpace
  TokenId* token_ids = nullptr;  // kIdSpace
  IdBlocks id_blocks;            // of both
  uint32_t next_id = 0;          // whose turn it is
  uint32_t next_token_id = 0;
  uint32_t* peer_buckets = nullptr;
  setup::Findings findings;

  // Reorder blocks: a bitmap of accepted packets and the kept ones, by PSN mod window.
  Slab<uint32_t> reorder;
  uint64_t* reorder_bits = nullptr;
  uint32_t* reorder_kept = nullptr;
  Slab<KeptPacket> kept;
  std::byte* kept_bytes = nullptr;

  TimerHeap timers;  // channels, then send queues, then RoCE

  roce::State* roce = nullptr;  // null: off

  // Channels with data to send, channels that owe an acknowledgement.
  uint32_t active_head = 0, active_tail = 0, active_count = 0;
  uint32_t ack_head = 0, ack_tail = 0;
  Instant acks_due = Instant::never();  // no acknowledgement that is owed has to leave before
  uint32_t held_back = 0;               // channels and send queues whose `held_back` is set
  // Links with datagrams to send.
  uint32_t active_link_head = 0, active_link_tail = 0, active_link_count = 0;
  bool datagrams_first = false;                 // so it was at the last turn
  uint32_t receives_with_late_copies = 0;       // list of receives that copies of dead channels may still write
  uint32_t resting_head = 0, resting_tail = 0;  // dead channels whose TPNs rest

  // Frames that wait for memory which answers later: one per channel, per record of `gathering`, per queue pair.
  std::byte* held_frames = nullptr;
  // Those whose channel, queue or queue pair gave them up; the Core tells the host.
  uint32_t* orphans = nullptr;
  uint32_t orphan_count = 0;

  Event events[kEventRing];
  uint32_t event_head = 0, event_tail = 0;
  uint32_t event_jfcs = 0;                      // list
  uint32_t blocked_head = 0, blocked_tail = 0;  // list of JFCs
  OutRecord outbox[kOutboxRing];
  uint32_t outbox_head = 0, outbox_tail = 0;
  Instant reset_window{};
  uint32_t resets_sent = 0;

  uint64_t* received_bits(uint32_t block) { return reorder_bits + size_t{block} * (config.window_packets / 64); }
  uint32_t* kept_of(uint32_t block) { return reorder_kept + size_t{block} * config.window_packets; }
  std::byte* kept_data(uint32_t index) { return kept_bytes + size_t{index} * config.max_frame_bytes; }

  uint32_t held_of_channel(uint32_t channel) const { return channel; }
  uint32_t held_of_datagram(uint32_t record) const { return config.max_channels + record; }
  uint32_t held_of_qp(uint32_t qp) const { return config.max_channels + kGatheringDatagrams + qp; }
  std::byte* held_frame(uint32_t held) {
    UB_ASSERT(config.slow_memory);
    return held_frames + size_t{held} * config.max_frame_bytes;
  }
  void orphan(uint32_t held) { orphans[orphan_count++] = held; }

  uint32_t timer_of_channel(uint32_t channel) const { return channel; }
  uint32_t timer_of_queue(uint32_t queue) const { return config.max_channels + 1 + queue; }
  uint32_t first_roce_timer() const { return config.max_channels + 1 + config.max_queues + 1; }

  void count(Counter c, uint64_t n = 1) { counters.add(c, n); }
};

// Takes all tables from the arena; a null arena only measures.
void lay_out(CoreState& s, Arena& arena);

// May one of many take another record of a pool, having `held`? No more than are left for all others, so that one alone
// gets half of the pool, and whoever takes what he can leaves as much to the next.
template <class T>
bool has_share(const Slab<T>& pool, uint32_t held) {
  return held < pool.capacity() - pool.in_use();
}

// ---- lists and events, used everywhere -------------------------------------------------------------------------
// It has something to send.
inline void activate(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  if (ch.on_active_list) return;
  ch.on_active_list = true;
  ch.next_active = 0;
  if (s.active_tail != 0) {
    s.channels[s.active_tail].next_active = channel;
  } else {
    s.active_head = channel;
  }
  s.active_tail = channel;
  ++s.active_count;
}

// It has something to send, and must first hear from the peer.
inline void set_held_back(CoreState& s, bool* held_back, bool yes) {
  if (*held_back == yes) return;
  UB_DCHECK(yes || s.held_back != 0);
  *held_back = yes;
  yes ? ++s.held_back : --s.held_back;
}

inline void activate_link(CoreState& s, uint32_t link) {
  LinkRecord& l = s.links[link];
  if (l.on_active_list) return;
  l.on_active_list = true;
  l.next_active = 0;
  (s.active_link_tail != 0 ? s.links[s.active_link_tail].next_active : s.active_link_head) = link;
  s.active_link_tail = link;
  ++s.active_link_count;
}

inline void owe_ack(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  if (ch.on_ack_list) return;
  ch.on_ack_list = true;
  ch.next_ack = 0;
  if (s.ack_tail != 0) {
    s.channels[s.ack_tail].next_ack = channel;
  } else {
    s.ack_head = channel;
  }
  s.ack_tail = channel;
}

void push_event(CoreState& s, const Event& event);
inline void push_event(CoreState& s, EventKind kind, uint64_t object, Owner owner = 0) {
  push_event(s, {kind, object, owner});
}
void push_jfc_event(CoreState& s, uint32_t jfc, bool completion);
size_t drain_events(CoreState& s, Event* out, size_t room);

}  // namespace ub
