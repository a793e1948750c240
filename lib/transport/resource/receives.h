// SPDX-License-Identifier: Apache-2.0
//
// Receives of a JFR (UB Base Specification Rev 2.0, 8.2.2): taken out of its ring for a message, given back where the
// message vanished, flushed where the JFR failed, lost to the message where JFR or jetty go.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

// A receive for an incoming message, with a place in its JFC. 0: none now.
uint32_t take_receive(CoreState& s, uint32_t jfr, uint32_t jfc);
// The message it was taken for vanished: the next one gets it.
void return_receive(CoreState& s, uint32_t receive);
// The same, when the channel died while copies of the message into it are pending: it goes back when they are done.
struct LateCopies {
  uint32_t tpn;
  Tpmsn message;
  uint32_t copies;
};
void return_receive_later(CoreState& s, uint32_t receive, const LateCopies& late);
// A copy of a message of a dead channel is done.
void dead_copy_done(CoreState& s, uint32_t tpn, Tpmsn message);
// It was completed.
void release_receive(CoreState& s, uint32_t receive);
// A JFR in ERROR gives back what is posted: some now, as far as its JFC has room, and the rest bit by bit.
void flush_receives(CoreState& s, uint32_t jfr);
// Forgets what is posted, without completions.
void discard_receives(CoreState& s, uint32_t jfr);
// Those that were given back, and that nobody takes any more.
void free_returned(CoreState& s, Jfr& r);
// Messages that are arriving into receives of this JFR, or for this jetty, lose them.
void detach_open_receives(CoreState& s, uint32_t jfr, uint32_t jetty);

}  // namespace ub
