// SPDX-License-Identifier: Apache-2.0
//
// Receives of a JFR (UB Base Specification Rev 2.0, 8.2.2): they are taken out of its ring for a message, given back if
// the message vanishes, flushed if the JFR goes to ERROR, and taken away from the message if the JFR or the jetty is
// destroyed.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

// Takes a receive for an incoming message and reserves a place in the JFC. 0: there is no receive, or no place.
uint32_t take_receive(CoreState& s, uint32_t jfr, uint32_t jfc);
// The message that it was taken for vanished: the next message gets the receive.
void return_receive(CoreState& s, uint32_t receive);
// Pending copies into a receive, of a message whose channel died.
struct LateCopies {
  uint32_t tpn;
  Tpmsn message;
  uint32_t copies;
};
// return_receive() for such a message: the receive goes back when the copies are done.
void return_receive_later(CoreState& s, uint32_t receive, const LateCopies& late);
// A copy of a message of a dead channel is done.
void dead_copy_done(CoreState& s, uint32_t tpn, Tpmsn message);
// Frees a receive that was completed, or that will never be.
void release_receive(CoreState& s, uint32_t receive);
// Flushes the posted receives of a JFR in ERROR: some now, as far as its JFC has room, and the others later.
void flush_receives(CoreState& s, uint32_t jfr);
// Takes all posted receives out of the ring, without completions.
void discard_receives(CoreState& s, uint32_t jfr);
// Frees the receives that were given back to the JFR.
void free_returned(CoreState& s, Jfr& r);
// Takes the receives of this JFR (`jetty` is 0), or those taken for this jetty, away from the messages that are
// arriving into them. These messages fail.
void detach_open_receives(CoreState& s, uint32_t jfr, uint32_t jetty);

}  // namespace ub
