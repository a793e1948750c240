// SPDX-License-Identifier: Apache-2.0
//
// The state of the transport layer of one Core: its channels, and the pools and lists that they share. The functions
// of tp/ take it, or one of its channels, and the time. They return what happened and call no other layer.
#pragma once

#include <cstdint>

#include "lib/base/arena.h"
#include "lib/base/index_list.h"
#include "lib/base/slab.h"
#include "lib/transport/core_common.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/tp/packet_index.h"
#include "lib/transport/tp/path.h"

namespace ub::tp {

struct State : CoreCommon {
  using CoreCommon::count;
  // Counts an event of a channel, for it and for all together.
  void count(uint32_t channel, ChannelCount what, uint64_t n = 1) {
    count(total_of(what), n);
    channel_counts[channel].v[static_cast<size_t>(what)] += n;
  }

  Slab<Channel> channels;
  ChannelCounts* channel_counts = nullptr;  // beside `channels`
  Slab<RecoveryBlock> recovery;
  Slab<Resent> resent;
  cc::SendTimes send_times;  // when packets left, for flows that want round trips
  Slab<PathBlock> path_blocks;  // of channels with several paths
  Path* paths = nullptr;        // CoreConfig::most_paths for each block
  MessagePool messages;      // in flight, or to be sent by CTP: there are chunks for the windows of all channels
  MessagePool answers;       // those that wait for their turn; a channel has a share of them

  // Reorder blocks: bitmaps of the packets that were accepted beyond a gap, by PSN mod window.
  Slab<uint32_t> reorder;
  uint64_t* reorder_bits = nullptr;
  KeptPackets kept;
  PacketIndex kept_by_psn;  // those of `kept` that were accepted and wait for their delivery

  // `active`: channels with data to send; `owing_acks`: channels that owe an acknowledgement; `without_room`: those
  // that found their port full in this turn (full_port.h).
  IndexList active, owing_acks, without_room;
  Instant acks_due = Instant::never();  // no acknowledgement is due earlier
  bool acks_found_no_room = false;      // they are sent before data next time, or data would fill the port each time

  uint64_t* received_bits(uint32_t block) { return reorder_bits + size_t{block} * (config.window_packets / 64); }

  NumberRange held_homes;  // of held frames: the number that each channel has for itself (held_frames.h)
  NumberRange channel_timers;
  uint32_t home_of_channel(uint32_t channel) const { return held_homes.of(channel); }
  uint32_t timer_of_channel(uint32_t channel) const { return channel_timers.of(channel); }
};

// Takes the tables from the arena, and ranges of timers and of held frames. The caller calls
// CoreCommon::lay_out_ranges() later.
void lay_out_channels(State& s, Arena& arena);

inline uint32_t number_of(const State& s, const Channel& ch) { return static_cast<uint32_t>(&ch - &s.channels[0]); }

// The channel has something to send.
inline void activate(State& s, uint32_t channel) {
  if (s.channels[channel].on_active_list) return;
  s.active.push_back<&Channel::on_active_list>(s.channels, channel);
}

// Takes the first channel off the list of those with something to send, which must not be empty.
inline uint32_t take_active(State& s) { return s.active.pop_front<&Channel::on_active_list>(s.channels); }

inline void owe_ack(State& s, uint32_t channel) {
  if (s.channels[channel].on_ack_list) return;
  s.owing_acks.push_back<&Channel::on_ack_list>(s.channels, channel);
}

}  // namespace ub::tp
