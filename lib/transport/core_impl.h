// SPDX-License-Identifier: Apache-2.0
//
// The definitions of Core<Host>, and with them the data path, for the few files that instantiate a Core: that of NICs
// (dataplane/nic_drive.cc), of the simulator, of unit tests, of benchmarks.
#pragma once

#include "lib/transport/core.h"
#include "lib/transport/core_control_impl.h"
#include "lib/transport/looking/call_log.h"
#include "lib/transport/resource/objects.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/targets.h"
#include "lib/transport/roce/engine_impl.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/tp/congestion_report.h"
#include "lib/transport/tp/paths.h"
#include "lib/transport/ub_engine_impl.h"
#include "lib/transport/wire/compact_packet.h"

namespace ub {

template <class Host, class Engines>
size_t Core<Host, Engines>::arena_bytes(const CoreConfig& config) {
  CoreState* s = new CoreState;  // measured once, before there is a Core
  s->config = config;
  Arena arena(nullptr);
  EngineSet<Host, Engines>::measure(*s, arena);
  lay_out_shared(*s, arena);
  delete s;
  return arena.used_bytes();
}

template <class Host, class Engines>
size_t Core<Host, Engines>::send_queue_work_bytes(uint32_t depth) {
  return std::bit_ceil(depth) * sizeof(WrState);
}

template <class Host, class Engines>
Core<Host, Engines>::Core(const CoreConfig& config, std::byte* memory, Host& host)
    : Core(config, Arena(memory), host) {}

template <class Host, class Engines>
Core<Host, Engines>::Core(const CoreConfig& config, Arena arena, Host& host)
    : host_(host), engines_(configured(config), arena, host) {
  lay_out_shared(s_, arena);
  add_eid(config.self.eid);
}

template <class Host, class Engines>
CoreState& Core<Host, Engines>::configured(const CoreConfig& config) {
  UB_ASSERT(config.window_packets >= 128 && config.window_packets <= tp::kMaxWindow);
  UB_ASSERT(config.segment_bytes >= kMinSegmentBytes && config.segment_bytes % 8192 == 0);
  UB_ASSERT(config.max_channels < (1u << tp::kTpnIndexBits));
  UB_ASSERT(config.max_queues < kIdSpace);
  UB_ASSERT(config.most_paths >= 1 && config.most_paths <= 64 && config.path_channels <= UINT16_MAX);
  UB_ASSERT(config.roce.max_qps <= UINT16_MAX && config.roce.max_connections <= UINT16_MAX);
  UB_ASSERT(config.roce.window_packets != 0);
  s_.config = config;
  s_.prng = Prng(config.seed);
  return s_;
}

// ---- packets ---------------------------------------------------------------------------------------------------

template <class Host, class Engines>
void Core<Host, Engines>::on_packet(Instant now, uint32_t link, std::span<const std::byte> eth_frame) {
  s_.now = now;
  s_.count(Counter::kRxPackets);
  s_.count(Counter::kRxBytes, eth_frame.size());
  if (wire::has_link_header(eth_frame)) return on_link_frame(link, eth_frame);
  wire::NetHeader net;
  wire::Drop drop = wire::parse_network(eth_frame, net);
  if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
  note_of<Host>(s_, Stage::kFrameArrived, link);
  engines_.any([&](auto& engine) {
    if (!engine.claims(net)) return false;
    engine.on_packet(link, net);
    return true;
  });
}

template <class Host, class Engines>
void Core<Host, Engines>::on_lane_frame(Instant now, uint32_t link, std::span<const std::byte> eth_frame) {
  s_.now = now;
  s_.count(Counter::kRxPackets);
  s_.count(Counter::kRxBytes, eth_frame.size());
  note_of<Host>(s_, Stage::kFrameArrived, link);
  engine<bypass::Engine<Host>>().on_lane_frame(link, eth_frame);
}

// A frame with the header of a UB link instead of IP.
template <class Host, class Engines>
void Core<Host, Engines>::on_link_frame(uint32_t link, std::span<const std::byte> eth_frame) {
  note_of<Host>(s_, Stage::kFrameArrived, link);
  engines_.any([&](auto& engine) { return engine.on_link_frame(link, eth_frame); });
}

// ---- the rest --------------------------------------------------------------------------------------------------

template <class Host, class Engines>
void Core<Host, Engines>::on_posted(Instant now, uint32_t jetty) {
  s_.now = now;
  if (jetty >= kIdSpace) return;
  if (s_.is_observed()) [[unlikely]]
    return take_observed_post(jetty);
  take_post(jetty);
}

template <class Host, class Engines>
size_t Core<Host, Engines>::send_posted(Instant now, uint32_t jetty, size_t budget, Acks acks) {
  s_.now = now;
  size_t sent = 0;
  if (jetty >= kIdSpace || s_.call_log != nullptr) {  // who writes calls down wants both of them
    on_posted(now, jetty);
  } else {
    note_of<Host>(s_, Stage::kPosted, jetty);
    if (send_straight(jetty, budget, acks, &sent)) [[likely]]
      return sent;
    take_post(jetty);
  }
  return sent + poll_packets(now, budget - sent, acks);
}

// Nothing else is to be sent, and what was posted leaves without standing in any line (docs/straight-path-design.md).
// True: nothing is left.
template <class Host, class Engines>
bool Core<Host, Engines>::send_straight(uint32_t jetty, size_t budget, Acks acks, size_t* sent) {
  if (s_.held.has_orphans() || !s_.blocked_jfcs.empty()) [[unlikely]]
    return false;
  if (engines_.any_but_last([=](const auto& engine) { return engine.has_packets(acks); })) [[unlikely]]
    return false;
  const IdSlot& slot = s_.ids[jetty];
  return engines_.last().send_straight(slot.kind, slot.record, budget, sent);
}

template <class Host, class Engines>
void Core<Host, Engines>::take_post(uint32_t jetty) {
  const IdSlot& slot = s_.ids[jetty];
  engines_.any([&](auto& engine) { return engine.on_posted(slot.kind, slot.record); });
}

template <class Host, class Engines>
void Core<Host, Engines>::take_observed_post(uint32_t jetty) {
  LoggedCall call(s_.call_log, Call::kOnPosted, s_.now, jetty);
  note_of<Host>(s_, Stage::kPosted, jetty);
  take_post(jetty);
}

template <class Host, class Engines>
uint32_t Core<Host, Engines>::slots_posted(uint32_t jetty) const {
  const SendQueue& q = s_.queues[s_.jettys[s_.ids[jetty].record].queue];
  const uint32_t produced = q.indices->produced.load(std::memory_order_relaxed);
  return produced - q.posted <= q.slot_mask + 1 ? produced : q.posted;
}

template <class Host, class Engines>
void Core<Host, Engines>::on_completions_read(Instant now, uint32_t jfc) {
  LoggedCall call(s_.call_log, Call::kOnCompletionsRead, now, jfc);
  s_.now = now;
  if (jfc != 0 && jfc <= s_.jfcs.high_water() && s_.jfcs[jfc].in_use) ta::resume_jfc(s_, jfc);
}

template <class Host, class Engines>
void Core<Host, Engines>::on_armed(Instant now, uint32_t jfc) {
  LoggedCall call(s_.call_log, Call::kOnArmed, now, jfc);
  s_.now = now;
  if (jfc == 0 || jfc > s_.jfcs.high_water() || !s_.jfcs[jfc].in_use) return;
  ta::resume_jfc(s_, jfc);
  ta::check_armed(s_, jfc);
}

template <class Host, class Engines>
void Core<Host, Engines>::on_copy_done(Instant now, CopyTag tag, bool ok) {
  s_.now = now;
  if (s_.is_observed()) [[unlikely]]
    return end_observed_copy(tag, ok);
  end_copy(tag, ok);
}

template <class Host, class Engines>
void Core<Host, Engines>::end_observed_copy(CopyTag tag, bool ok) {
  LoggedCall call(s_.call_log, Call::kOnCopyDone, s_.now, tag, ok);
  note_of<Host>(s_, ok ? Stage::kCopyDone : Stage::kCopyFailed, static_cast<uint32_t>(tag >> 32),
                static_cast<uint32_t>(tag));
  end_copy(tag, ok);
}

template <class Host, class Engines>
void Core<Host, Engines>::end_copy(CopyTag tag, bool ok) {
  if (HeldFrames::is_tag(tag)) {
    const uint32_t gathered = s_.held.on_gather_done(tag, ok);
    if (gathered != 0) engines_.any([&](auto& engine) { return engine.on_gathered(s_.held[gathered]); });
  } else {
    engines_.any([=](auto& engine) { return engine.on_copy_done(tag, ok); });
  }
  s_.held.release_orphans(host_);
}

template <class Host, class Engines>
void Core<Host, Engines>::on_timer(Instant now) {
  s_.now = now;
  uint32_t timer;
  while (s_.timers.pop_due(now, &timer)) {
    if (engines_.any([=](auto& engine) { return engine.on_timer(timer); })) continue;
    if (s_.jfc_timers.contains(timer)) ta::end_period(s_, s_.jfc_timers.index_of(timer));
  }
  s_.held.release_orphans(host_);
}

template <class Host, class Engines>
size_t Core<Host, Engines>::poll_packets(Instant now, size_t budget, Acks acks) {
  s_.now = now;
  s_.held.release_orphans(host_);
  if (!s_.blocked_jfcs.empty()) ta::resume_next_jfc(s_);
  const bool others = engines_.any_but_last([=](const auto& engine) { return engine.has_packets(acks); });
  if (!others) return engines_.last().poll_packets(budget, acks);
  // Engines take turns at being asked first, so that none can use up the budget every time. One without packets is
  // passed over, or the engine behind it in the list would be first more often than others.
  do first_ = (first_ + 1) % EngineSet<Host, Engines>::kCount;
  while (!engines_.is_at(first_, [=](const auto& engine) { return engine.has_packets(acks); }));
  size_t sent = 0;
  for (uint32_t i = 0; i < EngineSet<Host, Engines>::kCount; ++i) {
    engines_.at((first_ + i) % EngineSet<Host, Engines>::kCount,
                [&](auto& engine) { sent += engine.poll_packets(budget > sent ? budget - sent : 0, acks); });
  }
  return sent;
}

template <class Host, class Engines>
size_t Core<Host, Engines>::poll_events(std::span<Event> out) {
  return drain_events(s_, out.data(), out.size());
}

template <class Host, class Engines>
Instant Core<Host, Engines>::next_deadline(Acks acks) const {
  return acks == Acks::kMayWait ? s_.timers.earliest() : earlier(s_.timers.earliest(), s_.acks_due);
}

template <class Host, class Engines>
void Core<Host, Engines>::count_away(Duration away) {
  if (away.ns > 0) s_.count(Counter::kAwayUs, static_cast<uint64_t>(away.us()));
}

template <class Host, class Engines>
bool Core<Host, Engines>::has_packets(Acks acks) const {
  return engines_.any([=](const auto& engine) { return engine.has_packets(acks); });
}

template <class Host, class Engines>
bool Core<Host, Engines>::has_events() const {
  return s_.event_head != s_.event_tail || !s_.event_jfcs.empty();
}

template <class Host, class Engines>
bool Core<Host, Engines>::is_at_rest() const {
  return !has_packets() && !s_.acks_found_no_room && s_.blocked_jfcs.empty() && !s_.held.has_orphans();
}

template <class Host, class Engines>
bool Core<Host, Engines>::is_held_back() const {
  return s_.held_back != 0;
}

template <class Host, class Engines>
const Counters& Core<Host, Engines>::counters() const {
  return s_.counters;
}

template <class Host, class Engines>
void Core<Host, Engines>::look(bool yes) {
  s_.looker.end();
  if constexpr (Looks<Host>) {
    if (yes) s_.looker.begin(host_);
  }
  s_.observed = s_.looker.looks() || s_.call_log != nullptr;
}

template <class Host, class Engines>
const CoreConfig& Core<Host, Engines>::config() const {
  return s_.config;
}

template <class Host, class Engines>
uint32_t Core<Host, Engines>::channel_table_size() const {
  return s_.channels.high_water();
}

template <class Host, class Engines>
bool Core<Host, Engines>::channel_info(uint32_t index, ChannelInfo* out) const {
  if (index == 0 || index > s_.channels.high_water()) return false;
  const tp::Channel& ch = s_.channels[index];
  if (ch.state == tp::ChannelState::kFree || ch.state == tp::ChannelState::kDead) return false;
  *out = ChannelInfo{};
  out->tpn = ch.tpn;
  out->peer_tpn = ch.peer_tpn;
  out->peer = ch.remote;
  out->remote = ch.remote_endpoint;
  out->link = ch.link;
  out->mtu = ch.mtu;
  out->bulk = is_bulk(ch.lane);
  out->ordered = is_ordered(ch.lane);
  out->go_back_n = ch.go_back_n;
  out->compact = ch.compact;
  out->cna = ch.cna;
  out->repeats = ch.repeats != 0;
  out->state = static_cast<uint8_t>(ch.state);
  out->next_psn = ch.next_psn.value();
  out->oldest_unacked = ch.oldest_unacked.value();
  out->expected_psn = ch.expected.value();
  out->queued_messages = ch.in_flight.size() + ch.answers.size();
  out->tx_packets = ch.tx_packets;
  out->rx_packets = ch.rx_packets;
  out->retransmits = ch.retransmits;
  out->smoothed_rtt = ch.round_trip.smoothed;
  out->rto = ch.rto;
  out->counts = s_.channel_counts[index];
  tp::describe_congestion(s_, ch, out);
  return true;
}

template <class Host, class Engines>
uint32_t Core<Host, Engines>::path_info(uint32_t index, std::span<PathInfo> out) const {
  if (index == 0 || index > s_.channels.high_water() || !s_.channels[index].several_paths) return 0;
  const tp::Channel& ch = s_.channels[index];
  const std::span<const tp::Path> paths = tp::paths_of(s_, ch);
  for (size_t i = 0; i < std::min(out.size(), paths.size()); ++i) out[i] = tp::info_of(ch, paths[i]);
  return static_cast<uint32_t>(paths.size());
}

}  // namespace ub
