// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/channel_life.h"

#include <algorithm>

#include "lib/transport/resource/receives.h"
#include "lib/transport/setup/compact_life.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/setup/path_life.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/setup/receive_record.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/setup/terms.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/parked_messages.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/repeated_requests.h"
#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/held_packets.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/transmit_state.h"

namespace ub::setup {

using tp::Channel;
using tp::ChannelState;
using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

namespace {

constexpr uint32_t kResetsPerSecond = 100;
constexpr Duration kCloseLife = seconds(1);
constexpr Duration kPingPause = milliseconds(10);

// Takes a record whose TPN has rested; if there is none, a new one; if all are used up, the one that has rested
// longest. The last is safe because the generation in the TPN tells late packets apart, and it keeps a peer that makes
// channels and abandons them from using up all records.
uint32_t take_channel_record(CoreState& s) {
  const uint32_t rested = s.resting.empty() ? 0 : s.resting.front<&Channel::on_resting_list>(s.channels);
  Duration rest = std::max(s.config.id_rest, s.config.rto_max);
  if (rested == 0 || s.now - s.channels[rested].freed_at < rest) {
    uint32_t fresh = s.channels.alloc();
    if (fresh != 0 || rested == 0) return fresh;
  }
  return s.resting.pop_front<&Channel::on_resting_list>(s.channels);
}

}  // namespace

// ---- begin and end ---------------------------------------------------------------------------------------------

uint32_t new_channel(CoreState& s, uint32_t peer_index, uint32_t lane, uint32_t place) {
  uint32_t index = take_channel_record(s);
  if (index == 0) return 0;
  Channel& ch = s.channels[index];
  UB_DCHECK(!alive(ch) && !ch.on_resting_list && ch.queues.empty());
  UB_DCHECK(ch.open.receive == 0 && ch.parked == 0 && ch.reorder == 0 && ch.recovery == 0);
  UB_DCHECK(ch.kept == tp::KeptCount{} && ch.held.empty());
  // The first generation is random, so that a restarted instance does not use the TPNs of its former life at once.
  uint32_t generation = ch.tpn == 0 ? s.prng.next_u32() : (ch.tpn >> tp::kTpnIndexBits) + 1;
  s.channel_counts[index] = {};
  Channel fresh{};
  // The record may still stand on these lists.
  fresh.on_active_list = ch.on_active_list;
  fresh.on_ack_list = ch.on_ack_list;
  ch = fresh;
  Peer& peer = s.peers[peer_index];
  ++peer.users;
  const LinkConfig& link = s.links[peer.path.link].config;
  ch.tpn = (generation & 0xff) << tp::kTpnIndexBits | index;
  ch.peer = peer_index;
  ch.link = peer.path.link;
  ch.remote = peer.instance;
  ch.local_endpoint = peer.path.local;
  ch.remote_endpoint = peer.path.remote;
  ch.lane = static_cast<uint8_t>(lane);
  ch.compact = ch.mixed_line = is_compact(lane);
  ch.place_bit = static_cast<uint8_t>(1u << place);
  uint32_t random_psn = s.prng.next_u32();
  ch.initial_psn = Psn(s.config.first_psn == UINT32_MAX ? random_psn : s.config.first_psn);
  ch.attempt = s.prng.next_u32();
  ch.record_flags = offered_flags(s, link, lane);
  ch.created_at = ch.heard_at = s.now;
  ch.rto_at = Instant::never();
  ch.rto = ch.patience = s.config.rto_min;
  ch.give_up_after = s.config.channel_timeout;
  return index;
}

namespace {

// Until a round trip is measured, the exchange that set the channel up is the best guess of it, and a doubtful one: the
// peer may have had other things to do, or was waited for. The least round trip stays unknown. Records that went more
// than once tell nothing.
void guess_round_trip(const CoreState& s, Channel& ch) {
  constexpr Duration kDoubt = microseconds(25), kUnknown = seconds(3600);
  if (!ch.asks_soon || ch.setup_tries != 0) return;
  ch.round_trip = {s.now - ch.created_at, kDoubt, kUnknown, kUnknown, {}};
  ch.patience = tp::first_patience(ch);
}

}  // namespace

void open_channel(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  UB_DCHECK(!ch.is_up());
  guess_round_trip(s, ch);
  ch.state = ChannelState::kOpen;
  ch.mtu = ch.offered_mtu;
  // The target of CTP has places for as many answers as its window, because it may owe some to requests that were given
  // up.
  ch.segment_bytes = ch.compact ? ch.mtu : s.config.segment_bytes;
  ch.most_unanswered = ch.compact ? ch.agreed_window / 2 : kLaneSegmentsInFlight;
  if (ch.repeats != 0) ch.most_unanswered = ta::most_repeatable(ch);
  ch.heard_at = ch.progress_at = s.now;
  note_state(s, channel);
  s.count(Counter::kTpChannelUp);
  push_event(s, EventKind::kChannelUp, ch.tpn);
  Peer& peer = s.peers[ch.peer];
  if (ch.compact && peer.compact_mtu != 0) peer.compact_mtu = ch.mtu;
  uint32_t& current = lane_of(s, ch).channels[ch.place()];
  if (current != channel && peer.visitor == 0 && !is_self(s, peer)) {
    uint32_t old = current;
    current = channel;
    ch.carries_requests = true;
    if (old != 0) kill_channel(s, old);
  }
  if (ch.compact) {
    on_compact_timer(s, channel);  // which sets it
  } else {
    s.timers.arm(s.timer_of_channel(channel), s.now + s.config.keepalive_idle);
  }
  open_paths(s, channel);
  if (!ch.queues.empty()) activate(s, channel);
}

void kill_channel(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (!alive(ch)) return;
  bool was_up = ch.state == ChannelState::kOpen || ch.state == ChannelState::kClosing;
  ch.state = ChannelState::kDead;
  note_state(s, channel);
  s.timers.cancel(s.timer_of_channel(channel));
  set_held_back(s, &ch.held_back, false);
  Peer& peer = s.peers[ch.peer];
  Lane& lane = lane_of(s, ch);
  if (lane.channels[ch.place()] == channel) lane.channels[ch.place()] = 0;
  if (lane.accepted[ch.place()] == channel) lane.accepted[ch.place()] = 0;
  ta::drop_messages(s, ch);
  if (!is_connected(peer)) ta::close_contexts_of(s, ch.peer);
  tp::give_up_all_held(s, ch);
  if (ch.carries_requests) ta::fail_channel_requests(s, channel);
  ta::free_repeats(s, ch);  // before its queues look for another channel
  if (ch.carries_requests) ta::go_on_without_channel(s);
  ta::drop_jobs_of_channel(s, channel);
  ch.in_flight.clear(s.messages);
  ch.answers.clear(s.answers);
  tp::free_recovery(s, ch);
  tp::release_reorder(s, ch);
  tp::end_flow(s, ch);
  ch.freed_at = s.now;
  s.resting.push_back<&Channel::on_resting_list>(s.channels, channel);
  if (was_up) {
    s.count(Counter::kTpChannelDead);
    push_event(s, EventKind::kChannelDead, ch.tpn);
  }
  UB_DCHECK(peer.users != 0 && ch.read_jobs == 0 && ch.kept == tp::KeptCount{} && ch.held.empty());
  --peer.users;
  drop_unused_peer(s, ch.peer);
}

void end_channel(CoreState& s, uint32_t channel) {
  send_about(s, s.channels[channel], RecordType::kClose);
  kill_channel(s, channel);
}

namespace {

// One that a queue has just begun, since it lost another one, has not asked yet.
bool is_silent(const CoreState& s, const Channel& ch) {
  return (ch.state == ChannelState::kReqSent && ch.created_at != s.now) ||
         (ch.state == ChannelState::kOpen && s.now - ch.heard_at >= s.config.channel_timeout);
}

}  // namespace

// A peer that was silent on one channel until that died (6.4.2.1) is taken to be silent on the others, too, unless
// packets arrived on them meanwhile.
void kill_silent(CoreState& s, uint32_t channel) {
  s.note(Stage::kChannelGivenUp, channel);
  const uint32_t peer = s.channels[channel].peer;
  ++s.peers[peer].users;
  for (const Lane& lane : s.peers[peer].lanes) {
    for (const uint32_t& other : lane.channels) {
      if (other != 0 && is_silent(s, s.channels[other])) kill_channel(s, other);
    }
  }
  kill_channel(s, channel);
  --s.peers[peer].users;
  drop_unused_peer(s, peer);
}

namespace {

// Closes a channel: an open one with CLOSE, which the peer answers; others die at once.
void close_channel(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kOpen) return kill_channel(s, channel);
  ch.state = ChannelState::kClosing;
  note_state(s, channel);
  ch.created_at = s.now;
  ch.setup_tries = 0;
  send_about(s, ch, RecordType::kClose);
  arm_setup(s, channel);
}

}  // namespace

