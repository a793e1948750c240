// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/channel_setup.h"

#include <algorithm>
#include <bit>

#include "lib/transport/resource/objects.h"
#include "lib/transport/setup/finding.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/ta/initiator.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/tp/congestion_window.h"
#include "lib/transport/tp/held_packets.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/sack.h"

namespace ub::setup {

using tp::Channel;
using tp::ChannelState;
using wire::ControlRecord;
using wire::RecordReason;
using wire::RecordType;

namespace {

constexpr uint32_t kMinMtu = 1024;
constexpr uint32_t kResetsPerSecond = 100;
constexpr Duration kHalfOpenLife = seconds(2);
constexpr Duration kCloseLife = seconds(1);
constexpr Duration kPingPause = milliseconds(10);
constexpr uint8_t kOffered = wire::kRecordFast | wire::kRecordMarkPsn | wire::kRecordReadMeta;

// ---- sending records -------------------------------------------------------------------------------------------

uint8_t sack_size_code(const CoreState& s) {
  uint32_t bits = std::min<uint32_t>(s.config.window_packets, wire::kSackMaxBits);
  return static_cast<uint8_t>(std::countr_zero(bits / 64));
}

void send_about(CoreState& s, const Channel& ch, RecordType type) {
  OutRecord out{};
  out.link = ch.link;
  out.local = ch.local_endpoint;
  out.remote = ch.remote_endpoint;
  ControlRecord& r = out.record;
  r.type = type;
  r.sender_incarnation = s.config.incarnation;
  r.receiver_incarnation = ch.peer_incarnation;
  r.attempt = ch.attempt;
  r.flags = ch.record_flags;
  r.sender_tpn = ch.tpn;
  r.selective = true;
  r.sack_size_code = sack_size_code(s);
  r.receiver_tpn = ch.peer_tpn;
  r.initial_psn = ch.initial_psn;
  r.mtu = ch.offered_mtu;
  r.rcv_window = static_cast<uint16_t>(s.config.window_packets);
  r.rto_base_us = static_cast<uint32_t>(s.config.rto_min.us());
  r.rto_growth_n = 1;
  r.retry_limit = 7;
  r.so_credit = 8;
  r.keepalive_10ms = static_cast<uint16_t>(std::min<int64_t>(s.config.keepalive_idle.ms() / 10, 65535));
  r.upi = s.config.upi;
  r.sender_eid = ch.local_eid;
  r.wanted_eid = ch.remote.eid;
  r.sender_uasid = s.config.self.uasid;
  r.wanted_uasid = ch.remote.uasid;
  if (type == RecordType::kReq) r.application = s.peers[ch.peer].owner;
  if (type == RecordType::kReq || type == RecordType::kRep) out.pad_to_mtu = ch.offered_mtu;
  send_record(s, out);
}

// ---- making channels -------------------------------------------------------------------------------------------

// A record whose TPN has rested, or a new one, or the one that rests longest: its generation tells late packets apart,
// and whoever makes channels and leaves them takes none away from others.
uint32_t take_channel_record(CoreState& s) {
  uint32_t rested = s.resting_head;
  Duration rest = std::max(s.config.id_rest, s.config.rto_max);
  if (rested == 0 || s.now - s.channels[rested].freed_at < rest) {
    uint32_t fresh = s.channels.alloc();
    if (fresh != 0 || rested == 0) return fresh;
  }
  s.resting_head = s.channels[rested].next_resting;
  if (s.resting_head == 0) s.resting_tail = 0;
  return rested;
}

uint32_t new_channel(CoreState& s, uint32_t peer_index, bool bulk) {
  uint32_t index = take_channel_record(s);
  if (index == 0) return 0;
  Channel& ch = s.channels[index];
  // The first generation is random: after a restart the numbers of the former life do not come again at once.
  uint32_t generation = ch.tpn == 0 ? s.prng.next_u32() : (ch.tpn >> tp::kTpnIndexBits) + 1;
  Channel fresh{};
  // It may still stand on the lists of channels with something to send.
  fresh.on_active_list = ch.on_active_list;
  fresh.on_ack_list = ch.on_ack_list;
  fresh.next_active = ch.next_active;
  fresh.next_ack = ch.next_ack;
  ch = fresh;
  Peer& peer = s.peers[peer_index];
  ++peer.users;
  const LinkConfig& link = s.links[peer.path.link].config;
  ch.tpn = (generation & 0xff) << tp::kTpnIndexBits | index;
  ch.peer = peer_index;
  ch.link = peer.path.link;
  ch.local_eid = peer.local_eid;
  ch.remote = peer.instance;
  ch.local_endpoint = peer.path.local;
  ch.remote_endpoint = peer.path.remote;
  ch.bulk = bulk;
  ch.lossless = link.lossless;
  uint32_t random_psn = s.prng.next_u32();
  ch.initial_psn = Psn(s.config.first_psn == UINT32_MAX ? random_psn : s.config.first_psn);
  ch.attempt = s.prng.next_u32();
  ch.record_flags = kOffered | (bulk ? wire::kRecordBulk : 0) | (link.icrc_optional ? wire::kRecordIcrcOff : 0);
  if (!s.config.fast_retransmit) ch.record_flags &= ~wire::kRecordFast;
  ch.created_at = ch.heard_at = s.now;
  ch.rto_at = Instant::never();
  ch.rto = s.config.rto_min;
  ch.give_up_after = s.config.channel_timeout;
  return index;
}

// What both sides know once REQ and REP were exchanged.
void agree(CoreState& s, Channel& ch, const ControlRecord& r) {
  ch.peer_tpn = r.sender_tpn;
  ch.peer_incarnation = r.sender_incarnation;
  ch.peer_initial_psn = r.initial_psn;
  ch.remote.uasid = r.sender_uasid;
  uint8_t agreed = ch.record_flags & r.flags & ~wire::kRecordBulk;
  ch.record_flags = agreed | (r.flags & wire::kRecordBulk);
  ch.icrc = (agreed & wire::kRecordIcrcOff) == 0;
  ch.fast = (agreed & wire::kRecordFast) != 0;
  ch.read_meta = (agreed & wire::kRecordReadMeta) != 0;
  ch.send_window = std::min<uint32_t>({r.rcv_window, s.config.window_packets, wire::kSackMaxBits});
  ch.next_psn = ch.oldest_unacked = ch.initial_psn;
  ch.expected = ch.delivered = ch.message_start = ch.peer_initial_psn;
  ch.highest_seen = ch.peer_initial_psn - 1;
  UB_DCHECK(ch.next_tpmsn == Tpmsn(0) && ch.message == Tpmsn(0));  // nothing was sent on it
  tp::cc_init(ch.cc, ch.next_psn);
  ch.headers.init({}, {}, ch.local_endpoint, ch.remote_endpoint, 0);
}

bool is_self(const CoreState& s, const Peer& peer) {
  return peer.instance.uasid == s.config.self.uasid &&
         std::find(s.eids, s.eids + s.eid_count, peer.instance.eid) != s.eids + s.eid_count;
}

void arm_setup(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.setup_at = s.now + setup_pause(s, ch.setup_tries);
  s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
}

// Offers go wanted, wanted, half, half ... 1024, 1024, wanted: the padded REQ that is answered fits the path.
uint16_t mtu_offer(const CoreState& s, const Channel& ch) {
  uint32_t wanted = s.links[ch.link].config.mtu;
  uint32_t levels = static_cast<uint32_t>(std::countr_zero(wanted / kMinMtu)) + 1;
  return static_cast<uint16_t>(wanted >> (ch.setup_tries / 2 % levels));
}

void send_request(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.offered_mtu = mtu_offer(s, ch);
  send_about(s, ch, RecordType::kReq);
  arm_setup(s, channel);
}

void begin_as_initiator(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.state = ChannelState::kReqSent;
  ch.initiator = true;
  ch.created_at = s.now;
  ch.setup_tries = 0;
  send_request(s, channel);
}

}  // namespace

uint32_t begin_channel_to(CoreState& s, uint32_t peer_index, bool bulk) {
  Peer& peer = s.peers[peer_index];
  if (peer.path.link == 0) return 0;
  uint32_t channel = new_channel(s, peer_index, bulk);
  if (channel == 0) return 0;
  peer.channels[bulk ? 1 : 0] = channel;
  s.channels[channel].carries_requests = true;
  begin_as_initiator(s, channel);
  return channel;
}

void open_channel(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.state = ChannelState::kOpen;
  ch.mtu = ch.offered_mtu;
  ch.heard_at = ch.progress_at = s.now;
  s.count(Counter::kTpChannelUp);
  push_event(s, EventKind::kChannelUp, ch.tpn);
  Peer& peer = s.peers[ch.peer];
  uint32_t& current = peer.channels[ch.bulk ? 1 : 0];
  if (current != channel && peer.visitor == 0 && !is_self(s, peer)) {
    uint32_t old = current;
    current = channel;
    ch.carries_requests = true;
    if (old != 0) kill_channel(s, old);
  }
  s.timers.arm(s.timer_of_channel(channel), s.now + s.config.keepalive_idle);
  if (ch.queue_head != 0) activate(s, channel);
}

void kill_channel(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (!alive(ch)) return;
  bool was_up = ch.state == ChannelState::kOpen || ch.state == ChannelState::kClosing;
  ch.state = ChannelState::kDead;
  s.timers.cancel(s.timer_of_channel(channel));
  set_held_back(s, &ch.held_back, false);
  Peer& peer = s.peers[ch.peer];
  uint32_t lane = ch.bulk ? 1 : 0;
  if (peer.channels[lane] == channel) peer.channels[lane] = 0;
  if (peer.accepted[lane] == channel) peer.accepted[lane] = 0;
  if (ch.receive != 0) {
    if (ch.copies_pending == 0) {
      return_receive(s, ch.receive);
    } else {
      return_receive_later(s, ch.receive, ch.tpn, ch.copies_pending);
    }
    ch.receive = 0;
  }
  tp::drop_all_held(s, ch);
  if (ch.carries_requests) ta::fail_channel_requests(s, channel);
  ta::drop_jobs_of_channel(s, channel);
  ch.in_flight.clear(s.messages);
  ch.answers.clear(s.messages);
  if (ch.recovery != 0) s.recovery.free(ch.recovery);
  ch.recovery = 0;
  tp::release_reorder(s, ch);
  ch.freed_at = s.now;
  UB_DCHECK(ch.next_resting == 0);
  (s.resting_tail == 0 ? s.resting_head : s.channels[s.resting_tail].next_resting) = channel;
  s.resting_tail = channel;
  if (was_up) {
    s.count(Counter::kTpChannelDead);
    push_event(s, EventKind::kChannelDead, ch.tpn);
  }
  --peer.users;
  drop_unused_peer(s, ch.peer);
}

namespace {

// Tells the peer, if it knows the channel.
void close_channel(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kOpen) return kill_channel(s, channel);
  ch.state = ChannelState::kClosing;
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

// Its number may be given to another application at once: that one makes channels of its own.
void close_owner(CoreState& s, Owner owner) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (!alive(s.channels[i]) || s.channels[i].state == ChannelState::kClosing) continue;
    Peer& peer = s.peers[s.channels[i].peer];
    if (peer.owner != owner || peer.visitor != 0) continue;
    uint32_t& current = peer.channels[s.channels[i].bulk ? 1 : 0];
    if (current == i) current = 0;
    close_channel(s, i);
  }
}

