// SPDX-License-Identifier: Apache-2.0
//
// Jetty groups at the target (UB Base Specification Rev 2.0, 8.2.2): jettys of one owner that share an id. A message to
// the group goes to one member, which is chosen when the first packet is delivered, and chosen anew if the message was
// refused.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status create_group(CoreState& s, const GroupConfig& config, uint32_t* id);
Status destroy_group(CoreState& s, uint32_t id);  // kBusy while it has members

// The record of the group with this id if it belongs to the owner, else 0.
uint32_t find_group(const CoreState& s, uint32_t id, Owner owner);
// Adds a jetty to a group, which must have room (kMaxGroupMembers).
void join_group(CoreState& s, uint32_t group, uint32_t jetty);
void leave_group(CoreState& s, uint32_t jetty);

// The Jetty record of the member that gets the next message; 0: the group is empty. Members with a posted receive come
// before those without, unless the group goes by the sender's hint.
uint32_t choose_member(CoreState& s, uint32_t group, uint8_t hint);

}  // namespace ub
