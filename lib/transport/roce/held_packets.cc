// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/held_packets.h"

namespace ub::roce {
namespace {

/// Would the requester send this one now, with a request for an acknowledgement only if the packet has one?
bool leaves_next(const CoreState& s, const Qp& qp, const HeldFrame& h) {
  NextPacket next;
  return sends(qp.state) && next_packet(qp.req, ring_of(qp), s.now, &next) && qp.req.cursor == h.psn &&
         (h.asks || !next.must_ask);
}

/// The packet of its slot's answer that has its PSN.
AnswerPacket packet_of(State& r, const Qp& qp, const HeldFrame& h) {
  ReadSlot& slot = slots_of(r, qp)[h.item];
  return {&slot, h.psn.distance(psn_of({&slot, 0}))};
}

/// Is it still a packet of the part that the peer wants?
bool is_wanted(State& r, const Qp& qp, const HeldFrame& h) {
  const AnswerPacket p = packet_of(r, qp, h);
  const uint32_t asked = p.slot->atomic ? 0 : p.slot->part.asked;
  const bool is_part = p.before == 0 || uint64_t{p.before} * qp.resp.mtu < asked;
  return p.slot->serving && is_part && (p.before == 0) == h.first && is_last(p, qp.resp.mtu) == h.last;
}

/// Does the first held answer leave next, and may others be built behind the newest one?
bool answers_fit(const CoreState& s, State& r, const Qp& qp) {
  const HeldFrame& first = s.held.first(qp.held_responses);
  const AnswerPacket next = next_answer(r, qp);
  return next.slot != nullptr && psn_of(next) == first.psn && is_wanted(r, qp, first) &&
         is_wanted(r, qp, s.held.newest(qp.held_responses));
}

}  // namespace

void give_up_held(CoreState& s, Qp& qp) {
  s.held.give_up_all(qp.held_requests);
  s.held.give_up_all(qp.held_responses);
}

void give_up_unwanted(CoreState& s, State& r, Qp& qp) {
  while (!qp.held_requests.empty() && !leaves_next(s, qp, s.held.first(qp.held_requests))) {
    s.held.give_up_first(qp.held_requests);
  }
  while (!qp.held_responses.empty() && !answers_fit(s, r, qp)) s.held.give_up_first(qp.held_responses);
}

void on_gathered(const CoreState& s, State& r, const HeldFrame& h) {
  const uint32_t index = r.held_homes.index_of(h.home);
  const Qp& qp = r.qps[index];
  s.note(Stage::kQpPacketReady, qp.qpn, h.psn.value());
  const auto is_first = [&](const HeldLine& line) { return !line.empty() && &s.held.first(line) == &h; };
  if (is_first(qp.held_requests) || is_first(qp.held_responses)) activate(r, index);
}

RequesterState requester_ahead(const CoreState& s, const Qp& qp) {
  RequesterState ahead = qp.req;
  if (qp.held_requests.empty()) return ahead;
  const HeldFrame& h = s.held.newest(qp.held_requests);
  const uint32_t skipped = h.psn.distance(qp.requests[h.item & qp.work_mask].first_psn);
  ahead.cursor_request = h.item;
  sent(ahead, ring_of(qp), s.now, {h.item, skipped, h.last, h.asks});
  return ahead;
}

AnswerPacket answer_ahead(const CoreState& s, State& r, const Qp& qp) {
  if (qp.held_responses.empty()) return next_answer(r, qp);
  const HeldFrame& newest = s.held.newest(qp.held_responses);
  if (newest.last) return {next_to_serve(slots_of(r, qp), qp.reads, newest.item), 0};
  const AnswerPacket p = packet_of(r, qp, newest);
  return {p.slot, p.before + 1};
}

}  // namespace ub::roce
