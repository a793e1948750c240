// SPDX-License-Identifier: Apache-2.0
//
// The state of the transport layer of one Core: its channels, and the pools and lists that they share. The functions
// of tp/ take it, or a channel of it, and the time; they return what happened, and call nobody above them.
#pragma once

#include <cstdint>

#include "lib/base/arena.h"
#include "lib/base/slab.h"
#include "lib/transport/core_common.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub::tp {

// A packet that arrived ahead of what can be delivered: everything behind its transport header. Of RoCE: all of it.
struct KeptPacket {
  wire::RtpHeader rtp;
  uint32_t bytes;
  uint32_t next = 0;  // RoCE: of the same queue pair
};

// Packets of all channels that may wait for memory, beyond one each. Few, since each may have a gather for every range of
// its request, and what answers them may take only so many at a time.
constexpr uint32_t kMoreHeld = 256;

struct State : CoreCommon {
  Slab<Channel> channels;
  Slab<RecoveryBlock> recovery;
  cc::SendTimes send_times;  // of flows that want round trips
  MessagePool messages;

  // Reorder blocks: a bitmap of accepted packets and the kept ones, by PSN mod window.
  Slab<uint32_t> reorder;
  uint64_t* reorder_bits = nullptr;
  uint32_t* reorder_kept = nullptr;
  Slab<KeptPacket> kept;
  std::byte* kept_bytes = nullptr;

  // Packets that wait for memory. The first of each channel has its number; more are taken from a pool.
  HeldPacket* held = nullptr;
  Slab<uint32_t> more_held;

  // Channels with data to send, channels that owe an acknowledgement.
  uint32_t active_head = 0, active_tail = 0, active_count = 0;
  uint32_t ack_head = 0, ack_tail = 0;
  Instant acks_due = Instant::never();  // no acknowledgement that is owed has to leave before

  uint64_t* received_bits(uint32_t block) { return reorder_bits + size_t{block} * (config.window_packets / 64); }
  uint32_t* kept_of(uint32_t block) { return reorder_kept + size_t{block} * config.window_packets; }
  std::byte* kept_data(uint32_t index) { return kept_bytes + size_t{index} * config.max_frame_bytes; }

  // A packet's place in `held_frames` has the number of its record.
  uint32_t held_packets() const { return config.max_channels + kMoreHeld; }
  uint32_t timer_of_channel(uint32_t channel) const { return channel; }
};

// Takes the tables from the arena, but for `timers` and `held_frames`, which other layers use, too.
void lay_out_channels(State& s, Arena& arena);

// It has something to send.
inline void activate(State& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
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

// The first of those with something to send, taken off the list. There is one.
inline uint32_t take_active(State& s) {
  UB_DCHECK(s.active_head != 0);  // so many are on the list as are counted
  const uint32_t channel = s.active_head;
  Channel& ch = s.channels[channel];
  s.active_head = ch.next_active;
  if (s.active_head == 0) s.active_tail = 0;
  --s.active_count;
  ch.on_active_list = false;
  return channel;
}

inline void owe_ack(State& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
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

}  // namespace ub::tp
