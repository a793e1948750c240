// SPDX-License-Identifier: Apache-2.0
//
// Creating and destroying what applications own: JFCs, JFRs, jettys and JFSs with their send queues, targets.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status create_jfc(CoreState& s, const JfcConfig& config, uint32_t* jfc);
Status destroy_jfc(CoreState& s, uint32_t jfc);
Status create_jfr(CoreState& s, const JfrConfig& config, uint32_t* id);
Status destroy_jfr(CoreState& s, uint32_t id);
Status create_jetty(CoreState& s, const JettyConfig& config, uint32_t* id);
Status destroy_jetty(CoreState& s, uint32_t id);
Status set_state(CoreState& s, uint32_t id, QueueState state);
QueueState state_of(const CoreState& s, uint32_t id);
Status set_receive_threshold(CoreState& s, uint32_t jfr, uint32_t slots);

Status add_target(CoreState& s, const TargetConfig& config, uint32_t* target);
Status remove_target(CoreState& s, uint32_t target);
Status bind_jetty(CoreState& s, uint32_t jetty, uint32_t target);
Status unbind_jetty(CoreState& s, uint32_t jetty);

bool valid_jfc(const CoreState& s, uint32_t jfc);
bool valid_ring(uint32_t slot_count);

// A receive for an incoming message, with a place in its JFC. 0: none now.
uint32_t take_receive(CoreState& s, uint32_t jfr, uint32_t jfc);
// The message it was taken for vanished: the next one gets it.
void return_receive(CoreState& s, uint32_t receive);
// The same, when the channel died while copies into it are pending: it goes back when they are done.
void return_receive_later(CoreState& s, uint32_t receive, uint32_t tpn, uint32_t copies);
// A copy of a dead channel is done.
void dead_copy_done(CoreState& s, uint32_t tpn);
// It was completed.
void release_receive(CoreState& s, uint32_t receive);
// A JFR in ERROR gives back what is posted: some now, as far as its JFC has room, and the rest bit by bit.
void flush_receives(CoreState& s, uint32_t jfr);
// Forgets what is posted, without completions.
void discard_receives(CoreState& s, uint32_t jfr);

}  // namespace ub