// ---- receiving records -----------------------------------------------------------------------------------------

namespace {

bool valid_parameters(const ControlRecord& r) {
  return r.mtu >= kMinMtu && r.mtu <= 8192 && std::has_single_bit(r.mtu) && r.sender_tpn != 0 &&
         (r.flags & (wire::kRecordRol | wire::kRecordCaqmEcn)) == 0 && r.cc == wire::CcAlgorithm::kNone &&
         r.rcv_window >= 64 && r.selective;
}

// Becomes the answering end of the peer's attempt.
void respond(CoreState& s, uint32_t channel, const Arrival& from, const ControlRecord& r) {
  Channel& ch = s.channels[channel];
  const LinkConfig& link = s.links[from.link].config;
  ch.state = ChannelState::kHalfOpen;
  ch.initiator = false;
  ch.link = from.link;
  ch.local_endpoint = from.local;
  ch.remote_endpoint = from.remote;
  ch.attempt = r.attempt;
  ch.created_at = s.now;
  ch.setup_tries = 0;
  ch.several_mtus = false;
  ch.offered_mtu = std::min<uint16_t>(r.mtu, static_cast<uint16_t>(link.mtu));
  agree(s, ch, r);
  send_about(s, ch, RecordType::kRep);
  arm_setup(s, channel);
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

// False: it was asked a moment ago.
bool ping(CoreState& s, Channel& ch) {
  if (ch.pinged_at.ns != 0 && s.now - ch.pinged_at < kPingPause) return false;
  ch.pinged_at = s.now;
  send_about(s, ch, RecordType::kPing);
  return true;
}

// A new instance speaks from the address of one that we know: is that one still there?
void ask_former_instance(CoreState& s, const Arrival& from, const ControlRecord& r) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    Channel& ch = s.channels[i];
    if (ch.state == ChannelState::kOpen && ch.remote.eid == r.sender_eid && ch.remote_endpoint == from.remote &&
        ch.remote.uasid != r.sender_uasid) {
      ping(s, ch);
    }
  }
}

