// SPDX-License-Identifier: Apache-2.0
//
// Send queues of UM (service mode UNO, UB Base Specification Rev 2.0, 7.3): each request is one datagram, which is sent
// once and is complete when its port has it. Such a queue waits for a link instead of a channel. datagram_sender.h
// builds and sends the packets.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Puts the queue on the list of the link that its next datagram needs, if a datagram may be sent now.
void schedule_datagrams(CoreState& s, uint32_t queue);

// The link of the next datagram, which is the element at next_slot; 0: none may be sent now. Requests in front of it
// that need no packet are completed: the caller retires them.
uint32_t next_datagram(CoreState& s, SendQueue& q);

// Takes the element at next_slot into the started requests and charges the limits of its owner.
WrState& start_datagram(CoreState& s, SendQueue& q);
// The newest started request is done.
void finish_datagram(CoreState& s, uint32_t queue, CrStatus status);

// Takes a record for a datagram whose memory may answer later. Its request is the newest started one of its queue.
HeldFrame& take_held_datagram(CoreState& s, uint32_t queue);
// The datagram that the queue holds was sent, or could not be.
void release_held_datagram(CoreState& s, uint32_t queue);
// The queue is flushed or destroyed: if it holds a datagram, that one is not sent.
void give_up_held_datagram(CoreState& s, uint32_t queue);
// The link is down: its datagrams are lost, and its queues leave its list.
void leave_link(CoreState& s, uint32_t link);

}  // namespace ub::ta