void close_all(CoreState& s) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (alive(s.channels[i])) close_channel(s, i);
  }
}

// The number of the owner may be given to another application at once. So its channels leave their lanes here, and that
// application makes channels of its own.
void close_owner(CoreState& s, Owner owner) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (!alive(s.channels[i]) || s.channels[i].state == ChannelState::kClosing) continue;
    Channel& ch = s.channels[i];
    const Peer& peer = s.peers[ch.peer];
    if (peer.owner != owner || peer.visitor != 0) continue;
    uint32_t& current = lane_of(s, ch).channels[ch.place()];
    if (current == i) current = 0;
    forget_routes(s);
    if (ch.carries_requests) {  // now, before another channel takes its place
      ta::fail_channel_requests(s, i);
      ta::go_on_without_channel(s);
    }
    ch.carries_requests = false;
    close_channel(s, i);
  }
}

// ---- is the peer still there? ----------------------------------------------------------------------------------

// A CLOSE for an unknown channel gets the same answer and is no drop: the channel was closed before.
void on_close(CoreState& s, const Arrival& from, const ControlRecord& r) {
  send_reply(s, from, r, RecordType::kClosed, RecordReason::kNone);
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return;
  if (s.channels[channel].peer_tpn != r.sender_tpn) return s.drop(Counter::kRxDropRecordPeer);
  s.count(Counter::kTpChannelClosed);
  kill_channel(s, channel);
}

