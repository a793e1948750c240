// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/handshake.h"

#include <algorithm>
#include <utility>

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/setup/receive_record.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/setup/terms.h"
#include "lib/transport/setup/ways.h"
#include "lib/transport/ta/repeated_requests.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/waiting_list.h"

namespace ub::setup {

using tp::Channel;
using tp::ChannelState;
using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

namespace {

constexpr Duration kHalfOpenLife = seconds(2);

// Is there a record for one more channel of CTP on a wire that may lose packets?
bool has_repeats(const CoreState& s) { return s.repeats.in_use() != s.repeats.capacity(); }

// An attempt begins: what was agreed on in one that came to nothing does not bind it.
void forget_terms(const CoreState& s, Channel& ch) {
  ch.record_flags = offered_flags(s, s.links[ch.link].config, ch.lane);
  ch.go_back_n = false;
}

// ---- the asking end --------------------------------------------------------------------------------------------

void send_request(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  const Ways ways = ways_to(s, s.peers[ch.peer], ch.lane);
  if (ways.size() > 1) {
    // Each round of MTUs begins with another way, so that each is tried with each.
    const Way& way = ways[ch.setup_tries + ch.setup_tries / requests_of_round(s, ch)];
    ch.local_endpoint = way.local;
    ch.remote_endpoint = way.remote;
  }
  ch.offered_mtu = mtu_offer(s, ch);
  send_about(s, ch, RecordType::kReq);
  arm_setup(s, channel);
}

void begin_as_initiator(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.state = ChannelState::kReqSent;
  note_state(s, channel);
  ch.initiator = true;
  ch.created_at = s.now;
  ch.setup_tries = 0;
  send_request(s, channel);
}

}  // namespace

uint32_t begin_channel_to(CoreState& s, uint32_t peer_index, uint32_t lane, uint32_t place) {
  Peer& peer = s.peers[peer_index];
  if (peer.path.link == 0) return 0;
  const bool repeats = needs_repeats(s.links[peer.path.link].config, lane);
  if (repeats && !has_repeats(s)) return 0;
  uint32_t channel = new_channel(s, peer_index, lane, place);
  if (channel == 0) return 0;
  if (repeats) ta::take_repeats(s, s.channels[channel]);
  peer.lanes[lane].channels[place] = channel;
  s.channels[channel].carries_requests = true;
  begin_as_initiator(s, channel);
  return channel;
}

// ---- the answering end -----------------------------------------------------------------------------------------

namespace {

// Makes the channel the answering end of the peer's attempt.
void respond(CoreState& s, uint32_t channel, const Arrival& from, const ControlRecord& r) {
  Channel& ch = s.channels[channel];
  const LinkConfig& link = s.links[from.link].config;
  UB_DCHECK(!ch.is_up());
  ch.state = ChannelState::kHalfOpen;
  note_state(s, channel);
  ch.initiator = false;
  ch.link = from.link;
  ch.local_endpoint = from.local;
  ch.remote_endpoint = from.remote;
  ch.attempt = r.attempt;
  ch.created_at = s.now;
  ch.setup_tries = 0;
  ch.several_mtus = false;
  ch.offered_mtu = std::min<uint16_t>(r.mtu, static_cast<uint16_t>(link.mtu));
  forget_terms(s, ch);
  if (!r.repeats) ta::free_repeats(s, ch);
  if (r.repeats) ta::take_repeats(s, ch);  // on_request() has asked whether there is one
  agree(s, ch, r);
  send_about(s, ch, RecordType::kRep);
  arm_setup(s, channel);
}

// The peer asks or confirms on another path than before: answers on that one may be lost, or the peer may have taken
// the answer that came on this one.
void follow(Channel& ch, const Arrival& from) {
  if (!ch.takes_paths || (ch.remote_endpoint == from.remote && ch.local_endpoint == from.local)) return;
  ch.local_endpoint = from.local;
  ch.remote_endpoint = from.remote;
  ch.headers.init({}, {}, from.local, from.remote, ch.headers.dscp());
}

void answer_again(CoreState& s, uint32_t channel, const ControlRecord& r) {
  Channel& ch = s.channels[channel];
  if (ch.state == ChannelState::kHalfOpen) {
    uint16_t mtu = std::min<uint16_t>(r.mtu, static_cast<uint16_t>(s.links[ch.link].config.mtu));
    ch.several_mtus |= mtu != ch.offered_mtu;
    ch.offered_mtu = mtu;
  }
  send_about(s, ch, RecordType::kRep);
}

// Our own request is the one that counts, but the peer may not have got it: its request tells of a path that works,
// which this end may not know.
void ask_where_the_peer_asks(CoreState& s, uint32_t channel, const Arrival& from, const ControlRecord& r) {
  Channel& ch = s.channels[channel];
  if (!r.several_paths || !offers_paths(s, s.links[ch.link].config, ch.lane) || from.link != ch.link) return;
  if (ch.remote_endpoint == from.remote && ch.local_endpoint == from.local) return;
  ch.local_endpoint = from.local;
  ch.remote_endpoint = from.remote;
  send_about(s, ch, RecordType::kReq);
}

// A new instance uses the address of one that we know: asks whether the former one still lives.
void ask_former_instance(CoreState& s, const Arrival& from, const ControlRecord& r) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    Channel& ch = s.channels[i];
    if (ch.state == ChannelState::kOpen && ch.remote.eid == r.sender_eid && ch.remote_endpoint == from.remote &&
        ch.remote.uasid != r.sender_uasid) {
      ping(s, ch);
    }
  }
}

}  // namespace

