// SPDX-License-Identifier: Apache-2.0
//
// The oracle's view of messages that nobody acknowledges: of UM queues and of UD queue pairs. They may be lost, and the
// network may double them, but each is whole, for whom it was meant, and comes no more often than that.
#include <algorithm>
#include <cinttypes>

#include "lib/transport/roce/types.h"
#include "tests/sim/model.h"

namespace ub::sim {

// What no packet of a UM queue says is which life of an instance is meant: one to a queue that was there before may
// reach another that has its number, if that takes the token that it shows, which its own receiver may not have taken.
bool may_reach(const Wr& w, const Receiver& who) {
  if (w.receiver == who) return w.shows_token;
  if (w.receiver.jfr == nullptr) return false;  // it was for nobody
  const RotatingToken& wanted = who.jfr->token;
  const bool shows = w.receiver.jfr->token.required;
  return w.remote_node == who.node() && w.receiver.id() == who.id() && w.remote_epoch < who.jfr->epoch &&
         (!wanted.required || (shows && wanted.fits(w.receiver_token)));
}

// Is that what the completion says, but for its bytes?
bool Model::is_datagram(const Wr& w, const Cqe& c, uint32_t length) const {
  if (!w.may_run || w.length != length || w.deliveries == most_deliveries) return false;
  if (w.op == WrOp::kSendImm ? c.opcode != CrOpcode::kSendImm || c.immediate != w.immediate
                             : w.op != WrOp::kSend || c.opcode != CrOpcode::kSend) {
    return false;
  }
  return ((c.flags & kCqeSolicited) != 0) == ((w.flags & kWrSolicited) != 0);
}

void Model::take_datagram(const Receiver& who, const Cqe& c, const Receive& r, const Queue* sender) {
  if ((who.jetty != nullptr ? who.jetty->mode : who.jfr->mode) != Mode::kUm)
    fail("receiver %u, which is not of UM, got an unreliable message", who.uid());
  if (c.tpn != 0) fail("receiver %u: an unreliable message came over channel %x", who.uid(), c.tpn);
  for (auto& [id, w] : wrs_) {
    if (w->queue != sender || !may_reach(*w, who) || !is_datagram(*w, c, c.length)) continue;
    if (w->posted_tick > who.silent_since()) continue;
    uint64_t bad_byte = 0;
    if (!carries(r, *w, &bad_byte)) continue;
    ++w->deliveries;
    return;
  }
  fail("receiver %u: unreliable message of %u bytes that queue %u never sent, or too often", who.uid(), c.length,
       sender->uid);
}

// A datagram of UD is for whoever has that number and that Q_Key, in that life of the instance or a later one.
static bool may_reach_ud(const Wr& w, const Queue& who) {
  return w.remote_node == who.node && w.remote_epoch <= who.epoch && w.qpn == who.id && w.qkey == who.qkey;
}

// The payload lies behind the area that a GRH would take.
static Receive behind_grh(const Receive& r) {
  Receive rest = r;
  uint32_t grh = roce::kGrhBytes;
  for (LocalRange& l : rest.ranges) {
    const uint32_t n = std::min(grh, l.bytes);
    l.offset += n;
    l.bytes -= n;
    grh -= n;
  }
  return rest;
}

void Model::take_ud(const Receiver& who, const Cqe& c, const Receive& r, uint32_t sender_node) {
  const auto gone = [](const LocalRange& l) { return l.region->state != Region::State::kLive; };
  if (c.status == CrStatus::kWrFlush && r.may_flush) return;
  if (c.status == CrStatus::kLocAccess && std::any_of(r.ranges.begin(), r.ranges.end(), gone)) return;
  if (c.status != CrStatus::kSuccess)
    return fail("receiver %u: receive of UD completed with %s", who.uid(), status_name(c.status));
  if (c.length < roce::kGrhBytes || c.length > r.length)
    return fail("receiver %u: %u bytes of UD in a receive of %u", who.uid(), c.length, r.length);
  const Receive payload = behind_grh(r);
  for (auto& [id, w] : wrs_) {
    if (!w->queue->ud() || w->queue->node != sender_node || w->queue->id != c.remote_id) continue;
    if (!may_reach_ud(*w, *who.jetty) || !is_datagram(*w, c, c.length - roce::kGrhBytes)) continue;
    uint64_t bad_byte = 0;
    if (!carries(payload, *w, &bad_byte)) continue;
    ++w->deliveries;
    return;
  }
  fail("receiver %u: datagram of %u bytes that queue pair %u of node %d never sent to it, or too often", who.uid(),
       c.length, c.remote_id, static_cast<int>(sender_node));
}

}  // namespace ub::sim
