// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/state.h"

#include <algorithm>

namespace ub::tp {

namespace {

constexpr uint32_t kFewestAnswerChunks = 256;  // a small table of channels has busy ones, too
constexpr uint32_t kResentRecords = 4096;

// Flows that do not want them have no block of times.
bool wants_round_trips(const CoreConfig& c) {
  return c.listen_to_network || c.congestion_control == cc::Control::kSwift;
}

}  // namespace

void lay_out_channels(State& s, Arena& arena) {
  const CoreConfig& c = s.config;
  s.channels.init(arena, c.max_channels);
  s.channel_counts = arena.take<ChannelCounts>(c.max_channels + 1);
  s.recovery.init(arena, c.max_channels);
  s.resent.init(arena, kResentRecords);
  s.send_times.init(arena, wants_round_trips(c) ? c.max_channels : 0, kMaxWindow);
  const uint32_t blocks = c.most_paths > 1 ? std::min(c.path_channels, c.max_channels) : 0;
  s.path_blocks.init(arena, blocks);
  s.paths = arena.take<Path>(blocks == 0 ? 0 : size_t{blocks + 1} * c.most_paths);
  // A window of one-packet messages may begin and end in the midst of a chunk.
  s.messages.init(arena, c.max_channels * (c.window_packets / kMessagesPerChunk + 2));
  s.answers.init(arena, c.max_channels * 2 + c.read_jobs + kFewestAnswerChunks);
  s.held_homes = s.held.numbers.take(c.max_channels + 1);
  s.channel_timers = s.timer_numbers.take(c.max_channels + 1);
  s.reorder.init(arena, c.max_channels);
  s.reorder_bits = arena.take<uint64_t>(size_t{c.max_channels + 1} * (c.window_packets / 64));
  s.kept.init(arena, c.kept_small_packets, c.kept_packets, c.max_frame_bytes);
  s.kept_by_psn.init(arena, c.kept_small_packets + c.kept_packets);
}

}  // namespace ub::tp
