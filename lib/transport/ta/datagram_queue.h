// SPDX-License-Identifier: Apache-2.0
//
// Send queues of UM (service mode UNO, UB Base Specification Rev 2.0, 7.3): each request is one datagram, sent once and
// complete when its port has it. Such a queue waits for a link instead of a channel; what is sent and how is in
// datagram_sender.h.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Puts the queue on the list of the link that its next datagram needs, if it has one that may go.
void schedule_datagrams(CoreState& s, uint32_t queue);

// The link for the element at next_slot, which is a datagram that may go now; 0: there is none. Requests in front of it
// for which nothing is sent are completed: the caller retires them.
uint32_t next_datagram(CoreState& s, SendQueue& q);

// Takes the element at next_slot into the started requests; it is paid for.
WrState& start_datagram(CoreState& s, SendQueue& q);
// The newest one started is done.
void finish_datagram(CoreState& s, uint32_t queue, CrStatus status);

// The record of a datagram that was sent, or never will be.
void release_gathering(CoreState& s, uint32_t record);
// The queue is flushed or destroyed: its datagram whose payload is pending, if any, is not sent.
void cancel_gathering(CoreState& s, uint32_t queue);
// Nothing goes out over this link any more.
void leave_link(CoreState& s, uint32_t link);

}  // namespace ub::ta
