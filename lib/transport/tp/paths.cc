// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/paths.h"

#include <algorithm>
#include <bit>

#include "lib/transport/tp/path_choice.h"
#include "lib/transport/tp/path_parts.h"
#include "lib/transport/tp/recovery.h"
#include "lib/transport/tp/transmit_state.h"

namespace ub::tp {
namespace {

bool any_lives(State& s, const Channel& ch) {
  return std::ranges::any_of(paths_of(s, ch), [](const Path& p) { return p.live; });
}

// The shortest smoothed round trip of the paths that live.
Duration fastest_round_trip(State& s, const Channel& ch) {
  Duration fastest = seconds(1);
  for (const Path& p : paths_of(s, ch)) {
    if (p.live && p.round_trip.smoothed.ns != 0) fastest = std::min(fastest, p.round_trip.smoothed);
  }
  return fastest;
}

}  // namespace

void heed_paths(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  uint32_t window = 0;
  bool paced = true;
  Instant deadline = Instant::never();
  const Duration fastest = fastest_round_trip(s, ch);
  for (Path& p : paths_of(s, ch)) {
    if (!p.live) continue;
    p.room = room_on(p, fastest);
    const bool may_leave = cc::may_leave(p.flow, now);
    window += may_leave ? p.room : std::min(p.room, p.in_flight);
    paced &= !may_leave;
    deadline = earlier(deadline, cc::deadline(p.flow, now));
  }
  const uint32_t window_before = ch.send_window;
  ch.paced = paced;
  ch.send_window = paced ? 0 : std::min(ch.agreed_window, window);
  if (ch.send_window > window_before) activate(s, channel);
  s.timers.arm(s.timer_of_channel(channel), deadline);
}

namespace {

// ---- which path ----

uint8_t best_path(State& s, const Channel& ch, Instant now, uint8_t avoided) {
  PathChoice choice{.now = now};
  const std::span<Path> paths = paths_of(s, ch);
  for (uint8_t i = 0; i < paths.size(); ++i) {
    if (paths[i].live && i != avoided) choice.consider(i, paths[i]);
  }
  return choice.best != kNoPath ? choice.best : avoided;
}

// The path of a queue or message while that has room, and of Go-Back-N while it lives.
uint8_t path_to_stay_on(State& s, const Channel& ch, const TxMessage& m, Psn psn, bool again) {
  PathBlock& block = block_of(s, ch);
  if (ch.go_back_n) return block.current;
  if (s.config.spread == Spread::kPackets || again) return kNoPath;
  if (s.config.spread == Spread::kQueues) return static_cast<uint8_t>(m.source % block.count);
  return psn == m.first_psn ? kNoPath : block.current;
}

uint8_t choose_path(State& s, const Channel& ch, Instant now, const TxMessage& m, Psn psn, bool again) {
  PathBlock& block = block_of(s, ch);
  const uint8_t stay = path_to_stay_on(s, ch, m, psn, again);
  if (stay != kNoPath) {
    const Path& p = path_at(s, ch, stay);
    if (p.live && (ch.go_back_n || has_room(p, now))) return stay;
  }
  // What goes again had no luck on its path.
  const Departure& last = departure_of(s, ch, psn);
  const uint8_t path = best_path(s, ch, now, again ? last.path : kNoPath);
  if (!again) block.current = path;
  return path;
}

// ---- what becomes of a packet ----

// The departure no longer counts as one in flight on its path.
void end_departure(State& s, const Channel& ch, Departure& d) {
  if (d.path == kNoPath || d.lost) return;
  Path& p = path_at(s, ch, d.path);
  UB_DCHECK(p.in_flight != 0);
  --p.in_flight;
}

// Nobody knows which departure of a packet that left several times has arrived, unless an earlier one had been answered
// sooner.
bool tells_of_path(const Path& p, const Departure& d, Instant now) {
  if (!d.again) return true;
  return p.round_trip.since != Instant{} && d.left.before(LeftAt::of(now)) >= p.round_trip.smoothed;
}

void arrive(State& s, Channel& ch, Psn psn, Instant now) {
  Departure& d = departure_of(s, ch, psn);
  if (d.path == kNoPath) return;
  PathBlock& block = block_of(s, ch);
  Path& p = path_at(s, ch, d.path);
  end_departure(s, ch, d);
  if (d.lost && !d.again) p.tolerance.was_too_small();
  if (tells_of_path(p, d, now)) {
    const uint32_t number = number_of(p, d);
    if (static_cast<int32_t>(number - p.reach) > 0) {
      p.reach = number;
      p.reach_left = d.left;
      block.touched |= uint64_t{1} << d.path;
    }
    if (block.latest_left.before(d.left).ns > 0) block.latest_left = d.left;
  }
  ++p.arrived;
  d.path = kNoPath;
}

// The gap between arrivals matters while packets wait on the path: then they take longer than the least round trip, and
// the path was never idle if the latest one left before the last news came.
void measure_gap(Path& p, Duration sample, Instant now) {
  const Duration least = least_round_trip(p.round_trip);
  const bool waits = sample.ns * 4 > least.ns * 5;
  if (!waits) {
    p.gap_ns -= (p.gap_ns + 15) / 16;
    return;
  }
  if (now - sample >= p.news_at) return;
  const int64_t gap = std::min<int64_t>((now - p.news_at).ns / p.arrived, seconds(1).ns);
  const int64_t old = p.gap_ns == 0 ? gap : int64_t{p.gap_ns};
  p.gap_ns = static_cast<uint32_t>(old + (gap - old) / 8);
}

// What an acknowledgement told of one path.
void hear_of_path(State& s, Channel& ch, Path& p, Instant now, bool sampled) {
  if (sampled) {
    const Duration sample = p.reach_left.before(LeftAt::of(now));
    add_sample(p.round_trip, sample, now);
    measure_gap(p, sample, now);
    cc::round_trip(p.flow, terms_of(s, ch, p), now, sample);
    p.tolerance.acknowledged(p.arrived);
    p.news_at = now;
  }
  cc::acknowledged(p.flow, terms_of(s, ch, p), now, p.arrived, psn_of_number(p.reach + 1));
  p.arrived = 0;
}

void hear_of_paths(State& s, Channel& ch, Instant now) {
  PathBlock& block = block_of(s, ch);
  const std::span<Path> paths = paths_of(s, ch);
  for (uint8_t i = 0; i < paths.size(); ++i) {
    if (paths[i].arrived != 0) hear_of_path(s, ch, paths[i], now, (block.touched >> i & 1) != 0);
  }
  block.touched = 0;
}

// ---- losses ----

// A packet that has not arrived is lost if others that left so long after it, on other paths, have arrived: as long as
// this path is longer than the fastest one, and a margin, which grows while packets arrive that were taken for lost.
Duration lead_of_others(const Channel& ch, const Path& p, Duration fastest) {
  constexpr int64_t kMostFold = 8;
  const RoundTrip& r = p.round_trip;
  if (r.smoothed.ns == 0) return ch.rto;
  const Duration margin = std::max(r.deviation * 4, r.smoothed);
  const int64_t fold = std::min<int64_t>(p.tolerance.packets / ReorderTolerance::kLeastPackets, kMostFold);
  return r.smoothed - fastest + margin * fold;
}

bool is_overtaken_on_path(const Path& p, const Departure& d) {
  const auto behind = static_cast<int32_t>(p.reach - number_of(p, d));
  if (behind <= 0) return false;
  if (behind > p.tolerance.packets) return true;
  return p.tolerance.keeps_order() && d.left.before(p.reach_left) >= margin_of(p.round_trip);
}

// Nothing has arrived on the path since this packet left, nor any of at least two that left behind it or for long.
bool is_silent_path(const Path& p, const Departure& d, Duration elsewhere, Duration lead) {
  if (static_cast<int32_t>(p.reach - number_of(p, d)) > 0) return false;
  return elsewhere >= lead * 2 || static_cast<int32_t>(p.newest - p.reach) >= 3;
}

struct PathLosses {
  Duration fastest;  // round trip of the fastest path
  uint32_t count = 0;
  Psn first;
  uint64_t silent = 0;  // bit by path

