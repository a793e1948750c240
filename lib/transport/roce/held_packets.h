// SPDX-License-Identifier: Apache-2.0
// held_packets.h - packets of a queue pair whose frames are held, because their memory answers later (held_frames.h):
// requests in one line, answers to READs and atomics in another.
//
// A held packet has not been sent. The requester's cursor stands in front of the held requests, and Qp::served counts
// only packets that have left. What is built next follows the newest held packet. If the requester goes back, or the
// peer asks for another part of an answer, the first held packet is no longer the one that leaves next: such packets
// are given up, and built again when it is their turn.
#pragma once

#include "lib/transport/roce/state.h"

namespace ub::roce {

inline uint32_t held_count(const Qp& qp) { return qp.held_requests.count + qp.held_responses.count; }

/// The queue pair is in another state or has another path: whatever it holds is not sent.
void give_up_held(CoreState& s, Qp& qp);
/// Gives up packets that are not the next ones of their line any more.
void give_up_unwanted(CoreState& s, State& r, Qp& qp);
/// The gathers of a packet are done.
void on_gathered(const CoreState& s, State& r, const HeldFrame& h);

/// The requester as it will be when all held requests have left.
RequesterState requester_ahead(const CoreState& s, const Qp& qp);

/// A packet of an answer: so many packets of the part that was asked for go before it.
struct AnswerPacket {
  ReadSlot* slot;  ///< null: there is none
  uint32_t before;
};
inline Psn psn_of(AnswerPacket p) {
  return p.slot->atomic ? p.slot->first_psn : p.slot->first_psn + p.slot->part.skipped + p.before;
}
/// Does it end the part that was asked for?
inline bool is_last(AnswerPacket p, uint32_t mtu) {
  return p.slot->atomic || uint64_t{p.before + 1} * mtu >= p.slot->part.asked;
}

/// The packet that leaves next.
inline AnswerPacket next_answer(State& r, const Qp& qp) {
  const std::span<ReadSlot> slots = slots_of(r, qp);
  ReadSlot* slot = next_to_serve(slots, qp.reads);
  const bool goes_on = slot == slots.data() + qp.serving_slot;
  return {slot, goes_on ? qp.served : 0};
}
/// The packet that is built next.
AnswerPacket answer_ahead(const CoreState& s, State& r, const Qp& qp);

}  // namespace ub::roce