void on_request(CoreState& s, const Arrival& from, const ControlRecord& r) {
  if (!meant_for_us(s, r)) {
    s.count(Counter::kTpChannelRejected);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kUnknownEntity);
  }
  if (!valid_parameters(r)) {
    s.count(Counter::kTpChannelRejected);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kParameter);
  }
  bool bulk = (r.flags & wire::kRecordBulk) != 0;
  uint32_t lane = bulk ? 1 : 0;
  TargetConfig sender;
  sender.local_eid = r.wanted_eid;
  sender.instance = {r.sender_eid, r.sender_uasid};
  sender.path = {from.link, from.local, from.remote};
  uint32_t peer_index = find_or_add_peer(s, sender, r.application);
  if (peer_index == 0) return send_reply(s, from, r, RecordType::kRej, RecordReason::kNoResources);
  Peer& peer = s.peers[peer_index];

  uint32_t accepted = peer.accepted[lane];
  if (accepted != 0) {
    Channel& ch = s.channels[accepted];
    if (ch.attempt == r.attempt && ch.peer_incarnation == r.sender_incarnation) return answer_again(s, accepted, r);
  }
  uint32_t current = peer.channels[lane];
  if (current != 0 && s.channels[current].state == ChannelState::kReqSent && !is_self(s, peer)) {
    if (s.config.incarnation < r.sender_incarnation) {
      s.count(Counter::kTpChannelRejected);
      return send_reply(s, from, r, RecordType::kRej, RecordReason::kGlare);
    }
    peer.accepted[lane] = current;
    return respond(s, current, from, r);
  }
  if (accepted != 0 && s.channels[accepted].state == ChannelState::kHalfOpen) {
    return respond(s, accepted, from, r);  // a newer attempt replaces an unproven one
  }
  uint32_t channel = new_channel(s, peer_index, bulk);
  if (channel == 0) {
    drop_unused_peer(s, peer_index);
    return send_reply(s, from, r, RecordType::kRej, RecordReason::kNoResources);
  }
  ask_former_instance(s, from, r);
  peer.accepted[lane] = channel;
  if (current == 0 && peer.visitor == 0 && !is_self(s, peer)) {
    peer.channels[lane] = channel;
    s.channels[channel].carries_requests = true;
  }
  respond(s, channel, from, r);
}

