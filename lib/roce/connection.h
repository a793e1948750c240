// SPDX-License-Identifier: Apache-2.0
//
// Connections of queue pairs as RDMA-CM makes them: by address and port, over queue pair 1 of both NICs.
#pragma once

#include <deque>
#include <optional>

#include "lib/roce/queue_pair.h"

namespace ub::verbs {

using roce::ConnectionEvent;
using roce::ConnectionEventKind;

/// rdma_conn_param, and what both queue pairs need besides. accept() heeds private_data, the two depths and
/// rnr_retry_count; the rest is as the request says.
struct ConnectionParameters {
  std::span<const std::byte> private_data;  // at most 56 bytes of connect(), 196 of accept(), 148 of reject()
  uint8_t responder_resources = 1;          // READs and atomics that we serve at a time, at most 16
  uint8_t initiator_depth = 1;              // that we have in flight, at most 16
  uint8_t retry_count = 7;                  // at most 7
  uint8_t rnr_retry_count = 7;              // 7: for ever
  uint8_t path_mtu = 3;  // 1 to 5: 256 to 4096; more than the peer's port admits: kRejected, kInvalidMtu
  uint8_t timeout = 14;  // 4.096 us * 2^n, at most 31
};

/// One connection, or somebody who waits for some.
class ConnectionId {
 public:
  explicit ConnectionId(Device& device);
  ~ConnectionId();  // a connection that is there is parted, a request that was not answered is rejected
  ConnectionId(const ConnectionId&) = delete;
  ConnectionId& operator=(const ConnectionId&) = delete;

  /// Requests to this port come as events. kExists: somebody of this process listens there. kBusy, of all of these: the
  /// id listens or has a connection.
  Status listen(uint16_t port);
  /// The queue pair is in INIT; kEstablished tells that it is in RTS. kRejected: nobody listens, or with what reason;
  /// kUnreachable: nobody answers, after about 50 s.
  Status connect(const QueuePair& qp, const AhAttributes& path, uint16_t port, const ConnectionParameters&);
  /// Of a request: this becomes its connection.
  Status accept(const ConnectionEvent& request, const QueuePair& qp, const ConnectionParameters&);
  Status reject(const ConnectionEvent& request, std::span<const std::byte> private_data);
  /// Parts: kDisconnected tells when, at once if the peer answers and after about 50 s if it does not. A connection
  /// that was asked for and not made is given up at once, without event.
  Status disconnect();

  /// The oldest event of this id; moves the NIC forward if there is none.
  std::optional<ConnectionEvent> poll_event();
  /// The same, but blocks until there is one, at most for `limit`; nanoseconds::max(): for ever.
  std::optional<ConnectionEvent> wait_event(std::chrono::nanoseconds limit);

 private:
  friend class Device;
  std::optional<ConnectionEvent> take();

  Device& device_;
  uint64_t cookie_ = 0;
  uint32_t listener_ = 0;
  uint32_t connection_ = 0;             // 0: none
  bool made_ = false;                   // both ends agreed, or we did
  std::deque<ConnectionEvent> events_;  // under the lock of the device
};

}  // namespace ub::verbs
