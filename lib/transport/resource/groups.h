// SPDX-License-Identifier: Apache-2.0
//
// Jetty groups, at the target: jettys of one owner that share an id. A message to the group goes to one member, chosen
// when its first packet is delivered and again if it was refused. UB spec 8.2.2.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status create_group(CoreState& s, const GroupConfig& config, uint32_t* id);
Status destroy_group(CoreState& s, uint32_t id);  // kBusy while it has members

// The group with that id if it is that owner's, else 0.
uint32_t find_group(const CoreState& s, uint32_t id, Owner owner);
// There is room.
void join_group(CoreState& s, uint32_t group, uint32_t jetty);
void leave_group(CoreState& s, uint32_t jetty);

// Jetty record of the member that gets the next message, 0: the group is empty. Members that could take it go before
// those that have no receive, except where the sender's hint decides.
uint32_t choose_member(CoreState& s, uint32_t group, uint8_t hint);

}  // namespace ub