// The channel that a record is about, if it is about this life of it.
uint32_t channel_of(const CoreState& s, const ControlRecord& r) {
  uint32_t channel = channel_of_tpn(s, r.receiver_tpn);
  return channel != 0 && s.channels[channel].attempt == r.attempt ? channel : 0;
}

void on_reply(CoreState& s, const Arrival& from, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.count(Counter::kRxDropRecordStale);
  Channel& ch = s.channels[channel];
  if (ch.state == ChannelState::kOpen && ch.initiator && ch.peer_tpn == r.sender_tpn) {
    return send_about(s, ch, RecordType::kConf);
  }
  if (ch.state != ChannelState::kReqSent) return s.count(Counter::kRxDropRecordState);
  if (from.remote.ip != ch.remote_endpoint.ip) return s.count(Counter::kRxDropRecordPeer);
  if (!valid_parameters(r)) return s.count(Counter::kRxDropRecordParameter);
  ch.remote_endpoint = from.remote;
  ch.offered_mtu = std::min<uint16_t>(r.mtu, static_cast<uint16_t>(s.links[ch.link].config.mtu));
  agree(s, ch, r);
  send_about(s, ch, RecordType::kConf);
  open_channel(s, channel);
}

void on_confirm(CoreState& s, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.count(Counter::kRxDropRecordStale);
  Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kHalfOpen) return s.count(Counter::kRxDropRecordState);
  if (ch.peer_tpn != r.sender_tpn) return s.count(Counter::kRxDropRecordPeer);
  const bool fits = valid_parameters(r) && r.mtu <= s.links[ch.link].config.mtu;
  if (!fits) return s.count(Counter::kRxDropRecordParameter);
  ch.offered_mtu = r.mtu;
  open_channel(s, channel);
}

