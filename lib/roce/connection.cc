// SPDX-License-Identifier: Apache-2.0
#include "lib/roce/connection.h"

#include <sys/random.h>

namespace ub::verbs {
namespace {

// As a program gets from its kernel when it does not ask for one.
uint16_t ephemeral_port() {
  uint16_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = 0;
  return static_cast<uint16_t>(49152 + random % 16384);
}

}  // namespace

// Engine to ids. Events of an id that is gone are for nobody; the connection itself was parted then.
void Device::take_connection_events() {
  // Who looks for an event waits until others have handed out what they took.
  const std::lock_guard distribution(distribution_lock_);
  ConnectionEvent page[16];
  for (;;) {
    const size_t count = engine([&](auto& e, Instant) { return e.poll_connection_events(page); });
    if (count == 0) return;
    const std::lock_guard guard(lock_);
    for (size_t i = 0; i < count; ++i) {
      const auto found = connections_.find(page[i].cookie);
      if (found != connections_.end()) found->second->events_.push_back(page[i]);
    }
  }
}

ConnectionId::ConnectionId(Device& device) : device_(device) {
  const std::lock_guard guard(device_.lock_);
  cookie_ = ++device_.last_cookie_;
  device_.connections_[cookie_] = this;
}

ConnectionId::~ConnectionId() {
  if (connection_ != 0) disconnect();
  if (listener_ != 0) {
    device_.engine([&](auto& engine, Instant now) { return engine.stop_listening(now, listener_); });
  }
  const std::lock_guard guard(device_.lock_);
  device_.connections_.erase(cookie_);
}

Status ConnectionId::listen(uint16_t port) {
  if (listener_ != 0 || connection_ != 0) return Status::kBusy;
  roce::ListenConfig config;
  config.port = port;
  config.cookie = cookie_;
  return device_.engine([&](auto& engine, Instant) { return engine.listen(config, &listener_); });
}

Status ConnectionId::connect(const QueuePair& qp, const AhAttributes& path, uint16_t port,
                             const ConnectionParameters& p) {
  if (listener_ != 0 || connection_ != 0) return Status::kBusy;
  roce::ConnectConfig config;
  config.qpn = qp.qp_num();
  config.path = path;
  config.local_port = ephemeral_port();
  config.remote_port = port;
  config.path_mtu = p.path_mtu;
  config.responder_resources = p.responder_resources;
  config.initiator_depth = p.initiator_depth;
  config.timeout = p.timeout;
  config.retry_count = p.retry_count;
  config.rnr_retry = p.rnr_retry_count;
  config.private_data = p.private_data;
  config.cookie = cookie_;
  return device_.engine([&](auto& engine, Instant now) { return engine.connect(now, config, &connection_); });
}

Status ConnectionId::accept(const ConnectionEvent& request, const QueuePair& qp, const ConnectionParameters& p) {
  if (listener_ != 0 || connection_ != 0) return Status::kBusy;
  roce::AcceptConfig config;
  config.qpn = qp.qp_num();
  config.responder_resources = p.responder_resources;
  config.initiator_depth = p.initiator_depth;
  config.rnr_retry = p.rnr_retry_count;
  config.private_data = p.private_data;
  config.cookie = cookie_;
  const Status status =
      device_.engine([&](auto& engine, Instant now) { return engine.accept(now, request.connection, config); });
  if (status == Status::kOk) {
    connection_ = request.connection;
    made_ = true;  // as far as we are concerned
  }
  return status;
}

Status ConnectionId::reject(const ConnectionEvent& request, std::span<const std::byte> private_data) {
  return device_.engine(
      [&](auto& engine, Instant now) { return engine.reject(now, request.connection, private_data); });
}

Status ConnectionId::disconnect() {
  if (connection_ == 0) return Status::kInvalid;
  const Status status = device_.engine([&](auto& engine, Instant now) { return engine.disconnect(now, connection_); });
  if (!made_) connection_ = 0;
  return status;
}

std::optional<ConnectionEvent> ConnectionId::poll_event() {
  if (std::optional<ConnectionEvent> event = take()) return event;
  device_.drive();
  device_.take_connection_events();
  return take();
}

std::optional<ConnectionEvent> ConnectionId::wait_event(std::chrono::nanoseconds limit) {
  std::optional<ConnectionEvent> event;
  device_.wait_until(limit, [&] {
    device_.take_connection_events();
    return (event = take()).has_value();
  });
  return event;
}

std::optional<ConnectionEvent> ConnectionId::take() {
  const std::lock_guard guard(device_.lock_);
  while (!events_.empty()) {
    const ConnectionEvent event = events_.front();
    events_.pop_front();
    if (event.kind == ConnectionEventKind::kConnectRequest) return event;
    if (event.connection != connection_) continue;  // of one that was given up
    made_ = event.kind == ConnectionEventKind::kEstablished;
    if (!made_) connection_ = 0;
    return event;
  }
  return std::nullopt;
}

}  // namespace ub::verbs
