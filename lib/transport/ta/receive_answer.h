// SPDX-License-Identifier: Apache-2.0
//
// The initiator's handling of answers (UB Base Specification Rev 2.0, 7.3.1.1): which segment of which request an
// answer is about, and what success, error and "receiver not ready" mean for that request. One that is finished is
// retired in completion.h, with an entry in its JFC (send_completion.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

// The send queue that an RCID names; 0: it names none.
inline uint32_t queue_of(const CoreState& s, uint32_t rc_id) {
  const IdSlot& id = s.ids[rc_id & (kIdSpace - 1)];
  return id.kind == ObjectKind::kJetty || id.kind == ObjectKind::kJfs ? s.jettys[id.record].queue : 0;
}

// The segment that an answer is about.
struct AnsweredSegment {
  uint32_t queue;
  uint32_t number;  // of the request in the queue
  WrState* wr;
  uint32_t segment;
};
// Finds the segment that an answer on this channel is about. False: the answer is stale, a duplicate, or not from the
// peer that was asked.
bool find_segment(CoreState& s, uint32_t channel, const wire::Atah& answer, AnsweredSegment* out);
// The response to a READ or atomic is complete: its number in a sequence context, if it has one, is answered. If the
// request was given up and is not awaited any more, nothing else lets those go on that wait for the number.
void note_response(CoreState& s, uint32_t channel, const wire::Atah& answer, bool awaited);

// Records that a segment was answered. The caller calls go_on() afterwards.
void end_segment(CoreState& s, const AnsweredSegment& segment, CrStatus status);
// Segments of the queue were answered on this channel: requests may be complete, and others may start.
void go_on(CoreState& s, uint32_t queue, uint32_t channel);
// What an error answer (RSPST 3) with this RSPINFO means for the request.
CrStatus error_status(const CoreState& s, const AnsweredSegment& segment, uint8_t rspinfo);

// Both. `status`: kSuccess, or what the error answer means.
void finish_segment(CoreState& s, const AnsweredSegment& segment, CrStatus status);
// The target was not ready for a segment: it is sent again after the pause that the answer asks for.
void refuse_segment(CoreState& s, const AnsweredSegment& segment, Duration pause);
// A TAACK or error answer, possibly for several segments.
void on_answer(CoreState& s, uint32_t channel, const wire::Atah& answer);

}  // namespace ub::ta