// A refusal by another version has only the first fields of the record: the attempt says what it is about.
uint32_t channel_of_attempt(const CoreState& s, uint32_t attempt) {
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (s.channels[i].state == ChannelState::kReqSent && s.channels[i].attempt == attempt) return i;
  }
  return 0;
}

void on_reject(CoreState& s, const ControlRecord& r) {
  uint32_t channel = r.receiver_tpn == 0 ? channel_of_attempt(s, r.attempt) : channel_of(s, r);
  if (channel == 0) return s.count(Counter::kRxDropRecordStale);
  const Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kReqSent) return s.count(Counter::kRxDropRecordState);
  // After glare the peer's own REQ comes; without resources we go on asking.
  const bool goes_on = r.reason == RecordReason::kGlare || r.reason == RecordReason::kNoResources;
  if (goes_on) return s.count(Counter::kTpChannelDeferred);
  s.count(Counter::kTpChannelRejected);
  push_event(s, {EventKind::kChannelRejected, ch.tpn, 0, static_cast<uint8_t>(r.reason), r.version,
                 s.peers[ch.peer].instance.eid});
  kill_channel(s, channel);
}

// One that is not known is as closed as it can be: the answer is the same, and nothing is dropped.
void on_close(CoreState& s, const Arrival& from, const ControlRecord& r) {
  send_reply(s, from, r, RecordType::kClosed, RecordReason::kNone);
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return;
  if (s.channels[channel].peer_tpn != r.sender_tpn) return s.count(Counter::kRxDropRecordPeer);
  s.count(Counter::kTpChannelClosed);
  kill_channel(s, channel);
}

void on_closed(CoreState& s, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.count(Counter::kRxDropRecordStale);
  if (s.channels[channel].state != ChannelState::kClosing) return s.count(Counter::kRxDropRecordState);
  s.count(Counter::kTpChannelClosed);
  kill_channel(s, channel);
}

void on_ping(CoreState& s, const Arrival& from, const ControlRecord& r) {
  RecordReason reason = channel_of(s, r) != 0 ? RecordReason::kNone : RecordReason::kUnknownTpn;
  if (r.receiver_incarnation != 0 && r.receiver_incarnation != s.config.incarnation) reason = RecordReason::kRestarted;
  send_reply(s, from, r, RecordType::kPong, reason);
}

void on_pong(CoreState& s, const ControlRecord& r) {
  uint32_t channel = channel_of(s, r);
  if (channel == 0) return s.count(Counter::kRxDropRecordStale);
  if (s.channels[channel].state != ChannelState::kOpen) return s.count(Counter::kRxDropRecordState);
  bool restarted = r.sender_incarnation != s.channels[channel].peer_incarnation;
  if (restarted || r.reason == RecordReason::kUnknownTpn || r.reason == RecordReason::kRestarted) {
    kill_channel(s, channel);
  }
}

// Somebody says that our peer's TPN is unknown. That may be stale or forged, so we ask.
void on_reset(CoreState& s, const ControlRecord& r) {
  s.count(Counter::kTpRxReset);
  uint32_t channel = channel_of_tpn(s, r.receiver_tpn);
  if (channel == 0) return s.count(Counter::kRxDropRecordStale);
  Channel& ch = s.channels[channel];
  if (ch.state != ChannelState::kOpen) return s.count(Counter::kRxDropRecordState);
  if (ch.peer_tpn != r.sender_tpn) return s.count(Counter::kRxDropRecordPeer);
  if (!ping(s, ch)) s.count(Counter::kRxDropRecordTooOften);
}

}  // namespace

