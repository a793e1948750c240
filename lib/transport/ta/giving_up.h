// SPDX-License-Identifier: Apache-2.0
//
// How requests end without an answer: they time out, their channel dies, their queue is flushed or destroyed.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Ends a request with this status: no more of it is sent, and its answers are no longer awaited.
void give_up(CoreState& s, uint32_t queue, uint32_t number, CrStatus status);
void on_queue_timer(CoreState& s, uint32_t queue);
// Ends all requests on a dead channel, and those that were posted and would have been sent on it.
void fail_channel_requests(CoreState& s, uint32_t channel);
// After it: completes what ended, and lets the queues look for another channel.
void go_on_without_channel(CoreState& s);
// The queue goes to state ERROR: its started requests end with kWrFlush, then a kWrFlushDone follows.
void flush_queue(CoreState& s, uint32_t queue);
// The queue goes to state RESET: its requests end with kWrFlush, those that were started, were posted and will be.
void reset_queue(CoreState& s, uint32_t queue);
// See Core::take_unhandled().
uint32_t take_unhandled(CoreState& s, uint32_t queue, Cqe* out, uint32_t room);

}  // namespace ub::ta
