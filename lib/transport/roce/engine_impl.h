// SPDX-License-Identifier: Apache-2.0
// engine_impl.h - the definitions of Engine<Host>; for core_impl.h alone.
#pragma once

#include "lib/transport/looking/call_log.h"
#include "lib/transport/roce/cm.h"
#include "lib/transport/roce/datagram.h"
#include "lib/transport/roce/engine.h"
#include "lib/transport/roce/executor.h"
#include "lib/transport/roce/held_packets.h"
#include "lib/transport/roce/transmitter.h"
#include "lib/transport/roce/unreliable.h"
#include "lib/transport/roce/wire/icrc.h"

namespace ub::roce {

template <class Host>
size_t Engine<Host>::work_bytes(uint32_t depth) {
  return std::bit_ceil(depth) * kWorkBytes;
}

// ---- queue pairs ---------------------------------------------------------------------------------------------------

template <class Host>
Status Engine<Host>::create_qp(const QpConfig& config, uint32_t* qpn) {
  QpConfig lent = config;
  lent.sq = with_rings(s_.call_log, config.sq);
  LoggedCall call(s_.call_log, Call::kCreateQp, lent);
  return call.gives(roce::create_qp(s_, r_, lent, qpn), *qpn);
}
template <class Host>
Status Engine<Host>::modify_qp(Instant now, uint32_t qpn, const QpAttributes& attributes, uint32_t mask) {
  LoggedCall call(s_.call_log, Call::kModifyQp, now, qpn, attributes, mask);
  s_.now = now;
  return call.gives(roce::modify_qp(s_, r_, qpn, attributes, mask));
}
template <class Host>
Status Engine<Host>::query_qp(uint32_t qpn, QpAttributes* attributes) const {
  return roce::query_qp(s_, r_, qpn, attributes);
}
template <class Host>
Status Engine<Host>::destroy_qp(Instant now, uint32_t qpn) {
  LoggedCall call(s_.call_log, Call::kDestroyQp, now, qpn);
  s_.now = now;
  return call.gives(roce::destroy_qp(s_, r_, qpn));
}

template <class Host>
Status Engine<Host>::create_ah(const AddressHandleConfig& config, uint32_t* ah) {
  LoggedCall call(s_.call_log, Call::kCreateAh, config);
  return call.gives(roce::create_ah(s_, r_, config, ah), *ah);
}
template <class Host>
Status Engine<Host>::destroy_ah(uint32_t ah) {
  LoggedCall call(s_.call_log, Call::kDestroyAh, ah);
  return call.gives(roce::destroy_ah(r_, ah));
}

// ---- connections ---------------------------------------------------------------------------------------------------

template <class Host>
Status Engine<Host>::listen(const ListenConfig& config, uint32_t* listener) {
  LoggedCall call(s_.call_log, Call::kListen, config);
  return call.gives(roce::listen(r_, config, listener), *listener);
}
template <class Host>
Status Engine<Host>::stop_listening(Instant now, uint32_t listener) {
  LoggedCall call(s_.call_log, Call::kStopListening, now, listener);
  s_.now = now;
  return call.gives(roce::stop_listening(s_, r_, listener));
}
template <class Host>
Status Engine<Host>::connect(Instant now, const ConnectConfig& config, uint32_t* connection) {
  LoggedCall call(s_.call_log, Call::kConnect, now, config, config.private_data);
  s_.now = now;
  return call.gives(roce::connect(s_, r_, config, connection), *connection);
}
template <class Host>
Status Engine<Host>::accept(Instant now, uint32_t connection, const AcceptConfig& config) {
  LoggedCall call(s_.call_log, Call::kAccept, now, connection, config, config.private_data);
  s_.now = now;
  return call.gives(accept_connection(s_, r_, connection, config));
}
template <class Host>
Status Engine<Host>::reject(Instant now, uint32_t connection, PrivateData private_data) {
  LoggedCall call(s_.call_log, Call::kReject, now, connection, private_data);
  s_.now = now;
  return call.gives(reject_connection(s_, r_, connection, private_data));
}
template <class Host>
Status Engine<Host>::disconnect(Instant now, uint32_t connection) {
  LoggedCall call(s_.call_log, Call::kDisconnect, now, connection);
  s_.now = now;
  return call.gives(roce::disconnect(s_, r_, connection));
}
template <class Host>
size_t Engine<Host>::poll_connection_events(std::span<ConnectionEvent> out) {
  LoggedCall call(s_.call_log, Call::kPollConnectionEvents, out.size());
  return call.gives(take_connection_events(r_, out));
}

// ---- packets -------------------------------------------------------------------------------------------------------

template <class Host>
void Engine<Host>::on_packet(uint32_t link, const wire::NetHeader& net) {
  s_.count(Counter::kRoceRxPackets);
  Packet packet;
  Drop drop = net.tp_size() < Bth::kSize  ? Drop::kTooShort
              : !has_good_icrc(link, net) ? Drop::kBadIcrc
                                          : parse_packet(net.tph, net.end, packet);
  if (drop != Drop::kNone) s_.drop(drop_counter(drop));
  if (drop == Drop::kTooShort || drop == Drop::kBadIcrc) return;
  if (drop != Drop::kNone && !is_invalid_request(drop, packet)) return;
  if (packet.bth.dest_qp == kGsiQp) return on_management(link, net, packet);
  const uint32_t index = find_qp(s_, packet.bth.dest_qp);
  if (index == 0) return s_.drop(Counter::kRoceRxDropUnknownQp);
  Qp& qp = r_.qps[index];
  if (!admits(qp, net, packet)) return;
  if (packet.has(kShapeCnp)) return on_congestion(index);
  if (net.ecn() == wire::kEcnCe && s_.config.roce.dcqcn) owe_cnp(index);
  ++qp.rx_packets;
  note_step<Host>(s_, Stage::kQpPacketArrived, qp.qpn, packet.bth.psn.value(),
                  static_cast<uint32_t>(packet.bth.opcode));
  if (qp.fresh) {
    qp.fresh = false;
    if (qp.connection != 0) on_first_packet(s_, r_, qp.connection);
  }
  if (qp.type == QpType::kUd) return deliver_datagram(s_, r_, host_, index, packet, net);
  if (qp.type == QpType::kUc) return unreliable().on_request(index, packet, {net.tph, net.tp_size()});
  if (drop == Drop::kNone && !packet.has(kShapeRequest)) return executor().on_answer(index, packet);
  executor().on_request(index, drop, packet, {net.tph, net.tp_size()});
}

template <class Host>
bool Engine<Host>::has_good_icrc(uint32_t link, const wire::NetHeader& net) const {
  return s_.links[link].config.identification_lost ? icrc_fits_some_identification(net) : icrc_fits(net);
}

template <class Host>
void Engine<Host>::on_management(uint32_t link, const wire::NetHeader& net, const Packet& packet) {
  if (!packet.has(kShapeDeth)) return s_.drop(Counter::kRoceRxDropWrongTransport);
  if (packet.deth.qkey != kGsiQkey) return s_.drop(Counter::kRoceRxDropBadQkey);
  note_of<Host>(s_, Stage::kMadArrived, link);
  const AhAttributes back{link, net.dst.ip, net.src.ip, 0};
  on_mad(s_, r_, back, {packet.payload, packet.payload_bytes});
}

template <class Host>
bool Engine<Host>::admits(const Qp& qp, const wire::NetHeader& net, const Packet& packet) {
  const auto refuse = [this](Counter why) {
    s_.drop(why);
    return false;
  };
  constexpr Transport kOfType[] = {Transport::kRc, Transport::kUc, Transport::kUd};
  const Transport transport = transport_of(packet.bth.opcode);
  if (transport != kOfType[static_cast<uint8_t>(qp.type)] && transport != Transport::kCnp) {
    return refuse(Counter::kRoceRxDropWrongTransport);
  }
  if (!receives(qp.state)) return refuse(Counter::kRoceRxDropWrongState);
  constexpr uint16_t kPartition = 0x7FFF;  // the upper bit says whether the sender is a full or a limited member
  if ((packet.bth.pkey & kPartition) != (kDefaultPkey & kPartition)) return refuse(Counter::kRoceRxDropBadPkey);
  // The link does not matter: two processes that find each other at the same time have two links.
  const bool has_peer = qp.type != QpType::kUd || transport == Transport::kCnp;  // of UD: where its last datagram went
  if (has_peer && (net.src.ip != qp.path.dgid || net.dst.ip != qp.path.sgid)) {
    return refuse(Counter::kRoceRxDropWrongPeer);
  }
  return true;
}

template <class Host>
void Engine<Host>::on_congestion(uint32_t qp) {
  s_.count(Counter::kRoceRxCnp);
  if (!has_flow(r_.qps[qp])) return;
  tell_marked(s_, r_, qp);
}

// A packet of the peer met congestion. The peer is told so, but not more often than the interval allows.
template <class Host>
void Engine<Host>::owe_cnp(uint32_t index) {
  Qp& qp = r_.qps[index];
  if (qp.type == QpType::kUd || !cc::is_to_be_told(s_.config.congestion.dcqcn, qp.next_cnp, s_.now)) return;
  qp.owes_cnp = true;
  activate(r_, index);
}

template <class Host>
bool Engine<Host>::on_posted(ObjectKind kind, uint32_t record) {
  if (kind != ObjectKind::kQp) return false;
  const Qp& qp = r_.qps[record];
  if (sends(qp.state)) {
    activate(r_, record);
  } else if (flushes_sends(qp.state)) {
    retire_requests(s_, r_, record);
    if (qp.state == QpState::kError && !qp.srq && qp.copies_pending == 0) flush_receives(s_, qp.jfr);
  }
  return true;
}

template <class Host>
bool Engine<Host>::on_copy_done(CopyTag tag, bool ok) {
  if (copy_prefix_of(tag) != r_.copy_prefix || !is_on()) return false;
  const CopyPurpose purpose = purpose_of(tag);
  switch (purpose.what) {
    case CopyFor::kPlace:
      on_placed(purpose.qp, ok);
      break;
    case CopyFor::kResponse:
      on_response_placed(s_, r_, purpose.qp, purpose.number, ok);
      break;
  }
  return true;
}

template <class Host>
bool Engine<Host>::on_gathered(const HeldFrame& h) {
  if (!r_.held_homes.contains(h.home)) return false;
  roce::on_gathered(s_, r_, h);
  return true;
}

template <class Host>
void Engine<Host>::on_placed(uint32_t index, bool ok) {
  if (!roce::on_placed(s_, r_, index, ok)) return;
  if (r_.qps[index].type == QpType::kUc) return unreliable().resume(index);
  executor().resume(index);
}

template <class Host>
bool Engine<Host>::on_timer(uint32_t timer) {
  if (r_.qp_timers.contains(timer)) {
    on_qp_timer(s_, r_, r_.qp_timers.index_of(timer));
    return true;
  }
  if (!r_.connection_timers.contains(timer)) return false;
  on_connection_timer(s_, r_, r_.connection_timers.index_of(timer));
  return true;
}

template <class Host>
size_t Engine<Host>::poll_packets(size_t budget, Acks) {
  return transmitter().send(budget);
}

template <class Host>
bool Engine<Host>::has_packets(Acks) const {
  return is_on() && (!r_.active.empty() || r_.mad_head != r_.mad_tail);
}

template <class Host>
void Engine<Host>::close() {
  for (uint32_t record = 1; record <= r_.connections.high_water(); ++record) {
    if (!r_.connections[record].in_use) continue;
    part(s_, r_, record);
    (void)transmitter().send(1);  // makes room for the next goodbye
  }
}

// A queue pair of UD needs the links of the datagrams that it holds; its path only is that of its last datagram.
template <class Host>
bool Engine<Host>::needs_link(const Qp& qp, uint32_t link) const {
  if (qp.type != QpType::kUd) return qp.path.link == link;
  bool found = false;
  s_.held.each(qp.held_requests, [&](const HeldFrame& h) { found |= h.link == link; });
  return found;
}

template <class Host>
void Engine<Host>::link_down(uint32_t link) {
  drop_connections(s_, r_, link);
  for (uint32_t i = 1; i <= r_.qps.high_water(); ++i) {
    const Qp& qp = r_.qps[i];
    if (!qp.in_use || !needs_link(qp, link) || qp.state < QpState::kRtr) continue;
    if (qp.type == QpType::kUc && qp.state != QpState::kError) {
      break_down(s_, r_, i, qp.req.head, CrStatus::kSuccess);
    } else {
      fail_requests(s_, r_, i, qp.req.head, qp.req.head == qp.req.tail ? CrStatus::kSuccess : CrStatus::kAckTimeout);
    }
    s_.held.release_orphans(host_);
  }
}

}  // namespace ub::roce