void on_closed(CoreState& s, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  if (s.channels[channel].state != ChannelState::kClosing) return s.drop(Counter::kRxDropRecordState);
  s.count(Counter::kTpChannelClosed);
  kill_channel(s, channel);
}

void on_ping(CoreState& s, const Arrival& from, const ControlRecord& r) {
  if (r.several_paths) return on_path_ping(s, from, r);
  RecordReason reason = channel_of(s, r) != 0 ? RecordReason::kNone : RecordReason::kUnknownTpn;
  if (r.receiver_incarnation != 0 && r.receiver_incarnation != s.config.incarnation) reason = RecordReason::kRestarted;
  send_reply(s, from, r, RecordType::kPong, reason);
}

void on_pong(CoreState& s, const Arrival& from, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  if (r.several_paths && on_path_pong(s, channel, from, r)) return;
  if (s.channels[channel].state != ChannelState::kOpen) return s.drop(Counter::kRxDropRecordState);
  bool restarted = r.sender_incarnation != s.channels[channel].peer_incarnation;
  if (restarted || r.reason == RecordReason::kUnknownTpn || r.reason == RecordReason::kRestarted) {
    return kill_channel(s, channel);
  }
  if (s.channels[channel].compact) s.channels[channel].heard_at = s.now;
}

void on_context_free(CoreState& s, const ControlRecord& r) {
  const uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  const Channel& ch = s.channels[channel];
  if (ch.peer_tpn != r.sender_tpn) return s.drop(Counter::kRxDropRecordPeer);
  const uint32_t context = ta::context_of(s, ch.peer, r.scid);
  if (context == 0) return s.drop(Counter::kRxDropRecordScFree);
  ta::close_context(s, context);
}

bool ping(CoreState& s, Channel& ch) {
  if (ch.pinged_at.ns != 0 && s.now - ch.pinged_at < kPingPause) return false;
  ch.pinged_at = s.now;
  send_about(s, ch, RecordType::kPing);
  return true;
}

// A RESET says that the peer does not know its TPN. The record may be old or forged, so the peer is asked by PING.
void on_reset(CoreState& s, const ControlRecord& r) {
  s.count(Counter::kTpRxReset);
  uint32_t channel = channel_of_tpn(s, r.receiver_tpn);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kOpen) return s.drop(Counter::kRxDropRecordState);
  if (ch.peer_tpn != r.sender_tpn) return s.drop(Counter::kRxDropRecordPeer);
  if (!ping(s, ch)) s.drop(Counter::kRxDropRecordTooOften);
}

void on_unknown_tpn(CoreState& s, const Arrival& from, uint32_t dst_tpn, uint32_t src_tpn) {
  if (s.now - s.reset_window >= seconds(1)) {
    s.reset_window = s.now;
    s.resets_sent = 0;
  }
  if (s.resets_sent == kResetsPerSecond) return;
  ++s.resets_sent;
  s.count(Counter::kTpTxReset);
  ControlRecord about;
  about.sender_tpn = src_tpn;
  about.receiver_tpn = dst_tpn;
  send_reply(s, from, about, RecordType::kReset, RecordReason::kUnknownTpn);
}

// ---- time ------------------------------------------------------------------------------------------------------

namespace {

void on_closing_timer(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (s.now - ch.created_at >= kCloseLife) return kill_channel(s, channel);
  if (ch.setup_at > s.now) return s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
  ++ch.setup_tries;
  send_about(s, ch, RecordType::kClose);
  arm_setup(s, channel);
}

}  // namespace

void end_if_silent(CoreState& s, uint32_t channel) {
  const Channel& ch = s.channels[channel];
  Duration limit = ch.give_up_after - ch.give_up_after / 8;
  if (ch.state != ChannelState::kOpen) return;
  const bool silent =
      ch.compact ? is_silent_compact(s, ch, limit) : ch.outstanding() != 0 && tp::is_silent(s, ch, s.now, limit);
  if (silent) kill_silent(s, channel);
}

void on_channel_timer(CoreState& s, uint32_t channel) {
  switch (s.channels[channel].state) {
    case ChannelState::kReqSent:
    case ChannelState::kHalfOpen:
      return on_handshake_timer(s, channel);
    case ChannelState::kOpen:
      if (s.channels[channel].compact) return on_compact_timer(s, channel);
      if (tp::on_timer(s, channel, s.now) == tp::TimerVerdict::kGivenUp) return kill_silent(s, channel);
      if (s.channels[channel].several_paths) ask_paths(s, channel);
      return;
    case ChannelState::kClosing:
      return on_closing_timer(s, channel);
    default:
      return;
  }
}

}  // namespace ub::setup
