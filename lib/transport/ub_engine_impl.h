// SPDX-License-Identifier: Apache-2.0
//
// The definitions of UbEngine<Host>; for core_impl.h alone.
#pragma once

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/receive_record.h"
#include "lib/transport/setup/record_sender.h"
#include "lib/transport/ta/datagram_receiver.h"
#include "lib/transport/ta/datagram_sender.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/mapped_requests.h"
#include "lib/transport/ta/packet_receiver.h"
#include "lib/transport/ta/packet_sender.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/sent_messages.h"
#include "lib/transport/ta/straight_arrival.h"
#include "lib/transport/ta/straight_sender.h"
#include "lib/transport/tp/paths.h"
#include "lib/transport/tp/transmitter.h"
#include "lib/transport/ub_engine.h"

namespace ub {

// ---- packets ---------------------------------------------------------------------------------------------------

template <class Host>
void UbEngine<Host>::on_packet(uint32_t link, const wire::NetHeader& net) {
  wire::RtpHeader rtp;
  wire::Drop drop = wire::RtpHeader::read(net.tph, net.tp_size(), rtp);
  if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
  if (rtp.opcode == wire::TpOpcode::kUnreliable) return on_unreliable(link, net);
  on_channel_packet(link, net, rtp);
}

// UTP packets: set-up records and messages of UM. They always carry an ICRC.
template <class Host>
void UbEngine<Host>::on_unreliable(uint32_t link, const wire::NetHeader& net) {
  if (!wire::icrc_matches(net)) return s_.drop(Counter::kRxDropBadIcrc);
  wire::UtpHeader utp;
  wire::Drop drop = wire::UtpHeader::read(net.tph, net.tp_size(), utp);
  wire::TaPacket ta;
  if (drop == wire::Drop::kNone) {
    drop = utp.nlp != wire::kNlpTransaction
               ? wire::Drop::kBadNlp
               : wire::parse_transaction(net.tph + wire::UtpHeader::kSize, net.end, utp.padding, false, ta);
  }
  if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
  if (ta.is_response || ta.req.opcode != wire::TaOpcode::kSend || ta.mt.tc_id != 0) {
    return datagram_receiver().on_datagram(link, net.src, ta);
  }
  setup::Arrival from{link, net.dst, net.src};
  wire::ControlRecord record;
  drop = wire::read_control_record({ta.payload, ta.payload_len}, record);
  s_.count(Counter::kTpRxRecord);
  if (drop == wire::Drop::kNone) return setup::on_record(s_, from, record);
  s_.drop(wire::drop_counter(drop));
  if (drop == wire::Drop::kBadRecordVersion) setup::refuse_version(s_, from, record);
}

template <class Host>
void UbEngine<Host>::on_channel_packet(uint32_t link, const wire::NetHeader& net, const wire::RtpHeader& rtp) {
  uint32_t channel = setup::channel_of_tpn(s_, rtp.dst_tpn);
  if (channel == 0) {
    s_.drop(Counter::kRxDropUnknownTpn);
    bool checked = s_.links[link].config.icrc_optional || wire::icrc_matches(net);
    if (rtp.is_data() && checked) {
      setup::on_unknown_tpn(s_, {link, net.dst, net.src}, rtp.dst_tpn, rtp.src_tpn);
    }
    return;
  }
  tp::Channel& ch = s_.channels[channel];
  if (ch.peer_tpn != rtp.src_tpn || ch.link != link || net.src.ip != ch.remote_endpoint.ip) [[unlikely]] {
    if (!comes_by_path(channel, link, net, rtp)) return s_.drop(Counter::kRxDropWrongPeer);
  }
  if (ch.compact || ch.several_paths || ch.cna) [[unlikely]] {
    if (ch.cna) return s_.drop(Counter::kRxDropWrongPeer);
    if (ch.compact) return s_.drop(Counter::kRxDropBadTpOpcode);
    if (!ch.icrc || wire::icrc_matches(net)) tp::heard_on_path(s_, ch, net.dst, net.src);
  }
  if (ch.icrc && !wire::icrc_matches(net)) return s_.drop(Counter::kRxDropBadIcrc);
  if (!may_carry_data(channel)) return s_.drop(Counter::kRxDropUnknownTpn);
  take_channel_packet(channel, net, rtp);
}

// A packet that belongs to the channel.
template <class Host>
void UbEngine<Host>::take_channel_packet(uint32_t channel, const wire::NetHeader& net, const wire::RtpHeader& rtp) {
  tp::Channel& ch = s_.channels[channel];
  ch.heard_at = s_.now;
  ++ch.rx_packets;
  const std::byte* rest = net.tph + wire::RtpHeader::kSize;
  auto bytes = static_cast<size_t>(net.end - rest);
  if (rtp.opcode != wire::TpOpcode::kData) note_step<Host>(s_, Stage::kAckArrived, channel, rtp.psn.value());
  switch (rtp.opcode) {
    case wire::TpOpcode::kData:
      if (net.ecn() != wire::kEcnNotCapable) [[unlikely]]
        tp::on_ecn(s_, channel, s_.now, rtp.psn, net.ecn(), static_cast<uint32_t>(net.tp_size() + wire::kIcrcSize));
      return packet_receiver().on_data(channel, rtp, {rest, bytes});
    case wire::TpOpcode::kAck:
      return ta::on_ack(s_, channel, rtp);
    case wire::TpOpcode::kSack:
      return ta::on_sack(s_, channel, rtp, {rest, bytes});
    default:
      return ta::on_congestion(s_, channel, rtp, net);
  }
}

// A packet from another address than that of the set-up: is it that of a path?
template <class Host>
bool UbEngine<Host>::comes_by_path(uint32_t channel, uint32_t link, const wire::NetHeader& net,
                                   const wire::RtpHeader& rtp) {
  const tp::Channel& ch = s_.channels[channel];
  if (!ch.several_paths || ch.peer_tpn != rtp.src_tpn || ch.link != link) return false;
  return tp::find_path(s_, ch, net.dst, net.src) != tp::kNoPath;
}

template <class Host>
bool UbEngine<Host>::on_link_frame(uint32_t link, std::span<const std::byte> eth_frame) {
  if (straight_arrival().take(link, eth_frame)) [[likely]]
    return true;
  return take_link_frame(link, eth_frame);
}

// The general way.
template <class Host>
bool UbEngine<Host>::take_link_frame(uint32_t link, std::span<const std::byte> eth_frame) {
  wire::CompactPacket packet;
  const wire::Drop drop = wire::parse_compact(eth_frame, packet);
  if (drop == wire::Drop::kNone) {
    on_compact(link, packet);
  } else if (drop == wire::Drop::kBadNlp) {  // none of CTP
    on_cna(link, eth_frame);
  } else {
    s_.drop(wire::drop_counter(drop));
  }
  return true;
}

// A packet of RTP over NTH24. Its headers do not say where its sender is asked for records, so one for a channel that
// nobody has is not answered.
template <class Host>
void UbEngine<Host>::on_cna(uint32_t link, std::span<const std::byte> eth_frame) {
  wire::CnaPacket packet;
  wire::RtpHeader rtp;
  wire::Drop drop = wire::parse_cna(eth_frame, packet);
  if (drop == wire::Drop::kNone) {
    drop = wire::RtpHeader::read(packet.tph, static_cast<size_t>(packet.end - packet.tph), rtp);
  }
  if (drop != wire::Drop::kNone) return s_.drop(wire::drop_counter(drop));
  if (rtp.opcode == wire::TpOpcode::kUnreliable) return s_.drop(Counter::kRxDropBadTpOpcode);
  const uint32_t channel = setup::channel_of_tpn(s_, rtp.dst_tpn);
  if (channel == 0) return s_.drop(Counter::kRxDropUnknownTpn);
  const tp::Channel& ch = s_.channels[channel];
  const bool comes_from_peer = packet.scna == wire::cna_of(ch.remote_endpoint.ip) && ch.peer_tpn == rtp.src_tpn;
  const bool comes_to_us = packet.dcna == wire::cna_of(ch.local_endpoint.ip) && ch.link == link;
  if (!ch.cna || !comes_from_peer || !comes_to_us) return s_.drop(Counter::kRxDropWrongPeer);
  if (ch.icrc && !wire::icrc_matches(packet)) return s_.drop(Counter::kRxDropBadIcrc);
  if (!may_carry_data(channel)) return s_.drop(Counter::kRxDropUnknownTpn);
  if (rtp.is_data() && packet.cci != 0) {
    const auto bytes = static_cast<uint32_t>(packet.end - packet.tph) + wire::kIcrcSize;
    tp::on_cci(s_, channel, s_.now, rtp.psn, packet.cci, bytes);
  }
  wire::NetHeader net{};
  net.tph = packet.tph;
  net.src = ch.remote_endpoint;
  net.dst = ch.local_endpoint;
  net.l3 = packet.nth;
  net.end = packet.end;
  take_channel_packet(channel, net, rtp);
}

template <class Host>
void UbEngine<Host>::on_compact(uint32_t link, const wire::CompactPacket& packet) {
  const uint32_t channel = setup::channel_of_tpn(s_, packet.dcna);
  if (channel == 0) return s_.drop(Counter::kRxDropUnknownTpn);
  tp::Channel& ch = s_.channels[channel];
  if (!ch.compact || ch.peer_tpn != packet.scna || ch.link != link) return s_.drop(Counter::kRxDropWrongPeer);
  if (ch.icrc && !wire::icrc_matches(packet)) return s_.drop(Counter::kRxDropBadIcrc);
  if (!may_carry_data(channel)) return s_.drop(Counter::kRxDropUnknownTpn);
  if (packet.ctp.opcode != wire::CtpOpcode::kData) return s_.drop(Counter::kRxDropBadTpOpcode);
  if (packet.ctp.nlp != wire::kNlpTransaction) return s_.drop(Counter::kRxDropBadNlp);
  ch.heard_at = s_.now;
  ++ch.rx_packets;
  packet_receiver().on_compact(channel, packet);
}

// A half-open channel becomes open by its first packet, unless REPs with different MTUs went out: then only CONF tells
// which MTU is agreed.
template <class Host>
bool UbEngine<Host>::may_carry_data(uint32_t channel) {
  const tp::Channel& ch = s_.channels[channel];
  if (ch.state == tp::ChannelState::kOpen) return true;
  if (ch.state != tp::ChannelState::kHalfOpen || ch.several_mtus) return false;
  setup::open_channel(s_, channel);
  return true;
}

// ---- the rest --------------------------------------------------------------------------------------------------

template <class Host>
bool UbEngine<Host>::on_posted(ObjectKind kind, uint32_t record) {
  if (kind != ObjectKind::kJetty && kind != ObjectKind::kJfs) return false;
  const uint32_t queue = s_.jettys[record].queue;
  if (!run_mapped(queue)) [[likely]]
    ta::schedule_queue(s_, queue);
  return true;
}

// Carries out what needs no packets. True: nothing is left. Who looks at packets or writes down what enters the Core
// wants to have all requests.
template <class Host>
bool UbEngine<Host>::run_mapped(uint32_t queue) {
  if constexpr (ta::MapsMemory<Host>) {
    if (s_.mapped.in_use() != 0 && !s_.is_observed()) [[unlikely]]
      return ta::MappedRequests<Host>(s_, host_).run(queue);
  }
  return false;
}

template <class Host>
bool UbEngine<Host>::send_straight(ObjectKind kind, uint32_t record, size_t budget, size_t* sent) {
  if (kind != ObjectKind::kJetty && kind != ObjectKind::kJfs) [[unlikely]]
    return false;
  const uint32_t queue = s_.jettys[record].queue;
  if (run_mapped(queue)) return true;
  if (has_packets(Acks::kNow) || s_.acks_found_no_room) [[unlikely]]
    return false;
  return straight_sender().send_posted(queue, budget, sent);
}

template <class Host>
bool UbEngine<Host>::on_copy_done(CopyTag tag, bool ok) {
  const ta::CopyPurpose purpose = ta::purpose_of(tag);
  if (purpose.kind == ta::CopyKind::kDatagram) {
    datagram_receiver().on_placed(ta::datagram_copy_of(tag), ok);
  } else {
    packet_receiver().on_placed(purpose, ok);
  }
  return true;
}

template <class Host>
bool UbEngine<Host>::on_gathered(const HeldFrame& h) {
  if (s_.held_datagrams.numbers.contains(h.home)) {
    datagram_sender().on_gathered(h);
    return true;
  }
  if (!s_.held_homes.contains(h.home)) return false;
  tp::on_gathered(s_, h, s_.now);
  return true;
}

template <class Host>
bool UbEngine<Host>::on_timer(uint32_t timer) {
  if (s_.queue_timers.contains(timer)) {
    ta::on_queue_timer(s_, s_.queue_timers.index_of(timer));
    return true;
  }
  if (!s_.channel_timers.contains(timer)) return false;
  const uint32_t channel = s_.channel_timers.index_of(timer);
  setup::on_channel_timer(s_, channel);
  if (s_.channels[channel].is_up()) packet_receiver().on_timer(channel);
  return true;
}

template <class Host>
size_t UbEngine<Host>::poll_packets(size_t budget, Acks acks) {
  size_t sent = s_.outbox_head != s_.outbox_tail ? record_sender().send(budget) : 0;
  if (s_.acks_found_no_room) [[unlikely]]
    sent += transmitter().send_acks(acks, s_.now);
  sent += poll_requests(budget - sent);
  if (!s_.owing_acks.empty()) sent += transmitter().send_acks(acks, s_.now);
  return sent;
}

// Channels and datagrams take turns at going first, so that neither can use up the budget every time.
template <class Host>
size_t UbEngine<Host>::poll_requests(size_t budget) {
  if (s_.active_links.empty()) return packet_sender().send(budget);
  s_.datagrams_first = !s_.datagrams_first;
  if (s_.datagrams_first) {
    size_t sent = datagram_sender().send(budget);
    return sent + packet_sender().send(budget - sent);
  }
  size_t sent = packet_sender().send(budget);
  return sent + datagram_sender().send(budget - sent);
}

template <class Host>
bool UbEngine<Host>::has_packets(Acks acks) const {
  if (acks == Acks::kNow && !s_.owing_acks.empty()) return true;
  return !s_.active.empty() || !s_.active_links.empty() || s_.outbox_head != s_.outbox_tail;
}

template <class Host>
void UbEngine<Host>::link_down(uint32_t link) {
  setup::link_down(s_, link);
}
template <class Host>
void UbEngine<Host>::close_owner(Owner owner) {
  setup::close_owner(s_, owner);
}
template <class Host>
void UbEngine<Host>::close() {
  setup::close_all(s_);
}

}  // namespace ub
