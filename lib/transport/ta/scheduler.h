// SPDX-License-Identifier: Apache-2.0
//
// The initiator's schedule of transactions (UB Base Specification Rev 2.0, 7): which segment of which send queue is
// sent next.
//
// A queue admits its requests in the order in which they were posted. A request that waits for a fence, for another
// lane or for its owner's limits is not admitted yet, and those behind it wait with it. An admitted request that waits
// at a gate (waiting_requests.h) is passed by those behind it. Refused segments go first when their time to be sent
// again comes. A queue with something to send waits in the list of the channel that will carry it, so queues take turns
// by message, and idle queues are never scanned. Queues of UM have no channel (datagram_queue.h).
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Puts the queue on the list of the channel that its next segment needs, if a segment may be sent now.
void schedule_queue(CoreState& s, uint32_t queue);

// The channel can start a message: fills in `*message` with the next segment of the queues that wait for the channel.
// False: none of them has a segment that may be sent.
bool start_next_segment(CoreState& s, Lane& lane, uint32_t channel, tp::TxMessage* message);

// The same if that is a straight request (routes.h) of the first queue in line. There must be one, and the lane must
// have room for another segment. False: it is none, and nothing has changed.
bool start_straight(CoreState& s, Lane& lane, uint32_t channel, tp::TxMessage* message);

}  // namespace ub::ta
