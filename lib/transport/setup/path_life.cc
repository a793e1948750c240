// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/path_life.h"

#include <algorithm>

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/setup/terms.h"
#include "lib/transport/setup/ways.h"
#include "lib/transport/tp/paths.h"

namespace ub::setup {

using tp::Channel;
using tp::Path;
using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

namespace {

constexpr Duration kLongestPause = milliseconds(64);
constexpr Duration kFirstPause = microseconds(100);  // where no round trip is known
constexpr Duration kStrangerPause = seconds(10);     // where somebody else answers

// How long to wait for an answer before the next PING.
Duration pause_before_next(const Path& p) {
  const Duration first = p.round_trip.smoothed.ns == 0 ? kFirstPause : tp::pause_of(p.round_trip);
  return std::min(first * (int64_t{1} << std::min<uint8_t>(p.asked, 20)), kLongestPause);
}

void ask(CoreState& s, const Channel& ch, Path& p) {
  p.question = Psn(s.prng.next_u32());
  send_path_record(s, ch, p, RecordType::kPing);
  p.asked_at = s.now;
  p.ask_at = s.now + pause_before_next(p);
  if (p.asked != UINT8_MAX) ++p.asked;
}

// The peer has room for it now, also if it refused it before.
void is_asked_about(CoreState& s, uint32_t channel, Path& p) {
  p.known = true;
  if (p.live || !p.ask_at.is_never()) return;
  p.ask_at = s.now;
  s.timers.arm(s.timer_of_channel(channel), s.now);
}

// Is the path between these addresses one of the channel, or can it become one? `asked`: by the peer. Both ends may
// have so many of their own that there is no room for all: then those of the end that set the channel up come first.
bool takes_path(CoreState& s, uint32_t channel, const wire::Endpoint& local, const wire::Endpoint& remote, bool asked) {
  const Channel& ch = s.channels[channel];
  if (local == ch.local_endpoint && remote == ch.remote_endpoint) return true;
  if (local.ip.is_v4() != ch.local_endpoint.ip.is_v4()) return false;
  if (!ch.takes_paths || (!ch.several_paths && !tp::begin_paths(s, channel, s.now))) return false;
  uint8_t path = tp::find_path(s, ch, local, remote);
  if (path == tp::kNoPath) path = tp::add_path(s, channel, s.now, local, remote, asked && !ch.initiator);
  if (path == tp::kNoPath) return false;
  if (asked) is_asked_about(s, channel, tp::path_at(s, ch, path));
  return true;
}

}  // namespace

void open_paths(CoreState& s, uint32_t channel) {
  const Channel& ch = s.channels[channel];
  if (!ch.takes_paths) return;
  const Ways ways = ways_to(s, s.peers[ch.peer], ch.lane);
  for (const Way& way : ways.all()) {
    if (!takes_path(s, channel, way.local, way.remote, false)) s.count(Counter::kTpPathRefused);
  }
  if (ch.several_paths) ask_paths(s, channel);
}

void ask_paths(CoreState& s, uint32_t channel) {
  const Channel& ch = s.channels[channel];
  Instant next = Instant::never();
  for (Path& p : tp::paths_of(s, ch)) {
    if (p.live) continue;
    if (p.ask_at <= s.now) ask(s, ch, p);
    next = earlier(next, p.ask_at);
  }
  s.timers.arm(s.timer_of_channel(channel), next);
}

void on_path_ping(CoreState& s, const Arrival& from, const ControlRecord& r) {
  const uint32_t channel = channel_of(s, r);
  if (channel == 0) return send_path_answer(s, from, r, RecordReason::kUnknownTpn);
  const Channel& ch = s.channels[channel];
  if (r.receiver_incarnation != s.config.incarnation) return send_path_answer(s, from, r, RecordReason::kRestarted);
  const bool is_peer = r.sender_tpn == ch.peer_tpn && r.sender_incarnation == ch.peer_incarnation;
  if (!ch.is_up() || !is_peer) return s.drop(Counter::kRxDropRecordPeer);
  const bool takes = from.link == ch.link && takes_path(s, channel, from.local, from.remote, true);
  if (!takes) s.count(Counter::kTpPathRefused);
  send_path_answer(s, from, r, takes ? RecordReason::kNone : RecordReason::kNoResources);
}

bool on_path_pong(CoreState& s, uint32_t channel, const Arrival& from, const ControlRecord& r) {
  const Channel& ch = s.channels[channel];
  if (!ch.several_paths || !ch.is_up()) return true;
  const uint8_t path = tp::find_path(s, ch, from.local, from.remote);
  if (path == tp::kNoPath) {
    s.drop(Counter::kRxDropRecordPeer);
    return true;
  }
  Path& p = tp::path_at(s, ch, path);
  if (p.live || r.initial_psn != p.question) {
    s.drop(Counter::kRxDropRecordStale);
    return true;
  }
  const bool knows_us = r.reason != RecordReason::kUnknownTpn && r.reason != RecordReason::kRestarted &&
                        r.sender_incarnation == ch.peer_incarnation;
  if (path == 0 && !knows_us) return false;
  if (!knows_us) {
    ping(s, s.channels[channel]);  // whoever is there: is the peer still the one that we know?
    p.ask_at = s.now + kStrangerPause;
  }
  if (r.reason == RecordReason::kNoResources) p.ask_at = Instant::never();  // and its place is free
  if (r.reason == RecordReason::kNone && knows_us) tp::path_answers(s, channel, path, s.now, s.now - p.asked_at);
  return true;
}

}  // namespace ub::setup
