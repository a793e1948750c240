// SPDX-License-Identifier: Apache-2.0
//
// How a channel comes to be and ends: REQ, REP, CONF with glare, path MTU probing and refusals; PING and PONG when a
// peer seems to have restarted; CLOSE; death. The records travel as unreliable Sends to Jetty 0
// (wire/control_record.h). The UB Base Specification leaves this open (6.3); the protocol is SoftUB's own and
// described in docs/wire.md.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"

namespace ub::setup {

// ---- peers ----
uint32_t find_or_add_peer(CoreState& s, const TargetConfig& target, uint32_t visitor = 0);
void drop_unused_peer(CoreState& s, uint32_t peer);

// ---- channels ----
// Begins the channel for that lane, since there is none. 0: no room for one.
uint32_t begin_channel_to(CoreState& s, uint32_t peer, bool bulk);
// The channel for that lane, begun now if there is none. 0: no room for one.
inline uint32_t channel_to(CoreState& s, uint32_t peer, bool bulk) {
  const uint32_t channel = s.peers[peer].channels[bulk ? 1 : 0];
  return channel != 0 ? channel : begin_channel_to(s, peer, bulk);
}
inline bool alive(const tp::Channel& ch) {
  return ch.state != tp::ChannelState::kFree && ch.state != tp::ChannelState::kDead;
}
// The channel of a TPN, or 0.
inline uint32_t channel_of_tpn(const CoreState& s, uint32_t tpn) {
  uint32_t index = tpn & ((1u << tp::kTpnIndexBits) - 1);
  if (index == 0 || index > s.channels.high_water()) return 0;
  const tp::Channel& ch = s.channels[index];
  return ch.tpn == tpn && alive(ch) ? index : 0;
}
// Everything on it ends; its TPN rests.
void kill_channel(CoreState& s, uint32_t channel);
// A half-open channel was proven by data or CONF.
void open_channel(CoreState& s, uint32_t channel);
void close_all(CoreState& s);
void close_owner(CoreState& s, Owner owner);
void link_down(CoreState& s, uint32_t link);

// ---- packets and time ----
// Where a record came from.
struct Arrival {
  uint32_t link;
  wire::Endpoint local, remote;
};
void on_record(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
// The record is of another version: refuse it by name.
void refuse_version(CoreState& s, const Arrival& from, const wire::ControlRecord& prefix);
// A data packet for a TPN that nobody has.
void on_unknown_tpn(CoreState& s, const Arrival& from, uint32_t dst_tpn, uint32_t src_tpn);
void on_channel_timer(CoreState& s, uint32_t channel);
// A request on it ended for lack of any sign of life. If the channel is about to die of the same silence it dies now,
// or what is posted next would die with it.
void end_if_silent(CoreState& s, uint32_t channel);

}  // namespace ub::setup
