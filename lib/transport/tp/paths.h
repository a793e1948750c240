// SPDX-License-Identifier: Apache-2.0
//
// The paths of a channel that has several (docs/paths-design.md): which one a packet takes, what becomes of it there,
// and whether a path still works. congestion.h tells this file what it tells the flow of a channel with one path. How
// paths are added and found is in path_block.cc, all else in paths.cc. The PINGs by which a path begins to live are in
// setup/path_life.h.
#pragma once

#include <span>

#include "lib/transport/cc/signals.h"
#include "lib/transport/tp/path.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

inline PathBlock& block_of(State& s, const Channel& ch) { return s.path_blocks[ch.paths]; }
inline Path& path_at(const State& s, const Channel& ch, uint32_t path) {
  return s.paths[size_t{ch.paths} * s.config.most_paths + path];
}
inline std::span<Path> paths_of(const State& s, const Channel& ch) {
  return {&path_at(s, ch, 0), s.path_blocks[ch.paths].count};
}

// ---- life ------------------------------------------------------------------------------------------------------

// The channel, which has one path until now, gets a block, with that path and what is in flight on it. The path has a
// flow of its own in place of that of the channel. False: no block is left, and the channel stays on its one path.
bool begin_paths(State& s, uint32_t channel, Instant now);
void end_paths(State& s, Channel& ch);
// The path between these addresses; kNoPath: there is none.
uint8_t find_path(State& s, const Channel& ch, const wire::Endpoint& local, const wire::Endpoint& remote);
// Adds a path, which does not live yet, and is to be asked now; kNoPath: there is no room, or its addresses are of
// another version of IP than those of the others. `yields`: the place of one that never lived, and of which the peer
// has not asked, is room, too; that of one that the peer refused always is.
uint8_t add_path(State& s, uint32_t channel, Instant now, const wire::Endpoint& local, const wire::Endpoint& remote,
                 bool yields = false);
// The peer has answered on it: the path lives. `round_trip`: how long that took.
void path_answers(State& s, uint32_t channel, uint8_t path, Instant now, Duration round_trip);
// The path lives no longer, and is to be asked now. The last one that lives goes on.
void suspect_path(State& s, uint32_t channel, uint8_t path, Instant now);

// ---- sending ---------------------------------------------------------------------------------------------------
// A data packet leaves: chooses its path, and writes the network headers of that into the frame.
void depart(State& s, uint32_t channel, Instant now, const TxMessage& m, Psn psn, std::span<std::byte> frame,
            bool again);
// The peer has this packet, beyond a gap. To be followed by judge_by_paths().
void arrived_by_path(State& s, Channel& ch, Psn psn, Instant now);
// The peer has the packets in [from, to), which are no longer in flight.
void acknowledged_by_paths(State& s, uint32_t channel, Instant now, Psn from, Psn to);
// judge() (recovery.h) for several paths: a packet is lost if enough that left later on the same path have arrived, or
// if such as left much later on others have.
uint32_t judge_by_paths(State& s, Channel& ch, Psn end, Instant now, Psn* first);
// All packets from there on are lost, or doubtful after a timeout. A path that owes some of them is suspected if
// nothing has arrived on it for a timeout.
void lost_by_paths(State& s, uint32_t channel, Instant now, Psn from);
void marked_on_path(State& s, uint32_t channel, Instant now, const cc::Mark& mark);
void fed_back_on_path(State& s, uint32_t channel, Instant now, const cc::Feedback& feedback);
// Copies the verdicts of all paths into the fields of the channel that packets read. One that may send more than before
// is activated.
void heed_paths(State& s, uint32_t channel, Instant now);
// Copies the verdicts of all paths into the fields of the channel that packets read. One that may send more than before
// is activated.
void heed_paths(State& s, uint32_t channel, Instant now);
// The timers of their flows may have come.
void look_at_paths(State& s, uint32_t channel, Instant now);

// ---- receiving -------------------------------------------------------------------------------------------------
// A packet came between these addresses, and belongs to the channel. Addresses of no path change nothing.
void heard_on_path(State& s, Channel& ch, const wire::Endpoint& local, const wire::Endpoint& remote);
// The path over which the last packet came.
inline Path& heard_from(State& s, const Channel& ch) { return path_at(s, ch, block_of(s, ch).heard_from); }
// The path that the next acknowledgement takes: the next one that lives and has something to report, else the one over
// which the last packet came, if it lives.
uint8_t path_of_ack(State& s, const Channel& ch);
// It has left.
void ack_left(State& s, const Channel& ch, Path& path);
// A live path; for records.
uint8_t any_live_path(State& s, const Channel& ch);

}  // namespace ub::tp
