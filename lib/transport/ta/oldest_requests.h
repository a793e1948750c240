// SPDX-License-Identifier: Apache-2.0
//
// Answers that say success for the oldest requests of a queue complete them one after the other
// (docs/straight-path-design.md). Whatever is unusual about a request or its queue is left to receive_answer.h.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// The element of the oldest request of the queue, if that is a READ of so many bytes into one range, and awaits the
// answer with this number by this channel; nullptr: it is not.
const Wqe* oldest_read(CoreState& s, uint32_t channel, uint32_t queue, Tassn tassn, uint64_t bytes);

// The peer has answered `answers` segments with success, from `tassn` on. Ends those that are whole requests, one after
// the other from the oldest of the queue on. Returns how many; the caller goes on with the next one.
uint32_t complete_oldest(CoreState& s, uint32_t channel, uint32_t queue, Tassn tassn, uint32_t answers);

// So many were all. The queue and the channel go on, if one of them has anything to do.
void go_on_behind_oldest(CoreState& s, uint32_t queue, uint32_t channel);

}  // namespace ub::ta
