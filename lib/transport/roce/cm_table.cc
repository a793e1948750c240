// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/cm_table.h"

#include <algorithm>
#include <utility>

#include "lib/transport/roce/qp.h"

namespace ub::roce {
namespace {

constexpr uint8_t kRnrTimer = 12;  // 0.64 ms

uint32_t& bucket_of(State& r, uint32_t remote_comm_id) {
  return r.requesters[remote_comm_id * 0x9E3779B1u >> 22 & (kRequesterBuckets - 1)];
}

/// The queue pair may have another connection from now on.
void release_qp(const CoreState& s, State& r, uint32_t record) {
  const uint32_t qp = find_qp(s, r.connections[record].qpn);
  if (qp != 0 && r.qps[qp].connection == record) r.qps[qp].connection = 0;
}

bool events_full(const State& r) { return r.event_tail - r.event_head == r.event_room; }

}  // namespace

// ---- names -------------------------------------------------------------------------------------------------------

uint32_t id_of(const State& r, uint32_t record) { return r.connections[record].generation << 16 | record; }

uint32_t record_of(const State& r, uint32_t id) {
  const uint32_t record = id & 0xFFFF;
  if (record == 0 || record > r.connections.high_water()) return 0;
  const Connection& c = r.connections[record];
  return c.in_use && id_of(r, record) == id ? record : 0;
}

uint32_t find_requester(State& r, const Gid& peer, uint32_t remote_comm_id) {
  for (uint32_t i = bucket_of(r, remote_comm_id); i != 0; i = r.connections[i].next_in_bucket) {
    const Connection& c = r.connections[i];
    if (c.requester_id == remote_comm_id && c.path.dgid == peer) return i;
  }
  return 0;
}

// ---- begin and end -----------------------------------------------------------------------------------------------

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

void name_requester(State& r, uint32_t record, uint32_t remote_comm_id) {
  Connection& c = r.connections[record];
  c.requester_id = remote_comm_id;
  c.next_in_bucket = bucket_of(r, c.requester_id);
  bucket_of(r, c.requester_id) = record;
}

void stop_waiting(State& r, Connection& c) {
  if (std::exchange(c.waits, false)) --r.listeners[c.listener].waiting;
}

void drop_connection(CoreState& s, State& r, uint32_t record) {
  Connection& c = r.connections[record];
  s.timers.cancel(timer_of_connection(r, record));
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

// ---- out ---------------------------------------------------------------------------------------------------------

void send_mad(CoreState& s, State& r, const AhAttributes& path, std::span<const std::byte, kMadSize> mad) {
  if (r.mad_tail - r.mad_head == kMadRing) return s.count(Counter::kRoceMadsLost);
  OutgoingMad& out = r.mads[r.mad_tail++ % kMadRing];
  out.path = path;
  std::copy(mad.begin(), mad.end(), out.mad.begin());
}

bool room_for_request(const State& r) { return r.event_tail - r.event_head < r.event_room / 3; }

void tell(CoreState& s, State& r, uint32_t record, ConnectionEventKind kind, const ConnectionEvent& what,
          PrivateData data) {
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

void carry_out(CoreState& s, State& r, uint32_t record, const CmStep& step) {
  Connection& c = r.connections[record];
  s.note(Stage::kConnectionState, record, static_cast<uint32_t>(c.cm.state));
  if (step.send) send_mad(s, r, c.path, c.cm.mad);
  if (!c.cm.deadline.is_never()) s.timers.arm(timer_of_connection(r, record), c.cm.deadline);
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

void fail_qp(CoreState& s, State& r, const Connection& c) {
  const uint32_t qp = find_qp(s, c.qpn);
  if (qp == 0 || r.qps[qp].state < QpState::kRtr) return;
  QpAttributes error;
  error.qp_state = QpState::kError;
  (void)modify_qp(s, r, c.qpn, error, 0);
}

}  // namespace ub::roce
