// SPDX-License-Identifier: Apache-2.0
//
// Creates and destroys the objects of applications: JFCs, JFRs, jettys and JFSs with their send queues (UB Base
// Specification Rev 2.0, 8.2.2), and changes the states of their queues (8.2.2.3). core.h describes the functions.
// Receives are in receives.h, targets in targets.h.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status create_jfc(CoreState& s, const JfcConfig& config, uint32_t* jfc);
Status destroy_jfc(CoreState& s, uint32_t jfc);
Status moderate_jfc(CoreState& s, uint32_t jfc, const Moderation& wanted);
Status create_jfr(CoreState& s, const JfrConfig& config, uint32_t* id);
Status destroy_jfr(CoreState& s, uint32_t id);
Status create_jetty(CoreState& s, const JettyConfig& config, uint32_t* id);
Status destroy_jetty(CoreState& s, uint32_t id);
Status set_state(CoreState& s, uint32_t id, QueueState state);
QueueState state_of(const CoreState& s, uint32_t id);
Status set_receive_threshold(CoreState& s, uint32_t jfr, uint32_t slots);
Status set_queue_token(CoreState& s, uint32_t id, uint32_t value, uint32_t former);

// The jetty or JFS with this id, and the index of its record; nullptr: there is none.
Jetty* jetty_of(CoreState& s, uint32_t id, uint32_t* record);
bool valid_jfc(const CoreState& s, uint32_t jfc);
// Rings have a power of two of slots.
bool valid_ring(uint32_t slot_count);

}  // namespace ub
