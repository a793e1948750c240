// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/paths.h"

#include "lib/transport/tp/path_parts.h"
#include "lib/transport/tp/recovery.h"

namespace ub::tp {

namespace {

// What is in flight has left on the first path, just now as far as is known.
void note_departures(State& s, Channel& ch, Instant now) {
  Path& first = path_at(s, ch, 0);
  for (Psn psn = ch.oldest_unacked; psn != ch.next_psn; ++psn) {
    const bool noted = ch.recovery != 0;
    const RecoveryBlock& r = s.recovery[ch.recovery];
    if (noted && test_bit(r.sacked, recovery_index(psn))) continue;
    const bool lost = noted && goes_again(r, psn), again = noted && test_bit(r.resent, recovery_index(psn));
    departure_of(s, ch, psn) = {0, lost, again, static_cast<uint16_t>(++first.newest), LeftAt::of(now)};
    first.in_flight += !lost;
  }
}

}  // namespace

bool begin_paths(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  UB_DCHECK(!ch.several_paths);
  const uint32_t number = s.path_blocks.in_use() == s.path_blocks.capacity() ? 0 : s.path_blocks.alloc();
  if (number == 0) return false;
  const cc::Flow before = ch.flow;
  cc::end(ch.flow, s.send_times);
  // The channel has no flow of its own from now on. That there is one to tell, it still has to say.
  ch.flow.algorithm = before.algorithm == cc::Algorithm::kNone ? cc::Algorithm::kListener : before.algorithm;
  ch.paths = static_cast<uint16_t>(number);
  ch.several_paths = ch.tells_sent = true;
  PathBlock& block = block_of(s, ch);
  block = {};
  block.latest_left = LeftAt::of(now);
  for (Departure& d : block.departures) d.path = kNoPath;
  block.count = 1;
  Path& first = path_at(s, ch, 0);
  first = {};
  first.local = ch.local_endpoint;
  first.remote = ch.remote_endpoint;
  first.headers = ch.headers;
  first.live = true;
  first.round_trip = ch.round_trip;
  if (ch.feeds_back) {
    first.heard = ch.heard;  // totals that began anew would seem to be old ones
  } else {
    first.next_cnp = ch.next_cnp;
  }
  first.tolerance.begin(ReorderTolerance::kLeastPackets);
  note_departures(s, ch, now);
  cc::begin(first.flow, before.algorithm, terms_of(s, ch, first), next_on(first));
  cc::take_over(first.flow, before);
  heed_paths(s, channel, now);
  return true;
}

void end_paths(State& s, Channel& ch) {
  ch.takes_paths = false;
  if (!ch.several_paths) return;
  s.path_blocks.free(ch.paths);
  ch.paths = 0;
  ch.several_paths = false;
}

uint8_t find_path(State& s, const Channel& ch, const wire::Endpoint& local, const wire::Endpoint& remote) {
  const std::span<Path> paths = paths_of(s, ch);
  const uint8_t guess = block_of(s, ch).heard_from;
  if (paths[guess].remote == remote && paths[guess].local == local) return guess;
  for (uint8_t i = 0; i < paths.size(); ++i) {
    if (paths[i].remote == remote && paths[i].local == local) return i;
  }
  return kNoPath;
}

namespace {

// The last place that another path may have, or kNoPath. No packet has ever left on that path.
uint8_t place_to_give_up(const State& s, const Channel& ch, bool yields) {
  for (auto i = static_cast<uint8_t>(paths_of(s, ch).size()); i-- > 1;) {
    const Path& p = path_at(s, ch, i);
    if (!p.live && p.deaths == 0 && (p.ask_at.is_never() || (yields && !p.known))) return i;
  }
  return kNoPath;
}

}  // namespace

uint8_t add_path(State& s, uint32_t channel, Instant now, const wire::Endpoint& local, const wire::Endpoint& remote,
                 bool yields) {
  Channel& ch = s.channels[channel];
  PathBlock& block = block_of(s, ch);
  const bool has_room = block.count != s.config.most_paths;
  const uint8_t at = has_room ? block.count : place_to_give_up(s, ch, yields);
  if (at == kNoPath) return kNoPath;
  Path fresh{};
  fresh.headers.init({}, {}, local, remote, ch.headers.dscp());
  if (fresh.headers.size != ch.headers.size) return kNoPath;
  fresh.local = local;
  fresh.remote = remote;
  fresh.ask_at = now;
  fresh.tolerance.begin(ReorderTolerance::kLeastPackets);
  cc::begin(fresh.flow, path_at(s, ch, 0).flow.algorithm, terms_of(s, ch, fresh), next_on(fresh));
  path_at(s, ch, at) = fresh;
  block.count += has_room;
  s.timers.arm(s.timer_of_channel(channel), now);
  return at;
}

}  // namespace ub::tp