void on_request(CoreState& s, const Arrival& from, const ControlRecord& r) {
  if (!meant_for_us(s, r)) {
    s.count(Counter::kTpChannelRejected);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kUnknownEntity);
  }
  if (!valid_parameters(s, s.links[from.link].config, r)) {
    s.count(Counter::kTpChannelRejected);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kParameter);
  }
  TargetConfig sender;
  sender.local_eid = r.wanted_eid;
  sender.instance = {r.sender_eid, r.sender_uasid};
  sender.path = {from.link, from.local, from.remote};
  uint32_t peer_index = find_or_add_asking_peer(s, sender, r.application);
  if (peer_index == 0) return send_reply(s, from, r, RecordType::kRej, RecordReason::kNoResources);
  Peer& peer = s.peers[peer_index];

  Lane& lane = peer.lanes[lane_of(r)];
  uint32_t accepted = lane.accepted[r.place];
  if (accepted != 0) {
    Channel& ch = s.channels[accepted];
    if (ch.attempt == r.attempt && ch.peer_incarnation == r.sender_incarnation) {
      if (ch.state == ChannelState::kHalfOpen) follow(ch, from);
      return answer_again(s, accepted, r);
    }
  }
  if (r.repeats && !has_repeats(s)) {
    drop_unused_peer(s, peer_index);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kNoResources);
  }
  uint32_t current = lane.channels[r.place];
  if (current != 0 && s.channels[current].state == ChannelState::kReqSent && !is_self(s, peer)) {
    if (s.config.incarnation < r.sender_incarnation) {
      s.count(Counter::kTpChannelRejected);
      send_reply(s, from, r, RecordType::kRej, RecordReason::kGlare);
      return ask_where_the_peer_asks(s, current, from, r);
    }
    lane.accepted[r.place] = current;
    return respond(s, current, from, r);
  }
  if (accepted != 0 && s.channels[accepted].state == ChannelState::kHalfOpen) {
    return respond(s, accepted, from, r);  // a newer attempt replaces an unproven one
  }
  uint32_t channel = new_channel(s, peer_index, lane_of(r), r.place);
  if (channel == 0) {
    drop_unused_peer(s, peer_index);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kNoResources);
  }
  ask_former_instance(s, from, r);
  lane.accepted[r.place] = channel;
  if (current == 0 && peer.visitor == 0 && !is_self(s, peer)) {
    lane.channels[r.place] = channel;
    s.channels[channel].carries_requests = true;
  }
  respond(s, channel, from, r);
}

// ---- answers ---------------------------------------------------------------------------------------------------

void on_reply(CoreState& s, const Arrival& from, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  Channel& ch = s.channels[channel];
  if (ch.state == ChannelState::kOpen && ch.initiator && ch.peer_tpn == r.sender_tpn) {
    return send_about(s, ch, RecordType::kConf);
  }
  if (ch.state != ChannelState::kReqSent) return s.drop(Counter::kRxDropRecordState);
  const Ways ways = ways_to(s, s.peers[ch.peer], ch.lane);
  if (!ways.has(from) && from.remote.ip != ch.remote_endpoint.ip) return s.drop(Counter::kRxDropRecordPeer);
  const bool fits = valid_parameters(s, s.links[ch.link].config, r) && same_service(ch, r);
  if (!fits) return s.drop(Counter::kRxDropRecordParameter);
  if (offers_paths(s, s.links[ch.link].config, ch.lane)) ch.local_endpoint = from.local;
  ch.remote_endpoint = from.remote;
  ch.offered_mtu = std::min<uint16_t>(r.mtu, static_cast<uint16_t>(s.links[ch.link].config.mtu));
  agree(s, ch, r);
  send_about(s, ch, RecordType::kConf);
  open_channel(s, channel);
}

