// SPDX-License-Identifier: Apache-2.0
//
// The initiator's part of ROT (UB Base Specification Rev 2.0, 7.3.3.3): the target keeps the order, so that a strong
// request need not wait for the answers to those before it, whichever channels carry them. The ordered requests of a
// queue are numbered in a sequence context, which the target gives out when it is asked.
//
// A queue asks with the first strong request that could have used a context. Until it has one, and for whatever a
// context does not take, it keeps its order itself (ROI): SENDs, requests of several segments, and strong ones of
// several packets, since the target holds early ones of one packet alone. What asks for no order needs no context.
//
// The numbers of a context have no gaps. If the memory of a request that has one vanishes, or the queue gives the
// request up, an empty WRITE takes its number and its place on the channel (packet_content.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/request_state.h"

namespace ub::ta {

// Does the target keep the order of this request, which is to be started on this channel?
bool takes_context(const CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch);
// Is there a number for this request, which is to be started, if it takes one?
bool context_has_room(const CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch);
// The name that the target has for the context of the queue.
inline uint32_t scid_of(const CoreState& s, const SendQueue& q) { return s.initiator_contexts[q.context].scid; }
// A request of a queue of ROT was started: it gets its number, or asks for a context.
void enter_order(CoreState& s, SendQueue& q, WrState& wr, uint32_t number, const Wqe& wqe, const tp::Channel& ch);

// May this strong request, whose order the target keeps, leave now? Not before older ordered requests without a number
// and older READs are done, nor while Channel::so_credit strong ones are unanswered.
bool target_keeps_order(const CoreState& s, SendQueue& q, uint32_t number, const tp::Channel& ch);
// What the packets of this message say of the order, which TxMessage::value remembers: the SCID of the context that the
// request has a number in, or that it asks for one.
constexpr uint64_t kAsksForContext = uint64_t{1} << 32;
void describe_order(CoreState& s, const SendQueue& q, const WrState& wr, tp::TxMessage* m);

// The answer says that it is about a context: the request that has this number, if any. It need not be alive; if it is,
// it has been sent.
bool find_in_context(const CoreState& s, const SendQueue& q, uint32_t channel, Tassn tassn, uint32_t* number);
// The last word about the request of this number.
void answered_in_context(CoreState& s, const SendQueue& q, Tassn tassn);
// The request that asks for a context and has no answer yet; nullptr: there is none.
const WrState* asking_request(const SendQueue& q);
// The request that asks is given up. The answer may still come, and does not say which request it is for, so that
// nobody may ask again while the peer has channels.
void ask_no_more(const CoreState& s, SendQueue& q, const WrState& asking);
// The answer to that request grants the context `scid`.
void begin_context(CoreState& s, SendQueue& q, const WrState& asking, uint32_t scid);

// This request is given up. If it has a number, that is in use until the target answers.
void note_given_up(CoreState& s, SendQueue& q, const WrState& wr);
// Ends the context if the target has not answered such a number for as long as the queue waits for an answer: nothing
// else would bound how long strong requests and numbers wait for it. Returns when this is to be asked again.
Instant end_overdue_context(CoreState& s, uint32_t queue);

// The queue uses its context no more. Its requests have ended. The target is told, if there is a channel to it.
void leave_context(CoreState& s, SendQueue& q);
// The target has refused the request of this number, which was given up meanwhile, so that nobody sends it again: an
// empty WRITE takes the number.
void fill_number(CoreState& s, uint32_t queue, uint32_t channel, Tassn tassn);
// A channel to the peer died, and with it may be numbers of the context, or the peer does not answer one: its requests
// end.
void lose_context(CoreState& s, uint32_t queue, uint32_t peer);

}  // namespace ub::ta
