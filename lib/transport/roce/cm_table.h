// SPDX-License-Identifier: Apache-2.0
// cm_table.h - the table of connections: how each is named and found, what it sends and tells the application, and its
// queue pair. For cm.cc (what comes in) and cm_calls.cc (what applications ask for) alone.
#pragma once

#include <span>

#include "lib/transport/roce/state.h"

namespace ub::roce {

// ---- names -------------------------------------------------------------------------------------------------------

/// A communication id: the record, and which use of it.
uint32_t id_of(const State& r, uint32_t record);
/// 0: nobody has that id.
uint32_t record_of(const State& r, uint32_t id);
/// The connection that a REQ of that sender began, or 0.
uint32_t find_requester(State& r, const Gid& peer, uint32_t remote_comm_id);

// ---- begin and end -----------------------------------------------------------------------------------------------

/// 0: no room for another one.
uint32_t add_connection(CoreState& s, State& r);
/// The REQ of a sender with that id began it: it is found by find_requester() from now on.
void name_requester(State& r, uint32_t record, uint32_t remote_comm_id);
/// The request is answered, or gone.
void stop_waiting(State& r, Connection& c);
void drop_connection(CoreState& s, State& r, uint32_t record);
/// The peer is out of reach, or has forgotten it.
void lose_connection(CoreState& s, State& r, uint32_t record);

// ---- out ---------------------------------------------------------------------------------------------------------

void send_mad(CoreState& s, State& r, const AhAttributes& path, std::span<const std::byte, kMadSize> mad);
/// Anybody may ask to connect: most of the room is for what becomes of the others.
bool room_for_request(const State& r);
void tell(CoreState& s, State& r, uint32_t record, ConnectionEventKind kind, const ConnectionEvent& what,
          PrivateData data = {});
/// What a step of the connection asks for, but for what its event tells the application.
void carry_out(CoreState& s, State& r, uint32_t record, const CmStep& step);

// ---- the queue pair ----------------------------------------------------------------------------------------------

bool may_connect(const CoreState& s, const State& r, uint32_t qpn);
/// From INIT to RTS. False: the application did something with it meanwhile.
bool bring_up(CoreState& s, State& r, const Connection& c);
void fail_qp(CoreState& s, State& r, const Connection& c);

}  // namespace ub::roce
