// SPDX-License-Identifier: Apache-2.0
// cm.h - connections of queue pairs by management datagrams on QP 1: listeners, the table of connections, and what each
// step of cm_connection.h means for the queue pair. InfiniBand Architecture Specification volume 1, 12; annex A11 for
// the addresses of RDMA-CM. The queue pair of a connection goes from INIT to RTS when both ends agree, and to ERROR
// when they part.
#pragma once

#include <span>

#include "lib/transport/roce/state.h"
#include "lib/transport/wire/network_header.h"

namespace ub::roce {

Status listen(State& r, const ListenConfig& config, uint32_t* listener);
Status stop_listening(CoreState& s, State& r, uint32_t listener);
Status connect(CoreState& s, State& r, const ConnectConfig& config, uint32_t* connection);
Status accept_connection(CoreState& s, State& r, uint32_t connection, const AcceptConfig& config);
Status reject_connection(CoreState& s, State& r, uint32_t connection, PrivateData private_data);
Status disconnect(CoreState& s, State& r, uint32_t connection);
/// disconnect() for a record that is in use.
void part(CoreState& s, State& r, uint32_t record);
size_t take_connection_events(State& r, std::span<ConnectionEvent> out);

/// A datagram for QP 1 arrived.
void on_mad(CoreState& s, State& r, const AhAttributes& back, std::span<const std::byte> mad);
void on_connection_timer(CoreState& s, State& r, uint32_t connection);
/// The first packet came for a queue pair that has a connection: the peer that sent it is ready.
void on_first_packet(CoreState& s, State& r, uint32_t connection);
/// The queue pair of a connection is destroyed.
void forget_qp(CoreState& s, State& r, uint32_t connection);
/// The link is down: nobody can be reached over it any more.
void drop_connections(CoreState& s, State& r, uint32_t link);

}  // namespace ub::roce
