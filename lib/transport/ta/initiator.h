// SPDX-License-Identifier: Apache-2.0
//
// The initiator's side of transactions (UB Base Specification Rev 2.0, 7): which segment of which send queue is sent
// next, and what an answer means for it.
//
// A queue starts its requests in the order in which they were posted. A request that must wait (fence, strong order, a
// lane change, limits) holds back the requests behind it; retries of refused segments go first when their time comes.
// A queue with something to send waits in the list of the channel that will carry it, so queues take turns by
// message, and idle queues are never scanned. Queues of UM have no channel: datagram_queue.h.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/segmentation.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

// Puts the queue on the list of the channel that its next segment needs, if a segment may be sent now.
void schedule_queue(CoreState& s, uint32_t queue);

// The channel can start a message: fills in `*message` with the next segment of the queues that wait for the channel.
// False: none of them has a segment that may be sent.
bool start_next_segment(CoreState& s, Lane& lane, uint32_t channel, tp::TxMessage* message);

// The request that a message is a part of, or nullptr if it is finished, flushed or gone.
inline WrState* request_of(CoreState& s, const tp::TxMessage& message) {
  SendQueue& q = s.queues[message.source];
  if (!q.in_use || q.generation != message.generation) return nullptr;
  if (message.work_request - q.started_head >= q.started_tail - q.started_head) return nullptr;
  WrState& wr = q.work[message.work_request & q.work_mask];
  return wr.done ? nullptr : &wr;
}
inline Wqe& wqe_of(const SendQueue& q, const WrState& wr) { return q.slots[wr.slot & q.slot_mask]; }

// The segment that an answer is about.
struct AnsweredSegment {
  uint32_t queue;
  uint32_t number;  // of the request in the queue
  WrState* wr;
  uint32_t segment;
};
// Finds the segment that an answer on this channel is about. False: the answer is stale, a duplicate, or not from the
// peer that was asked.
bool find_segment(CoreState& s, uint32_t channel, uint32_t rc_id, Tassn tassn, AnsweredSegment* out);

// A segment was answered. `status`: kSuccess, or what the error answer means.
void finish_segment(CoreState& s, const AnsweredSegment& segment, CrStatus status);
// The target was not ready for a segment: it is sent again after the RNR time.
void refuse_segment(CoreState& s, const AnsweredSegment& segment, uint8_t rnr_code);
// A TAACK or error answer, possibly for several segments.
void on_answer(CoreState& s, uint32_t channel, const wire::Atah& answer);
// Packets of a request were acknowledged: its deadline starts anew.
inline void on_progress(CoreState& s, const tp::TxMessage& message) {
  if (WrState* wr = request_of(s, message)) wr->deadline = s.now + s.queues[message.source].request_timeout;
}

// Ends a request with this status: no more of it is sent, and its answers are no longer awaited.
void give_up(CoreState& s, uint32_t queue, uint32_t number, CrStatus status);
void on_queue_timer(CoreState& s, uint32_t queue);
// Ends all requests on a dead channel, and those that were posted and would have been sent on it.
void fail_channel_requests(CoreState& s, uint32_t channel);
// The queue goes to state ERROR: its started requests end with kWrFlush, then a kWrFlushDone follows.
void flush_queue(CoreState& s, uint32_t queue);
// See Core::take_unhandled().
uint32_t take_unhandled(CoreState& s, uint32_t queue, Cqe* out, uint32_t room);

}  // namespace ub::ta