void on_confirm(CoreState& s, const Arrival& from, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kHalfOpen) return s.drop(Counter::kRxDropRecordState);
  if (ch.peer_tpn != r.sender_tpn) return s.drop(Counter::kRxDropRecordPeer);
  const LinkConfig& link = s.links[ch.link].config;
  const bool fits = valid_parameters(s, link, r) && same_service(ch, r) && r.mtu <= link.mtu;
  if (!fits) return s.drop(Counter::kRxDropRecordParameter);
  follow(ch, from);
  ch.offered_mtu = r.mtu;
  open_channel(s, channel);
}

namespace {

// The peer makes no channel of ROL: the queues that wait for one keep their order themselves, on other channels. Or it
// makes none of CTP, or none now.
void fall_back(CoreState& s, uint32_t channel, RecordReason reason) {
  Channel& ch = s.channels[channel];
  Peer& peer = s.peers[ch.peer];
  if (is_compact(ch.lane)) {
    (is_ordered(ch.lane) ? peer.refuses_compact_rol : peer.refuses_compact) = reason == RecordReason::kParameter;
    leave_compact(s, ch.peer, ch.lane);
  } else {
    peer.refuses_rol = true;
  }
  ch.carries_requests = false;
  IndexList queues = std::exchange(ch.queues, {});
  kill_channel(s, channel);
  while (!queues.empty()) ta::schedule_queue(s, ta::take_first(s, queues));
}

// A refusal by another version has only the first fields of the record. Its attempt tells which channel it is about.
uint32_t channel_of_attempt(const CoreState& s, uint32_t attempt) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (s.channels[i].state == ChannelState::kReqSent && s.channels[i].attempt == attempt) return i;
  }
  return 0;
}

}  // namespace

void on_reject(CoreState& s, const ControlRecord& r) {
  uint32_t channel = r.receiver_tpn == 0 ? channel_of_attempt(s, r.attempt) : channel_of(s, r);
  if (channel == 0) return s.drop(Counter::kRxDropRecordStale);
  const Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kReqSent) return s.drop(Counter::kRxDropRecordState);
  // After glare the peer's own REQ will come; a peer without resources is asked again.
  const bool poor = r.reason == RecordReason::kNoResources;
  const bool goes_on = r.reason == RecordReason::kGlare || (poor && !ch.compact);
  if (goes_on) return s.count(Counter::kTpChannelDeferred);
  s.count(Counter::kTpChannelRejected);
  const bool refused = (is_ordered(ch.lane) || ch.compact) && r.reason == RecordReason::kParameter;
  if (refused || poor) return fall_back(s, channel, r.reason);
  push_event(s, {EventKind::kChannelRejected, ch.tpn, 0, static_cast<uint8_t>(r.reason), r.version,
                 s.peers[ch.peer].instance.eid});
  kill_channel(s, channel);
}

// ---- time ------------------------------------------------------------------------------------------------------

void on_handshake_timer(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (ch.state == ChannelState::kReqSent) {
    if (s.now - ch.created_at >= s.config.channel_timeout) return kill_silent(s, channel);
    if (ch.setup_at > s.now) return s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
    ++ch.setup_tries;
    return send_request(s, channel);
  }
  if (s.now - ch.created_at >= kHalfOpenLife) {
    // If requests of ours wait for the channel, this end begins a handshake itself.
    if (ch.queues.empty()) return kill_channel(s, channel);
    const Peer& peer = s.peers[ch.peer];
    lane_of(s, ch).accepted[ch.place()] = 0;
    ch.attempt = s.prng.next_u32();
    ch.peer_tpn = 0;
    forget_terms(s, ch);
    UB_DCHECK(ch.remote == peer.instance);
    return begin_as_initiator(s, channel);
  }
  if (ch.setup_at > s.now) return s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
  ++ch.setup_tries;
  send_about(s, ch, RecordType::kRep);
  arm_setup(s, channel);
}

}  // namespace ub::setup
