// SPDX-License-Identifier: Apache-2.0
//
// The definitions of Core<Host>, for the few files that instantiate it: the embedded back end, the simulator, the
// emulator, benchmarks.
#pragma once

#include "lib/transport/core.h"
#include "lib/transport/resource/objects.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/targets.h"
#include "lib/transport/roce/engine_impl.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/setup/receive_record.h"

namespace ub {

template <class Host>
size_t Core<Host>::arena_bytes(const CoreConfig& config) {
  CoreState* s = new CoreState;  // measured once, before there is a Core
  s->config = config;
  Arena arena(nullptr);
  lay_out(*s, arena);
  delete s;
  return arena.used_bytes();
}

template <class Host>
size_t Core<Host>::send_queue_work_bytes(uint32_t depth) {
  return std::bit_ceil(depth) * sizeof(WrState);
}

template <class Host>
Core<Host>::Core(const CoreConfig& config, std::byte* memory, Host& host)
    : host_(host),
      record_sender_(s_, host),
      datagram_sender_(s_, host),
      datagram_receiver_(s_, host),
      transmitter_(s_, host),
      channel_sender_(s_, host, transmitter_),
      receiver_(s_, host) {
  UB_ASSERT(config.window_packets >= 128 && config.window_packets <= tp::kMaxWindow);
  UB_ASSERT(config.segment_bytes >= 32 * 1024 && config.segment_bytes % 8192 == 0);
  UB_ASSERT(config.max_channels < (1u << tp::kTpnIndexBits));
  UB_ASSERT(config.max_queues < kIdSpace);
  UB_ASSERT(config.roce.max_qps <= UINT16_MAX && config.roce.max_connections <= UINT16_MAX);
  UB_ASSERT(config.roce.window_packets != 0);
  s_.config = config;
  s_.prng = Prng(config.seed);
  Arena arena(memory);
  lay_out(s_, arena);
  if (s_.roce != nullptr) roce_.emplace(s_, *s_.roce, host);
  add_eid(config.self.eid);
}

// ---- control ---------------------------------------------------------------------------------------------------

template <class Host>
uint32_t Core<Host>::add_link(const LinkConfig& config) {
  uint32_t link = s_.links.alloc();
  if (link != 0) s_.links[link] = LinkRecord{true, config, 0, 0, 0, false};
  return link;
}

template <class Host>
void Core<Host>::link_down(Instant now, uint32_t link) {
  s_.now = now;
  if (roce_) roce_->link_down(link);
  setup::link_down(s_, link);
  release_orphans(s_, host_);
}

template <class Host>
Status Core<Host>::add_eid(const Eid& eid) {
  for (uint32_t i = 0; i < s_.eid_count; ++i) {
    if (s_.eids[i] == eid) return Status::kExists;
  }
  if (s_.eid_count == kMaxEids) return Status::kNoMemory;
  s_.eids[s_.eid_count++] = eid;
  return Status::kOk;
}

template <class Host>
void Core<Host>::add_id_block(uint32_t block) {
  ub::add_id_block(s_, block);
}
template <class Host>
bool Core<Host>::has_id(uint32_t id, bool token_id) const {
  return setup::has_id(s_, id, token_id);
}
template <class Host>
Status Core<Host>::find(Instant now, const FindConfig& config, uint32_t* uasid) {
  s_.now = now;
  return setup::find(s_, config, uasid);
}

template <class Host>
Status Core<Host>::create_jfc(const JfcConfig& config, uint32_t* jfc) {
  return ub::create_jfc(s_, config, jfc);
}
template <class Host>
Status Core<Host>::destroy_jfc(uint32_t jfc) {
  return ub::destroy_jfc(s_, jfc);
}
template <class Host>
Status Core<Host>::create_jfr(const JfrConfig& config, uint32_t* id) {
  return ub::create_jfr(s_, config, id);
}
template <class Host>
Status Core<Host>::destroy_jfr(Instant now, uint32_t id) {
  s_.now = now;
  return ub::destroy_jfr(s_, id);
}
template <class Host>
Status Core<Host>::create_jetty(const JettyConfig& config, uint32_t* id) {
  return ub::create_jetty(s_, config, id);
}
template <class Host>
Status Core<Host>::create_group(const GroupConfig& config, uint32_t* id) {
  return ub::create_group(s_, config, id);
}

template <class Host>
Status Core<Host>::destroy_group(Instant now, uint32_t id) {
  s_.now = now;
  return ub::destroy_group(s_, id);
}

template <class Host>
Status Core<Host>::destroy_jetty(Instant now, uint32_t id) {
  s_.now = now;
  return ub::destroy_jetty(s_, id);
}
template <class Host>
Status Core<Host>::set_state(Instant now, uint32_t id, QueueState state) {
  s_.now = now;
  return ub::set_state(s_, id, state);
}
template <class Host>
QueueState Core<Host>::state(uint32_t id) const {
  return state_of(s_, id);
}
template <class Host>
Status Core<Host>::set_receive_threshold(uint32_t jfr, uint32_t slots) {
  return ub::set_receive_threshold(s_, jfr, slots);
}
template <class Host>
uint32_t Core<Host>::take_unhandled(uint32_t id, Cqe* out, uint32_t room) {
  if (id >= kIdSpace) return 0;
  const IdSlot& slot = s_.ids[id];
  if (slot.kind != ObjectKind::kJetty && slot.kind != ObjectKind::kJfs) return 0;
  return ta::take_unhandled(s_, s_.jettys[slot.record].queue, out, room);
}
template <class Host>
Status Core<Host>::alloc_token_id(uint32_t* token_id) {
  return ub::alloc_token_id(s_, token_id);
}
template <class Host>
Status Core<Host>::free_token_id(Instant now, uint32_t token_id) {
  s_.now = now;
  return ub::free_token_id(s_, token_id);
}
template <class Host>
Status Core<Host>::register_segment(const SegmentConfig& config, RegisteredSegment* out) {
  return ub::register_segment(s_, config, out);
}
template <class Host>
Status Core<Host>::unregister_segment(Instant now, uint32_t handle) {
  s_.now = now;
  return ub::unregister_segment(s_, handle);
}
template <class Host>
Status Core<Host>::add_target(Instant now, const TargetConfig& config, uint32_t* target) {
  s_.now = now;
  return ub::add_target(s_, config, target);
}
template <class Host>
Status Core<Host>::remove_target(uint32_t target) {
  return ub::remove_target(s_, target);
}
template <class Host>
Status Core<Host>::bind(uint32_t jetty, uint32_t target) {
  return bind_jetty(s_, jetty, target);
}
template <class Host>
Status Core<Host>::unbind(uint32_t jetty) {
  return unbind_jetty(s_, jetty);
}
template <class Host>
void Core<Host>::close_owner(Instant now, Owner owner) {
  s_.now = now;
  setup::close_owner(s_, owner);
  release_orphans(s_, host_);
}
template <class Host>
void Core<Host>::close(Instant now) {
  s_.now = now;
  setup::close_all(s_);
  if (roce_) roce_->close();
  release_orphans(s_, host_);
}

// ---- packets ---------------------------------------------------------------------------------------------------

template <class Host>
void Core<Host>::on_packet(Instant now, uint32_t link, std::span<const std::byte> eth_frame) {
  s_.now = now;
  s_.count(Counter::kRxPackets);
  s_.count(Counter::kRxBytes, eth_frame.size());
  wire::NetHeader net;
  wire::Drop drop = wire::parse_network(eth_frame, net);
  if (drop != wire::Drop::kNone) return s_.count(wire::drop_counter(drop));
  if (roce_ && net.dst.port == roce::kUdpPort) return roce_->on_packet(link, net);
  on_transport_packet(link, net);
}

// One function with all that it calls: calls would cost as much as the work.
template <class Host>
[[gnu::flatten]] void Core<Host>::on_transport_packet(uint32_t link, const wire::NetHeader& net) {
  wire::RtpHeader rtp;
  wire::Drop drop = wire::RtpHeader::read(net.tph, net.tp_size(), rtp);
  if (drop != wire::Drop::kNone) return s_.count(wire::drop_counter(drop));
  if (rtp.opcode == wire::TpOpcode::kUnreliable) return on_unreliable(link, net);
  on_channel_packet(link, net, rtp);
}

// Set-up records and messages of UM; they always carry an ICRC.
template <class Host>
[[gnu::noinline]] void Core<Host>::on_unreliable(uint32_t link, const wire::NetHeader& net) {
  if (!wire::icrc_matches(net)) return s_.count(Counter::kRxDropBadIcrc);
  wire::UtpHeader utp;
  wire::Drop drop = wire::UtpHeader::read(net.tph, net.tp_size(), utp);
  wire::TaPacket ta;
  if (drop == wire::Drop::kNone) {
    drop = utp.nlp != wire::kNlpTransaction
               ? wire::Drop::kBadNlp
               : wire::parse_transaction(net.tph + wire::UtpHeader::kSize, net.end, utp.padding, false, ta);
  }
  if (drop != wire::Drop::kNone) return s_.count(wire::drop_counter(drop));
  if (ta.is_response || ta.req.opcode != wire::TaOpcode::kSend || ta.mt.tc_id != 0) {
    return datagram_receiver_.on_datagram(link, net.src, ta);
  }
  setup::Arrival from{link, net.dst, net.src};
  wire::ControlRecord record;
  drop = wire::read_control_record({ta.payload, ta.payload_len}, record);
  s_.count(Counter::kTpRxRecord);
  if (drop == wire::Drop::kNone) return setup::on_record(s_, from, record);
  s_.count(wire::drop_counter(drop));
  if (drop == wire::Drop::kBadRecordVersion) setup::refuse_version(s_, from, record);
}

template <class Host>
void Core<Host>::on_channel_packet(uint32_t link, const wire::NetHeader& net, const wire::RtpHeader& rtp) {
  uint32_t channel = setup::channel_of_tpn(s_, rtp.dst_tpn);
  if (channel == 0) {
    s_.count(Counter::kRxDropUnknownTpn);
    bool checked = s_.links[link].config.icrc_optional || wire::icrc_matches(net);
    if (rtp.is_data() && checked) {
      setup::on_unknown_tpn(s_, {link, net.dst, net.src}, rtp.dst_tpn, rtp.src_tpn);
    }
    return;
  }
  tp::Channel& ch = s_.channels[channel];
  if (ch.peer_tpn != rtp.src_tpn || ch.link != link || net.src.ip != ch.remote_endpoint.ip) {
    return s_.count(Counter::kRxDropWrongPeer);
  }
  if (ch.icrc && !wire::icrc_matches(net)) return s_.count(Counter::kRxDropBadIcrc);
  if (!may_carry_data(channel)) return s_.count(Counter::kRxDropUnknownTpn);
  ch.heard_at = s_.now;
  ++ch.rx_packets;
  const std::byte* rest = net.tph + wire::RtpHeader::kSize;
  auto bytes = static_cast<size_t>(net.end - rest);
  switch (rtp.opcode) {
    case wire::TpOpcode::kData:
      return receiver_.on_data(channel, rtp, {rest, bytes});
    case wire::TpOpcode::kAck:
      return ta::on_ack(s_, channel, rtp);
    case wire::TpOpcode::kSack:
      return ta::on_sack(s_, channel, rtp, {rest, bytes});
    default:
      return ta::on_congestion(s_, channel, rtp, net);
  }
}

// A half-open channel is proven by its first packet, once it is clear which MTU holds.
template <class Host>
bool Core<Host>::may_carry_data(uint32_t channel) {
  const tp::Channel& ch = s_.channels[channel];
  if (ch.state == tp::ChannelState::kOpen) return true;
  if (ch.state != tp::ChannelState::kHalfOpen || ch.several_mtus) return false;
  setup::open_channel(s_, channel);
  return true;
}

// ---- the rest --------------------------------------------------------------------------------------------------

template <class Host>
void Core<Host>::on_posted(Instant now, uint32_t jetty) {
  s_.now = now;
  if (jetty >= kIdSpace) return;
  const IdSlot& slot = s_.ids[jetty];
  if (slot.kind == ObjectKind::kQp) return roce_->on_posted(slot.record);
  if (slot.kind != ObjectKind::kJetty && slot.kind != ObjectKind::kJfs) return;
  ta::schedule_queue(s_, s_.jettys[slot.record].queue);
}

template <class Host>
uint32_t Core<Host>::slots_posted(uint32_t jetty) const {
  const SendQueue& q = s_.queues[s_.jettys[s_.ids[jetty].record].queue];
  const uint32_t produced = q.indices->produced.load(std::memory_order_relaxed);
  return produced - q.posted <= q.slot_mask + 1 ? produced : q.posted;
}

template <class Host>
void Core<Host>::on_completions_read(Instant now, uint32_t jfc) {
  s_.now = now;
  if (jfc != 0 && jfc <= s_.jfcs.high_water() && s_.jfcs[jfc].in_use) ta::resume_jfc(s_, jfc);
}

template <class Host>
void Core<Host>::on_armed(uint32_t jfc) {
  if (jfc == 0 || jfc > s_.jfcs.high_water() || !s_.jfcs[jfc].in_use) return;
  ta::resume_jfc(s_, jfc);
  ta::check_armed(s_, jfc);
}

template <class Host>
void Core<Host>::on_copy_done(Instant now, CopyTag tag, bool ok) {
  s_.now = now;
  if (roce::is_roce_copy(tag)) {
    roce_->on_copy_done(tag, ok);
    return release_orphans(s_, host_);
  }
  ta::CopyPurpose purpose = ta::purpose_of(tag);
  if (purpose.kind == ta::CopyKind::kDatagram) {
    const ta::DatagramCopy copy = ta::datagram_copy_of(tag);
    if (copy.arriving) return datagram_receiver_.on_placed(copy, ok);
    return datagram_sender_.on_gather_done(copy, ok);
  }
  if (purpose.kind == ta::CopyKind::kGather) {
    uint32_t channel = setup::channel_of_tpn(s_, purpose.tpn);
    if (channel != 0) tp::on_gather_done(s_, channel, purpose.held, s_.now, ok);
  } else {
    receiver_.on_placed(purpose, ok);
  }
}

template <class Host>
void Core<Host>::on_timer(Instant now) {
  s_.now = now;
  uint32_t object;
  while (s_.timers.pop_due(now, &object)) {
    if (object >= s_.first_roce_timer()) {
      roce_->on_timer(object - s_.first_roce_timer());
      continue;
    }
    if (object > s_.config.max_channels) {
      ta::on_queue_timer(s_, object - s_.config.max_channels - 1);
      continue;
    }
    setup::on_channel_timer(s_, object);
    const tp::Channel& ch = s_.channels[object];
    if (ch.is_up() && ch.stalled && ch.copies_pending == 0) receiver_.resume(object);
  }
  release_orphans(s_, host_);
}

template <class Host>
size_t Core<Host>::poll_packets(Instant now, size_t budget, Acks acks) {
  s_.now = now;
  release_orphans(s_, host_);  // before anybody holds a frame in their places
  if (!roce_ || !roce_->has_packets()) return poll_ub(budget, acks);
  // In turn, so that neither can use up the budget every time.
  roce_first_ = !roce_first_;
  size_t sent = roce_first_ ? roce_->poll_packets(budget) : poll_ub(budget, acks);
  const size_t left = budget > sent ? budget - sent : 0;
  sent += roce_first_ ? poll_ub(left, acks) : roce_->poll_packets(left);
  return sent;
}

template <class Host>
size_t Core<Host>::poll_ub(size_t budget, Acks acks) {
  if (s_.blocked_head != 0) ta::resume_next_jfc(s_);
  size_t sent = record_sender_.send(budget);
  sent += poll_requests(budget - sent);
  sent += transmitter_.send_acks(acks, s_.now);
  return sent;
}

// Channels and datagrams go first in turn, so that neither can use up the budget every time.
template <class Host>
size_t Core<Host>::poll_requests(size_t budget) {
  if (s_.active_link_head == 0) return channel_sender_.send(budget);
  s_.datagrams_first = !s_.datagrams_first;
  if (s_.datagrams_first) {
    size_t sent = datagram_sender_.send(budget);
    return sent + channel_sender_.send(budget - sent);
  }
  size_t sent = channel_sender_.send(budget);
  return sent + datagram_sender_.send(budget - sent);
}

template <class Host>
size_t Core<Host>::poll_events(std::span<Event> out) {
  return drain_events(s_, out.data(), out.size());
}

template <class Host>
Instant Core<Host>::next_deadline(Acks acks) const {
  return acks == Acks::kMayWait ? s_.timers.earliest() : earlier(s_.timers.earliest(), s_.acks_due);
}

template <class Host>
void Core<Host>::count_away(Duration away) {
  if (away.ns > 0) s_.count(Counter::kAwayUs, static_cast<uint64_t>(away.us()));
}

template <class Host>
bool Core<Host>::has_packets(Acks acks) const {
  if (roce_ && roce_->has_packets()) return true;
  if (acks == Acks::kNow && s_.ack_head != 0) return true;
  return s_.active_head != 0 || s_.active_link_head != 0 || s_.outbox_head != s_.outbox_tail;
}

template <class Host>
bool Core<Host>::is_held_back() const {
  return s_.held_back != 0;
}

template <class Host>
const Counters& Core<Host>::counters() const {
  return s_.counters;
}

template <class Host>
const CoreConfig& Core<Host>::config() const {
  return s_.config;
}

template <class Host>
uint32_t Core<Host>::channel_table_size() const {
  return s_.channels.high_water();
}

template <class Host>
bool Core<Host>::channel_info(uint32_t index, ChannelInfo* out) const {
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
  out->bulk = ch.bulk;
  out->state = static_cast<uint8_t>(ch.state);
  out->next_psn = ch.next_psn.value();
  out->oldest_unacked = ch.oldest_unacked.value();
  out->expected_psn = ch.expected.value();
  out->queued_messages = ch.in_flight.size() + ch.answers.size();
  out->tx_packets = ch.tx_packets;
  out->rx_packets = ch.rx_packets;
  out->retransmits = ch.retransmits;
  out->smoothed_rtt = ch.srtt;
  out->rto = ch.rto;
  return true;
}

}  // namespace ub
