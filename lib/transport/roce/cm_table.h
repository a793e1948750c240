// SPDX-License-Identifier: Apache-2.0
// cm_table.h - the table of connections: how each is named and found, what it sends, what it tells the application, and
// what its queue pair does. Only cm.cc (what comes in) and cm_calls.cc (what applications ask for) use it.
#pragma once

#include <span>

#include "lib/transport/roce/state.h"

namespace ub::roce {

// ---- names -------------------------------------------------------------------------------------------------------

/// The communication id of a record. It also says which use of the record it is.
uint32_t id_of(const State& r, uint32_t record);
/// The record that has this id; 0: there is none.
uint32_t record_of(const State& r, uint32_t id);
/// The connection that a REQ with this id from this sender began; 0: there is none.
uint32_t find_requester(State& r, const Gid& peer, uint32_t remote_comm_id);

// ---- begin and end -----------------------------------------------------------------------------------------------

/// Returns 0 if there is no room for another connection.
uint32_t add_connection(CoreState& s, State& r);
/// The REQ of a sender with that id began the connection: find_requester() finds it from now on.
void name_requester(State& r, uint32_t record, uint32_t remote_comm_id);
/// The request of the connection is answered, or gone.
void stop_waiting(State& r, Connection& c);
void drop_connection(CoreState& s, State& r, uint32_t record);
/// The peer is out of reach, or it has forgotten the connection.
void lose_connection(CoreState& s, State& r, uint32_t record);

// ---- out ---------------------------------------------------------------------------------------------------------

void send_mad(CoreState& s, State& r, const AhAttributes& path, std::span<const std::byte, kMadSize> mad);
/// Is there room to answer another REQ? Anybody may ask to connect, so most of the room is kept for the other messages.
bool room_for_request(const State& r);
void tell(CoreState& s, State& r, uint32_t record, ConnectionEventKind kind, const ConnectionEvent& what,
          PrivateData data = {});
/// Does what a step of the connection asks for, except that it does not tell the application of the step's event.
void carry_out(CoreState& s, State& r, uint32_t record, const CmStep& step);

// ---- the queue pair ----------------------------------------------------------------------------------------------

bool may_connect(const CoreState& s, const State& r, uint32_t qpn);
/// Takes the queue pair from INIT to RTS. False: the application has changed its state meanwhile.
bool bring_up(CoreState& s, State& r, const Connection& c);
void fail_qp(CoreState& s, State& r, const Connection& c);

}  // namespace ub::roce
