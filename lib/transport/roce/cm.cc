// SPDX-License-Identifier: Apache-2.0
// cm.cc - what comes in: messages, time, the first packets of peers, and the end of links and queue pairs.
#include "lib/transport/roce/cm.h"

#include <algorithm>

#include "lib/transport/roce/cm_table.h"

namespace ub::roce {
namespace {

constexpr uint32_t kBacklog = 128;     // most requests of a listener that wait for the application
constexpr uint8_t kLongestAsked = 20;  // largest acknowledgement timeout that a REQ may ask for: 4.3 s, eight times

void refuse(CoreState& s, State& r, const AhAttributes& back, const CmHead& head, uint32_t remote_comm_id,
            RejReason reason) {
  std::array<std::byte, kMadSize> mad;
  refuse_request(head, remote_comm_id, reason, std::span(mad));
  send_mad(s, r, back, mad);
}

uint32_t find_listener(const State& r, uint16_t port, const Gid& address) {
  for (uint32_t i = 1; i <= r.listeners.high_water(); ++i) {
    const Listener& l = r.listeners[i];
    const bool any = l.config.address == Gid{};
    if (l.in_use && l.config.port == port && (any || l.config.address == address)) return i;
  }
  return 0;
}

/// Does the REQ that began the connection come again? If not, its sender has started anew, and begins with the same id.
bool is_repetition(const Connection& c, const CmReq& req) {
  return c.cm.remote_qpn == req.qpn && c.remote_psn == req.starting_psn;
}

void on_request(CoreState& s, State& r, const AhAttributes& back, const CmHead& head, const std::byte* body) {
  const CmReq req = CmReq::read(body);
  const auto no = [&](RejReason reason) { refuse(s, r, back, head, req.local_comm_id, reason); };
  const uint32_t known = find_requester(r, back.dgid, req.local_comm_id);
  if (known != 0 && is_repetition(r.connections[known], req)) {
    return carry_out(s, r, known, on_message(r.connections[known].cm, s.now, r.times, CmType::kReq, body));
  }
  if (known != 0) {
    lose_connection(s, r, known);
    return no(RejReason::kStaleConnection);
  }
  CmIpHeader addresses;
  if (!is_tcp_service(req.service_id)) return no(RejReason::kInvalidServiceId);
  if (const Drop drop = CmIpHeader::read(req.private_data, addresses); drop != Drop::kNone) {
    return s.drop(drop_counter(drop));
  }
  const auto port = static_cast<uint16_t>(req.service_id);
  const uint32_t listener = find_listener(r, port, back.sgid);
  if (listener == 0) return no(RejReason::kInvalidServiceId);
  if (req.transport != 0) return no(RejReason::kInvalidTransport);
  const uint32_t mtu = mtu_of_code(req.path_mtu_code);
  if (mtu == 0 || mtu > s.links[back.link].config.mtu) return no(RejReason::kInvalidMtu);
  const bool full = r.listeners[listener].waiting == kBacklog || !room_for_request(r);
  if (req.local_comm_id == 0 || full) return s.drop(Counter::kRoceRxDropCm);  // its sender repeats it
  const uint32_t record = add_connection(s, r);
  if (record == 0) return no(RejReason::kNoResources);
  Connection& c = r.connections[record];
  c.path = back;
  c.path.traffic_class = req.traffic_class;
  c.listener = listener;
  c.waits = true;
  ++r.listeners[listener].waiting;
  c.cookie = r.listeners[listener].config.cookie;
  c.owner = r.listeners[listener].config.owner;
  name_requester(r, record, req.local_comm_id);
  c.remote_psn = req.starting_psn;
  c.local_port = port;
  c.remote_port = addresses.source.port;
  c.path_mtu = req.path_mtu_code;
  c.responder_resources = req.initiator_depth;  // until accept(): what the peer would like to have of each
  c.initiator_depth = req.responder_resources;
  c.timeout = req.ack_timeout == 0 ? kLongestAsked : std::min(req.ack_timeout, kLongestAsked);
  c.retry_count = req.retry_count;
  c.rnr_retry = req.rnr_retry;
  receive_request(c.cm, head, req, id_of(r, record));
  ConnectionEvent event;
  event.responder_resources = req.responder_resources;
  event.initiator_depth = req.initiator_depth;
  event.path_mtu = req.path_mtu_code;
  tell(s, r, record, ConnectionEventKind::kConnectRequest, event, req.private_data.subspan(CmIpHeader::kSize));
}

/// The peer agrees: our queue pair is prepared, and we say so.
void on_accepted(CoreState& s, State& r, uint32_t record, const CmRep& rep) {
  Connection& c = r.connections[record];
  c.remote_psn = rep.starting_psn;
  c.initiator_depth = std::min(c.initiator_depth, rep.responder_resources);
  c.rnr_retry = rep.rnr_retry;
  if (!bring_up(s, r, c)) {  // the application has changed its state meanwhile
    ConnectionEvent event;
    event.reason = RejReason::kNoQp;
    tell(s, r, record, ConnectionEventKind::kRejected, event);
    return carry_out(s, r, record, reject(c.cm, RejReason::kNoQp));
  }
  const CmStep step = ready(c.cm);
  ConnectionEvent event;
  event.responder_resources = rep.responder_resources;
  event.initiator_depth = rep.initiator_depth;
  tell(s, r, record, ConnectionEventKind::kEstablished, event, rep.private_data);
  carry_out(s, r, record, step);
}

/// Tells the application what a step means, then does what it asks for.
void conclude(CoreState& s, State& r, uint32_t record, const CmStep& step, CmType type, const std::byte* body) {
  Connection& c = r.connections[record];
  switch (step.event) {
    case CmEvent::kNone:
      break;
    case CmEvent::kAccepted:
      return on_accepted(s, r, record, CmRep::read(body));
    case CmEvent::kEstablished:
      tell(s, r, record, ConnectionEventKind::kEstablished, {},
           type == CmType::kRtu && body != nullptr ? CmRtu::read(body).private_data : PrivateData{});
      break;
    case CmEvent::kRejected: {
      const CmRej rej = CmRej::read(body);
      fail_qp(s, r, c);
      ConnectionEvent event;
      event.reason = rej.reason;
      tell(s, r, record, ConnectionEventKind::kRejected, event, rej.private_data);
      break;
    }
    case CmEvent::kUnreachable:
      fail_qp(s, r, c);
      tell(s, r, record, ConnectionEventKind::kUnreachable, {});
      break;
    case CmEvent::kDisconnected:
      fail_qp(s, r, c);
      tell(s, r, record, ConnectionEventKind::kDisconnected, {});
      break;
  }
  carry_out(s, r, record, step);
}

/// Does the message come from the peer of this connection?
bool from_peer(const Connection& c, const AhAttributes& back, CmType type, uint32_t sender) {
  if (c.path.dgid != back.dgid || c.path.link != back.link) return false;
  if (c.cm.remote_comm_id == 0) {
    return type == CmType::kRep || type == CmType::kRej || type == CmType::kMra || type == CmType::kDreq;
  }
  return c.cm.remote_comm_id == sender || (type == CmType::kRej && sender == 0);
}

}  // namespace

void on_mad(CoreState& s, State& r, const AhAttributes& back, std::span<const std::byte> mad) {
  CmHead head;
  const Drop drop = CmHead::read(mad, head);
  if (drop != Drop::kNone) s.drop(drop_counter(drop));
  if (drop == Drop::kBadCmVersion && head.type == CmType::kReq) {
    refuse(s, r, back, head, CmReq::read(mad.data() + kMadHeadSize).local_comm_id, RejReason::kInvalidClassVersion);
  }
  if (drop != Drop::kNone) return;
  const std::byte* body = mad.data() + kMadHeadSize;
  if (head.type == CmType::kReq) return on_request(s, r, back, head, body);
  // All other messages begin with both communication ids, first that of the sender.
  const uint32_t sender = load_be32(body), ours = load_be32(body + 4);
  const uint32_t record = record_of(r, ours);
  if (record != 0 && from_peer(r.connections[record], back, head.type, sender)) {
    return conclude(s, r, record, on_message(r.connections[record].cm, s.now, r.times, head.type, body), head.type,
                    body);
  }
  s.drop(Counter::kRoceRxDropCm);
  if (head.type == CmType::kDreq) {
    std::array<std::byte, kMadSize> answer;
    confirm_disconnect(head, CmDreq::read(body), std::span(answer));
    send_mad(s, r, back, answer);
  }
  if (head.type == CmType::kRep) refuse(s, r, back, head, sender, RejReason::kInvalidCommId);
}

void on_connection_timer(CoreState& s, State& r, uint32_t record) {
  if (record > r.connections.high_water() || !r.connections[record].in_use) return;
  conclude(s, r, record, on_timer(r.connections[record].cm, s.now, r.times), CmType::kRej, nullptr);
}

void on_first_packet(CoreState& s, State& r, uint32_t record) {
  conclude(s, r, record, on_data(r.connections[record].cm), CmType::kRej, nullptr);
}

void forget_qp(CoreState& s, State& r, uint32_t record) {
  Connection& c = r.connections[record];
  c.qpn = 0;
  if (c.cm.state == CmState::kReqSent) return drop_connection(s, r, record);
  carry_out(s, r, record, disconnect(c.cm, s.now, r.times));
}

void drop_connections(CoreState& s, State& r, uint32_t link) {
  for (uint32_t i = 1; i <= r.connections.high_water(); ++i) {
    if (r.connections[i].in_use && r.connections[i].path.link == link) lose_connection(s, r, i);
  }
}

}  // namespace ub::roce
