// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/cm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/transport/roce/qp.h"

namespace ub::roce {
namespace {

constexpr size_t kOwnPrivateData = CmReq::kPrivateDataSize - CmIpHeader::kSize;  // of a REQ, for the application
constexpr uint32_t kBacklog = 128;  // requests of a listener that wait for the application
constexpr uint8_t kRnrTimer = 12;   // 0.64 ms
constexpr uint8_t kMaxTimeout = 31;
constexpr uint8_t kLongestAsked = 20;  // acknowledgement timeout that a REQ may ask for: 4.3 s, eight times

// ---- names -------------------------------------------------------------------------------------------------------
// A communication id is the record and which use of it.

uint32_t id_of(const State& r, uint32_t record) { return r.connections[record].generation << 16 | record; }

uint32_t record_of(const State& r, uint32_t id) {
  const uint32_t record = id & 0xFFFF;
  if (record == 0 || record > r.connections.high_water()) return 0;
  const Connection& c = r.connections[record];
  return c.in_use && id_of(r, record) == id ? record : 0;
}

uint32_t& bucket_of(State& r, uint32_t remote_comm_id) {
  return r.requesters[remote_comm_id * 0x9E3779B1u >> 22 & (kRequesterBuckets - 1)];
}

/// The connection that a REQ of that sender began.
uint32_t find_requester(State& r, const Gid& peer, uint32_t remote_comm_id) {
  for (uint32_t i = bucket_of(r, remote_comm_id); i != 0; i = r.connections[i].next_in_bucket) {
    const Connection& c = r.connections[i];
    if (c.requester_id == remote_comm_id && c.path.dgid == peer) return i;
  }
  return 0;
}

uint32_t add_connection(CoreState& s, State& r) {
  const uint32_t record = r.connections.alloc();
  if (record == 0) return 0;
  Connection& c = r.connections[record];
  const uint32_t generation = c.generation;
  c = Connection{};
  c.generation = generation == 0 ? s.prng.next_u32() & 0xFFFF : (generation + 1) & 0xFFFF;
  c.in_use = true;
  return record;
}

/// The queue pair may have another connection.
void release_qp(const CoreState& s, State& r, uint32_t record) {
  const uint32_t qp = find_qp(s, r.connections[record].qpn);
  if (qp != 0 && r.qps[qp].connection == record) r.qps[qp].connection = 0;
}

/// The request is answered, or gone.
void stop_waiting(State& r, Connection& c) {
  if (std::exchange(c.waits, false)) --r.listeners[c.listener].waiting;
}

void drop_connection(CoreState& s, State& r, uint32_t record) {
  Connection& c = r.connections[record];
  s.timers.cancel(timer_of_connection(s, record));
  if (c.requester_id != 0) {
    uint32_t* at = &bucket_of(r, c.requester_id);
    while (*at != record) at = &r.connections[*at].next_in_bucket;
    *at = c.next_in_bucket;
  }
  release_qp(s, r, record);
  stop_waiting(r, c);
  c.in_use = false;
  r.connections.free(record);
}

// ---- out ---------------------------------------------------------------------------------------------------------

void send_mad(CoreState& s, State& r, const AhAttributes& path, std::span<const std::byte, kMadSize> mad) {
  if (r.mad_tail - r.mad_head == kMadRing) return s.count(Counter::kRoceMadsLost);
  OutgoingMad& out = r.mads[r.mad_tail++ % kMadRing];
  out.path = path;
  std::copy(mad.begin(), mad.end(), out.mad.begin());
}

void refuse(CoreState& s, State& r, const AhAttributes& back, const CmHead& head, uint32_t remote_comm_id,
            RejReason reason) {
  std::array<std::byte, kMadSize> mad;
  refuse_request(head, remote_comm_id, reason, std::span(mad));
  send_mad(s, r, back, mad);
}

bool events_full(const State& r) { return r.event_tail - r.event_head == r.event_room; }

/// Anybody may ask to connect: most of the room is for what becomes of the others.
bool room_for_request(const State& r) { return r.event_tail - r.event_head < r.event_room / 3; }

void tell(CoreState& s, State& r, uint32_t record, ConnectionEventKind kind, const ConnectionEvent& what,
          PrivateData data = {}) {
  const Connection& c = r.connections[record];
  if (events_full(r)) return s.count(Counter::kEventsLost);
  ConnectionEvent& e = r.connection_events[r.event_tail++ % r.event_room];
  e = what;
  e.kind = kind;
  e.owner = c.owner;
  e.connection = id_of(r, record);
  e.cookie = c.cookie;
  e.remote_qpn = c.cm.remote_qpn;
  e.path = c.path;
  e.local_port = c.local_port;
  e.remote_port = c.remote_port;
  e.private_data_bytes = static_cast<uint8_t>(std::min(data.size(), e.private_data.size()));
  std::copy_n(data.begin(), e.private_data_bytes, e.private_data.begin());
  push_event(s, EventKind::kConnection, c.cookie, c.owner);
}

void fail_qp(CoreState& s, State& r, const Connection& c) {
  const uint32_t qp = find_qp(s, c.qpn);
  if (qp == 0 || r.qps[qp].state < QpState::kRtr) return;
  QpAttributes error;
  error.qp_state = QpState::kError;
  (void)modify_qp(s, r, c.qpn, error, 0);
}

/// The peer is out of reach, or has forgotten it.
void lose_connection(CoreState& s, State& r, uint32_t record) {
  const Connection& c = r.connections[record];
  const bool told = c.cm.state == CmState::kTimeWait || c.cm.state == CmState::kReqReceived;
  if (!told) {
    const bool was = c.cm.state == CmState::kEstablished || c.cm.state == CmState::kDreqSent;
    fail_qp(s, r, c);
    tell(s, r, record, was ? ConnectionEventKind::kDisconnected : ConnectionEventKind::kUnreachable, {});
  }
  drop_connection(s, r, record);
}

/// What a step of the connection asks for, but for what its event tells the application.
void carry_out(CoreState& s, State& r, uint32_t record, const CmStep& step) {
  Connection& c = r.connections[record];
  if (step.send) send_mad(s, r, c.path, c.cm.mad);
  if (!c.cm.deadline.is_never()) s.timers.arm(timer_of_connection(s, record), c.cm.deadline);
  if (c.cm.state == CmState::kTimeWait) release_qp(s, r, record);
  if (c.cm.state == CmState::kClosed) drop_connection(s, r, record);
}

// ---- the queue pair ----------------------------------------------------------------------------------------------

bool may_connect(const CoreState& s, const State& r, uint32_t qpn) {
  const uint32_t qp = find_qp(s, qpn);
  return qp != 0 && r.qps[qp].type == QpType::kRc && r.qps[qp].state == QpState::kInit && r.qps[qp].connection == 0;
}

bool bring_up(CoreState& s, State& r, const Connection& c) {
  QpAttributes a;
  a.qp_state = QpState::kRtr;
  a.ah_attr = c.path;
  a.path_mtu = c.path_mtu;
  a.dest_qp_num = c.cm.remote_qpn;
  a.rq_psn = c.local_psn.value();
  a.max_dest_rd_atomic = c.responder_resources;
  a.min_rnr_timer = kRnrTimer;
  if (modify_qp(s, r, c.qpn, a, kQpPath | kQpMtu | kQpDestination | kQpReceivePsn | kQpReadsServed | kQpRnrTimer) !=
      Status::kOk) {
    return false;
  }
  a.qp_state = QpState::kRts;
  a.sq_psn = c.remote_psn.value();
  a.timeout = c.timeout;
  a.retry_cnt = c.retry_count;
  a.rnr_retry = c.rnr_retry;
  a.max_rd_atomic = c.initiator_depth;
  return modify_qp(s, r, c.qpn, a, kQpSendPsn | kQpTimeout | kQpRetries | kQpRnrRetries | kQpReadsInFlight) ==
         Status::kOk;
}

// ---- in ----------------------------------------------------------------------------------------------------------

uint32_t find_listener(const State& r, uint16_t port, const Gid& address) {
  for (uint32_t i = 1; i <= r.listeners.high_water(); ++i) {
    const Listener& l = r.listeners[i];
    const bool any = l.config.address == Gid{};
    if (l.in_use && l.config.port == port && (any || l.config.address == address)) return i;
  }
  return 0;
}

/// Does the REQ that began the connection come again? Else its sender has started anew, and begins with the same id.
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
    return s.count(drop_counter(drop));
  }
  const auto port = static_cast<uint16_t>(req.service_id);
  const uint32_t listener = find_listener(r, port, back.sgid);
  if (listener == 0) return no(RejReason::kInvalidServiceId);
  if (req.transport != 0) return no(RejReason::kInvalidTransport);
  const uint32_t mtu = mtu_of_code(req.path_mtu_code);
  if (mtu == 0 || mtu > s.links[back.link].config.mtu) return no(RejReason::kInvalidMtu);
  const bool full = r.listeners[listener].waiting == kBacklog || !room_for_request(r);
  if (req.local_comm_id == 0 || full) return s.count(Counter::kRoceRxDropCm);  // it comes again
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
  c.requester_id = req.local_comm_id;
  c.next_in_bucket = bucket_of(r, c.requester_id);
  bucket_of(r, c.requester_id) = record;
  c.remote_psn = req.starting_psn;
  c.local_port = port;
  c.remote_port = addresses.source.port;
  c.path_mtu = req.path_mtu_code;
  c.responder_resources = req.initiator_depth;  // until accept(): what the peer would have of each
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

/// The peer agrees: our queue pair gets ready, and we say so.
void on_accepted(CoreState& s, State& r, uint32_t record, const CmRep& rep) {
  Connection& c = r.connections[record];
  c.remote_psn = rep.starting_psn;
  c.initiator_depth = std::min(c.initiator_depth, rep.responder_resources);
  c.rnr_retry = rep.rnr_retry;
  if (!bring_up(s, r, c)) {  // the application did something with it meanwhile
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
  if (drop != Drop::kNone) s.count(drop_counter(drop));
  if (drop == Drop::kBadCmVersion && head.type == CmType::kReq) {
    refuse(s, r, back, head, CmReq::read(mad.data() + kMadHeadSize).local_comm_id, RejReason::kInvalidClassVersion);
  }
  if (drop != Drop::kNone) return;
  const std::byte* body = mad.data() + kMadHeadSize;
  if (head.type == CmType::kReq) return on_request(s, r, back, head, body);
  // All others begin with both communication ids, the sender's first.
  const uint32_t sender = load_be32(body), ours = load_be32(body + 4);
  const uint32_t record = record_of(r, ours);
  if (record != 0 && from_peer(r.connections[record], back, head.type, sender)) {
    return conclude(s, r, record, on_message(r.connections[record].cm, s.now, r.times, head.type, body), head.type,
                    body);
  }
  s.count(Counter::kRoceRxDropCm);
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

// ---- from the application ------------------------------------------------------------------------------------------

Status listen(State& r, const ListenConfig& config, uint32_t* listener) {
  if (config.port == 0) return Status::kInvalid;
  for (uint32_t i = 1; i <= r.listeners.high_water(); ++i) {
    const Listener& l = r.listeners[i];
    const bool meet = l.config.address == config.address || l.config.address == Gid{} || config.address == Gid{};
    if (l.in_use && l.config.port == config.port && meet) return Status::kExists;
  }
  const uint32_t index = r.listeners.alloc();
  if (index == 0) return Status::kNoMemory;
  r.listeners[index] = {config, true, 0};
  *listener = index;
  return Status::kOk;
}

Status stop_listening(CoreState& s, State& r, uint32_t listener) {
  if (listener == 0 || listener > r.listeners.high_water() || !r.listeners[listener].in_use) return Status::kInvalid;
  for (uint32_t i = 1; i <= r.connections.high_water(); ++i) {
    Connection& c = r.connections[i];
    if (!c.in_use || c.listener != listener || c.cm.state != CmState::kReqReceived) continue;
    carry_out(s, r, i, reject(c.cm, RejReason::kInvalidServiceId));
  }
  r.listeners[listener].in_use = false;
  r.listeners.free(listener);
  return Status::kOk;
}

Status connect(CoreState& s, State& r, const ConnectConfig& config, uint32_t* connection) {
  const AhAttributes& path = config.path;
  const bool link_up = path.link != 0 && path.link <= s.links.high_water() && s.links[path.link].up;
  const uint32_t mtu = mtu_of_code(config.path_mtu);
  if (!may_connect(s, r, config.qpn) || !link_up || mtu == 0 || mtu > s.links[path.link].config.mtu ||
      config.remote_port == 0 || config.responder_resources > kMaxReadSlots || config.initiator_depth > kMaxReadSlots ||
      config.timeout > kMaxTimeout || config.retry_count > 7 || config.rnr_retry > 7 ||
      config.private_data.size() > kOwnPrivateData) {
    return Status::kInvalid;
  }
  const uint32_t record = add_connection(s, r);
  if (record == 0) return Status::kNoMemory;
  Connection& c = r.connections[record];
  Qp& qp = r.qps[find_qp(s, config.qpn)];
  qp.connection = record;
  c.path = path;
  c.cookie = config.cookie;
  c.owner = qp.owner;
  c.qpn = config.qpn;
  c.local_psn = Psn(s.prng.next_u32());
  c.local_port = config.local_port;
  c.remote_port = config.remote_port;
  c.path_mtu = config.path_mtu;
  c.responder_resources = config.responder_resources;
  c.initiator_depth = config.initiator_depth;
  c.timeout = config.timeout;
  c.retry_count = config.retry_count;

  std::array<std::byte, CmReq::kPrivateDataSize> data{};
  CmIpHeader{{path.sgid, config.local_port}, path.dgid}.write(data.data());
  std::copy(config.private_data.begin(), config.private_data.end(), data.begin() + CmIpHeader::kSize);
  CmReq req;
  req.local_comm_id = id_of(r, record);
  req.service_id = service_id_of_port(config.remote_port);
  req.ca_guid = load_be64(reinterpret_cast<const std::byte*>(path.sgid.bytes.data()) + 8);
  req.qpn = config.qpn;
  req.responder_resources = config.responder_resources;
  req.initiator_depth = config.initiator_depth;
  req.flow_control = true;
  req.starting_psn = c.local_psn;
  req.retry_count = config.retry_count;
  req.path_mtu_code = config.path_mtu;
  req.rnr_retry = config.rnr_retry;
  req.srq = qp.srq;
  req.local_gid = path.sgid;
  req.remote_gid = path.dgid;
  req.traffic_class = path.traffic_class;
  req.ack_timeout = config.timeout;
  req.private_data = data;
  *connection = id_of(r, record);
  carry_out(s, r, record, connect(c.cm, s.now, r.times, req, uint64_t{r.next_transaction++} << 32 | req.local_comm_id));
  return Status::kOk;
}

Status accept_connection(CoreState& s, State& r, uint32_t connection, const AcceptConfig& config) {
  const uint32_t record = record_of(r, connection);
  if (record == 0 || !may_connect(s, r, config.qpn) || config.private_data.size() > CmRep::kPrivateDataSize ||
      config.rnr_retry > 7) {
    return Status::kInvalid;
  }
  Connection& c = r.connections[record];
  if (c.cm.state != CmState::kReqReceived) return Status::kInvalid;
  const uint8_t most_served = c.responder_resources, most_in_flight = c.initiator_depth;
  c.qpn = config.qpn;
  c.responder_resources = std::min({config.responder_resources, most_served, kMaxReadSlots});
  c.initiator_depth = std::min({config.initiator_depth, most_in_flight, kMaxReadSlots});
  c.local_psn = Psn(s.prng.next_u32());
  if (!bring_up(s, r, c)) {
    c.qpn = 0;
    c.responder_resources = most_served;
    c.initiator_depth = most_in_flight;
    return Status::kInvalid;
  }
  Qp& qp = r.qps[find_qp(s, config.qpn)];
  qp.connection = record;
  stop_waiting(r, c);
  c.cookie = config.cookie;
  CmRep rep;
  rep.qpn = config.qpn;
  rep.starting_psn = c.local_psn;
  rep.responder_resources = c.responder_resources;
  rep.initiator_depth = c.initiator_depth;
  rep.flow_control = true;
  rep.rnr_retry = config.rnr_retry;
  rep.srq = qp.srq;
  rep.ca_guid = load_be64(reinterpret_cast<const std::byte*>(c.path.sgid.bytes.data()) + 8);
  rep.private_data = config.private_data;
  carry_out(s, r, record, accept(c.cm, s.now, r.times, rep));
  return Status::kOk;
}

Status reject_connection(CoreState& s, State& r, uint32_t connection, PrivateData private_data) {
  const uint32_t record = record_of(r, connection);
  if (record == 0 || private_data.size() > CmRej::kPrivateDataSize) return Status::kInvalid;
  Connection& c = r.connections[record];
  if (c.cm.state != CmState::kReqReceived) return Status::kInvalid;
  carry_out(s, r, record, reject(c.cm, RejReason::kConsumer, private_data));
  return Status::kOk;
}

Status disconnect(CoreState& s, State& r, uint32_t connection) {
  const uint32_t record = record_of(r, connection);
  if (record == 0) return Status::kInvalid;
  part(s, r, record);
  return Status::kOk;
}

void part(CoreState& s, State& r, uint32_t record) {
  Connection& c = r.connections[record];
  fail_qp(s, r, c);
  if (c.cm.state == CmState::kReqSent) {
    drop_connection(s, r, record);
  } else if (c.cm.state == CmState::kReqReceived) {
    carry_out(s, r, record, reject(c.cm, RejReason::kConsumer));
  } else {
    carry_out(s, r, record, disconnect(c.cm, s.now, r.times));
  }
}

size_t take_connection_events(State& r, std::span<ConnectionEvent> out) {
  size_t n = 0;
  while (n < out.size() && r.event_head != r.event_tail) out[n++] = r.connection_events[r.event_head++ % r.event_room];
  return n;
}

}  // namespace ub::roce