void on_record(CoreState& s, const Arrival& from, const ControlRecord& r) {
  switch (r.type) {
    case RecordType::kReq:
      return on_request(s, from, r);
    case RecordType::kRep:
      return on_reply(s, from, r);
    case RecordType::kConf:
      return on_confirm(s, r);
    case RecordType::kRej:
      return on_reject(s, r);
    case RecordType::kClose:
      return on_close(s, from, r);
    case RecordType::kClosed:
      return on_closed(s, r);
    case RecordType::kPing:
      return on_ping(s, from, r);
    case RecordType::kPong:
      return on_pong(s, r);
    case RecordType::kReset:
      return on_reset(s, r);
    case RecordType::kFind:
      return on_find(s, from, r);
    case RecordType::kFound:
      return on_found(s, from, r);
    case RecordType::kScFree:
      return s.count(Counter::kRxDropRecordScFree);
  }
}

void refuse_version(CoreState& s, const Arrival& from, const ControlRecord& prefix) {
  if (prefix.type == RecordType::kRej) return on_reject(s, prefix);
  s.count(Counter::kTpChannelRejected);
  if (prefix.type == RecordType::kReq) send_reply(s, from, prefix, RecordType::kRej, RecordReason::kParameter);
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

// A peer that let a channel die by silence is silent on its other lane, too, unless that was heard meanwhile.
void kill_silent(CoreState& s, uint32_t channel) {
  uint32_t peer = s.channels[channel].peer;
  uint32_t other = s.peers[peer].channels[s.channels[channel].bulk ? 0 : 1];
  ++s.peers[peer].users;
  if (other != 0) {
    const Channel& o = s.channels[other];
    bool silent = o.state == ChannelState::kReqSent ||
                  (o.state == ChannelState::kOpen && s.now - o.heard_at >= s.config.channel_timeout);
    if (silent) kill_channel(s, other);
  }
  kill_channel(s, channel);
  --s.peers[peer].users;
  drop_unused_peer(s, peer);
}

}  // namespace

void end_if_silent(CoreState& s, uint32_t channel) {
  const Channel& ch = s.channels[channel];
  Duration limit = ch.give_up_after - ch.give_up_after / 8;
  if (ch.state == ChannelState::kOpen && ch.outstanding() != 0 && tp::is_silent(s, ch, s.now, limit)) {
    kill_silent(s, channel);
  }
}

void on_channel_timer(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  switch (ch.state) {
    case ChannelState::kReqSent:
      if (s.now - ch.created_at >= s.config.channel_timeout) return kill_silent(s, channel);
      if (ch.setup_at > s.now) return s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
      ++ch.setup_tries;
      return send_request(s, channel);
    case ChannelState::kHalfOpen:
      if (s.now - ch.created_at >= kHalfOpenLife) {
        // Requests of ours that wait for it are tried on our own account.
        if (ch.queue_head == 0) return kill_channel(s, channel);
        Peer& peer = s.peers[ch.peer];
        peer.accepted[ch.bulk ? 1 : 0] = 0;
        ch.attempt = s.prng.next_u32();
        ch.peer_tpn = 0;
        UB_DCHECK(ch.remote == peer.instance);
        return begin_as_initiator(s, channel);
      }
      if (ch.setup_at > s.now) return s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
      ++ch.setup_tries;
      send_about(s, ch, RecordType::kRep);
      return arm_setup(s, channel);
    case ChannelState::kOpen:
      if (tp::on_timer(s, channel, s.now) == tp::TimerVerdict::kGivenUp) kill_silent(s, channel);
      return;
    case ChannelState::kClosing:
      if (s.now - ch.created_at >= kCloseLife) return kill_channel(s, channel);
      if (ch.setup_at > s.now) return s.timers.arm(s.timer_of_channel(channel), ch.setup_at);
      ++ch.setup_tries;
      send_about(s, ch, RecordType::kClose);
      return arm_setup(s, channel);
    default:
      return;
  }
}

}  // namespace ub::setup
