// SPDX-License-Identifier: Apache-2.0
// cm_calls.cc - what applications ask for: they listen, connect, accept, reject and part.
#include <algorithm>

#include "lib/transport/roce/cm.h"
#include "lib/transport/roce/cm_table.h"
#include "lib/transport/roce/qp.h"

namespace ub::roce {
namespace {

constexpr size_t kOwnPrivateData = CmReq::kPrivateDataSize - CmIpHeader::kSize;  // of a REQ, left to the application
constexpr uint8_t kMaxTimeout = 31;

}  // namespace

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