  void add(Psn psn) {
    if (count++ == 0) first = psn;
  }
};

// Takes the packet for lost, and tells the flow of its path.
void lose(State& s, Channel& ch, Departure& d, Instant now) {
  Path& p = path_at(s, ch, d.path);
  end_departure(s, ch, d);
  d.lost = true;
  ++p.lost;
  cc::lost(p.flow, terms_of(s, ch, p), now, {psn_of_number(number_of(p, d)), next_on(p)});
}

void judge_packet(State& s, Channel& ch, RecoveryBlock& r, Psn psn, Instant now, PathLosses& losses) {
  Departure& d = departure_of(s, ch, psn);
  if (d.path == kNoPath || d.lost) return;
  const Path& p = path_at(s, ch, d.path);
  const Duration elsewhere = d.left.before(block_of(s, ch).latest_left), lead = lead_of_others(ch, p, losses.fastest);
  const bool late = elsewhere >= lead;
  if (!late && !is_overtaken_on_path(p, d)) return;
  if (late && is_silent_path(p, d, elsewhere, lead)) losses.silent |= uint64_t{1} << d.path;
  lose(s, ch, d, now);
  if (queue_resend(r, psn)) losses.add(psn);
}

// All packets of the path that did not arrive.
void lose_all_of_path(State& s, Channel& ch, RecoveryBlock& r, uint8_t path, Instant now, PathLosses& losses) {
  for (Psn psn = ch.oldest_unacked; psn != ch.next_psn; ++psn) {
    Departure& d = departure_of(s, ch, psn);
    if (d.path != path || d.lost) continue;
    lose(s, ch, d, now);
    if (queue_resend(r, psn)) losses.add(psn);
    if (psn.before(losses.first)) losses.first = psn;
  }
}

// A packet of the path goes again although nothing says that it is lost: a probe asks with it. The path is silent if
// what left later on others has arrived, and of itself nothing.
void judge_probed(State& s, uint32_t channel, Instant now, const Departure& d) {
  Channel& ch = s.channels[channel];
  const Duration elsewhere = d.left.before(block_of(s, ch).latest_left);
  const uint8_t path = d.path;
  if (ch.go_back_n || elsewhere.ns <= 0 || !is_silent_path(path_at(s, ch, path), d, elsewhere, ch.rto)) return;
  PathLosses losses{.fastest = {}, .first = ch.next_psn};
  lose_all_of_path(s, ch, s.recovery[ch.recovery], path, now, losses);
  suspect_path(s, channel, path, now);
  if (losses.count != 0) lost_fast(s, channel, now, losses.count, losses.first, ChannelCount::kAgainTime);
}

}  // namespace

// ---- life ------------------------------------------------------------------------------------------------------

void path_answers(State& s, uint32_t channel, uint8_t path, Instant now, Duration round_trip) {
  Channel& ch = s.channels[channel];
  Path& p = path_at(s, ch, path);
  if (p.live) return;
  s.count(Counter::kTpPathLive);
  s.note(Stage::kPathLives, channel, path);
  p.live = true;
  p.asked = 0;
  p.gap_ns = 0;
  p.reach = p.newest;  // what left before has no part in what comes
  p.round_trip = {};
  add_sample(p.round_trip, round_trip, now);
  p.news_at = now;
  heed_paths(s, channel, now);
  activate(s, channel);
}

void suspect_path(State& s, uint32_t channel, uint8_t path, Instant now) {
  Channel& ch = s.channels[channel];
  Path& p = path_at(s, ch, path);
  if (!p.live) return;
  p.live = false;
  if (!any_lives(s, ch)) {
    p.live = true;
    return;
  }
  ++p.deaths;
  s.count(Counter::kTpPathDead);
  s.note(Stage::kPathDies, channel, path);
  p.ask_at = now;
  cc::timed_out(p.flow, terms_of(s, ch, p), now, next_on(p));
  s.timers.arm(s.timer_of_channel(channel), now);
}

// ---- sending ---------------------------------------------------------------------------------------------------

void depart(State& s, uint32_t channel, Instant now, const TxMessage& m, Psn psn, std::span<std::byte> frame,
            bool again) {
  Channel& ch = s.channels[channel];
  Departure& d = departure_of(s, ch, psn);
  UB_DCHECK(again || d.path == kNoPath);
  if (d.path != kNoPath && !d.lost) judge_probed(s, channel, now, d);
  const uint8_t path = choose_path(s, ch, now, m, psn, again);
  end_departure(s, ch, d);
  // LeftAt cannot compare this time with one of minutes ago, and need not: nothing left meanwhile.
  if (ch.outstanding() == 0) block_of(s, ch).latest_left = LeftAt::of(now);
  Path& p = path_at(s, ch, path);
  p.headers.write(frame.data(), frame.size() - p.headers.size, p.flow.ecn);
  cc::sent(p.flow, terms_of(s, ch, p), now, static_cast<uint32_t>(frame.size()));
  d = {path, false, again, static_cast<uint16_t>(++p.newest), LeftAt::of(now)};
  ++p.in_flight;
  ++p.tx_packets;
  heed_paths(s, channel, now);
}

void arrived_by_path(State& s, Channel& ch, Psn psn, Instant now) { arrive(s, ch, psn, now); }

void acknowledged_by_paths(State& s, uint32_t channel, Instant now, Psn from, Psn to) {
  Channel& ch = s.channels[channel];
  for (Psn psn = from; psn != to; ++psn) arrive(s, ch, psn, now);
  hear_of_paths(s, ch, now);
  heed_paths(s, channel, now);
}

uint32_t judge_by_paths(State& s, Channel& ch, Psn end, Instant now, Psn* first) {
  hear_of_paths(s, ch, now);
  RecoveryBlock& r = s.recovery[ch.recovery];
  const uint32_t channel = number_of(s, ch);
  const Psn stop = end.before(ch.next_psn) ? end : ch.next_psn;
  PathLosses losses{.fastest = fastest_round_trip(s, ch), .first = {}};
  for (Psn psn = ch.oldest_unacked; psn.before(stop); ++psn) {
    if (!test_bit(r.sacked, recovery_index(psn))) judge_packet(s, ch, r, psn, now, losses);
  }
  for (uint64_t silent = losses.silent; silent != 0; silent &= silent - 1) {
    const auto path = static_cast<uint8_t>(std::countr_zero(silent));
    lose_all_of_path(s, ch, r, path, now, losses);
    suspect_path(s, channel, path, now);
  }
  heed_paths(s, channel, now);
  *first = losses.first;
  if (losses.count != 0) s.note(Stage::kPacketsLost, channel, losses.count, losses.first.value());
  return losses.count;
}

void lost_by_paths(State& s, uint32_t channel, Instant now, Psn from) {
  Channel& ch = s.channels[channel];
  uint64_t owing = 0;
  for (Psn psn = from; psn.before(ch.next_psn); ++psn) {
    Departure& d = departure_of(s, ch, psn);
    if (d.path == kNoPath || d.lost) continue;
    owing |= uint64_t{1} << d.path;
    lose(s, ch, d, now);
  }
  for (; owing != 0; owing &= owing - 1) {
    const auto path = static_cast<uint8_t>(std::countr_zero(owing));
    if (now - path_at(s, ch, path).news_at >= ch.rto) suspect_path(s, channel, path, now);
  }
  if (ch.go_back_n && !path_at(s, ch, block_of(s, ch).current).live) block_of(s, ch).current = any_live_path(s, ch);
  heed_paths(s, channel, now);
}

void marked_on_path(State& s, uint32_t channel, Instant now, const cc::Mark& mark) {
  Channel& ch = s.channels[channel];
  Path& p = path_at(s, ch, block_of(s, ch).heard_from);
  ++p.marks;
  cc::marked(p.flow, terms_of(s, ch, p), now, mark);
  heed_paths(s, channel, now);
}

void fed_back_on_path(State& s, uint32_t channel, Instant now, const cc::Feedback& feedback) {
  Channel& ch = s.channels[channel];
  Path& p = path_at(s, ch, block_of(s, ch).heard_from);
  const uint32_t marks = cc::new_marks(p.flow, feedback);
  p.marks += marks;
  s.count(channel, ChannelCount::kMarks, marks);
  cc::fed_back(p.flow, terms_of(s, ch, p), now, feedback);
  heed_paths(s, channel, now);
}

void look_at_paths(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  for (Path& p : paths_of(s, ch)) cc::timer(p.flow, terms_of(s, ch, p), now);
  heed_paths(s, channel, now);
}

// ---- receiving -------------------------------------------------------------------------------------------------

void heard_on_path(State& s, Channel& ch, const wire::Endpoint& local, const wire::Endpoint& remote) {
  const uint8_t path = find_path(s, ch, local, remote);
  if (path == kNoPath) return;
  block_of(s, ch).heard_from = path;
  Path& p = path_at(s, ch, path);
  ++p.rx_packets;
  p.has_news = true;
}

uint8_t path_of_ack(State& s, const Channel& ch) {
  const PathBlock& block = block_of(s, ch);
  const std::span<Path> paths = paths_of(s, ch);
  for (uint8_t n = 1; ch.feeds_back && n <= paths.size(); ++n) {
    const auto at = static_cast<uint8_t>((block.ack_path + n) % paths.size());
    if (paths[at].has_news && paths[at].live) return at;
  }
  return paths[block.heard_from].live ? block.heard_from : any_live_path(s, ch);
}

void ack_left(State& s, const Channel& ch, Path& path) {
  path.has_news = false;
  block_of(s, ch).ack_path = static_cast<uint8_t>(&path - paths_of(s, ch).data());
}

uint8_t any_live_path(State& s, const Channel& ch) {
  for (uint8_t i = 0; i < block_of(s, ch).count; ++i) {
    if (path_at(s, ch, i).live) return i;
  }
  return 0;
}

}  // namespace ub::tp
