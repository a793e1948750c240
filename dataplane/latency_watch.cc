// SPDX-License-Identifier: Apache-2.0
#include "dataplane/latency_watch.h"

#include <optional>
#include <utility>

#include "dataplane/placed_frame.h"
#include "lib/transport/held_frames.h"
#include "lib/transport/roce/qp.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/segmentation.h"

namespace ub {
namespace {

using enum LatencyStage;

// Numbers of queues, and those of queue pairs, as owners of what is measured.
constexpr uint32_t kQp = 1u << 31;
constexpr uint32_t kQueue = 1u << 30;  // where TPNs are owners, too, which have 24 bits

// Of a queue that was destroyed what was sent may be sent again, and is not told apart.
const WrState* started_request(const SendQueue& q, uint32_t number) {
  if (!q.in_use) return nullptr;
  return number - q.started_head < q.started_tail - q.started_head ? &q.work[number & q.work_mask] : nullptr;
}

OperationKind kind_of(WrOp op) {
  switch (op) {
    case WrOp::kWrite:
    case WrOp::kWriteImm:
    case WrOp::kWriteNotify:
      return OperationKind::kWrite;
    case WrOp::kRead:
      return OperationKind::kRead;
    case WrOp::kSend:
    case WrOp::kSendImm:
    case WrOp::kSendInvalidate:
      return OperationKind::kSend;
    default:
      return ta::is_atomic(op) ? OperationKind::kAtomic : OperationKind::kOther;
  }
}

}  // namespace

LatencyWatch::LatencyWatch(const CoreState& core, const roce::State* roce) : s_(core), roce_(roce) {
  accepted_ = accepted();
}

void LatencyWatch::clear() {
  latencies_.clear();
  kinds_.fill(0);
}

bool LatencyWatch::hear(uint64_t ns, const Note& n) {
  switch (n.stage) {
    case Stage::kPosted:
      posted(ns, n.object);
      break;
    case Stage::kRequestBegan:
      began(ns, n.object, n.a);
      break;
    case Stage::kDatagramSent:
      began(ns, n.a, s_.queues[n.a].started_tail - 1);
      break;
    case Stage::kQpPacketSent:
      qp_sent(ns, n.object, Psn(n.a), n.b);
      break;
    case Stage::kPacketSent:
    case Stage::kPacketFake:
      begin(sent_, kSentToAcknowledged, {s_.channels[n.object].tpn, n.a}, {ns, 0});
      break;
    case Stage::kPacketsAcknowledged:
      acknowledged(ns, n.object, n.a, n.b);
      break;
    case Stage::kQpRequestsAnswered:
      qp_answered(ns, n.object, n.a, n.b);
      break;
    case Stage::kRequestEnded:
      ended(ns, n.object, n.a);
      break;
    case Stage::kReceiveCompleted:
      completed_receive_ = true;
      completes(ns, n.object);
      break;
    case Stage::kPacketKept:
    case Stage::kQpPacketKept:
      kept_ = true;
      break;
    case Stage::kCopyAsked:
      copy_asked(uint64_t{n.object} << 32 | n.a);
      break;
    case Stage::kCopyDone:
    case Stage::kCopyFailed:
      copy_done(ns, uint64_t{n.object} << 32 | n.a);
      break;
    default:
      break;
  }
  return true;
}

// ---- requests --------------------------------------------------------------------------------------------------

void LatencyWatch::posted(uint64_t ns, uint32_t id) {
  const IdSlot& slot = s_.ids[id];
  if (slot.kind == ObjectKind::kJetty || slot.kind == ObjectKind::kJfs) {
    const uint32_t queue = s_.jettys[slot.record].queue;
    posted_to(ns, queue, s_.queues[queue]);
    if (s_.queues[queue].compact) await_compact(queue);
  } else if (slot.kind == ObjectKind::kQp && roce_ != nullptr) {
    posted_to(ns, kQp | id, roce_->qps[slot.record].ring);
  }
}

// What the Core has not read yet. Each slot is remembered, though a request may take several: nobody asks for the rest.
void LatencyWatch::posted_to(uint64_t ns, uint32_t owner, const SendRing& ring) {
  const uint32_t produced = ring.indices->produced.load(std::memory_order_relaxed);
  if (produced - ring.posted > ring.slot_mask + 1) return;
  for (uint32_t slot = ring.posted; slot != produced; ++slot) begin(posted_, kPostedToSent, {owner, slot}, {ns, 0});
}

void LatencyWatch::began(uint64_t ns, uint32_t queue, uint32_t number) {
  const WrState* request = started_request(s_.queues[queue], number);
  if (request == nullptr) return;
  end(kPostedToSent, class_of_request(queue, *request), posted_.find({queue, request->slot}), ns);
}

void LatencyWatch::ended(uint64_t ns, uint32_t queue, uint32_t number) {
  const SendQueue& q = s_.queues[queue];
  const WrState* request = started_request(q, number);
  if (request == nullptr) return;
  const TrafficClass traffic = class_of_request(queue, *request);
  end(kPostedToCompleted, traffic, posted_.take({queue, request->slot}), ns);
  if (traffic == TrafficClass::kCompact) end(kSentToAcknowledged, traffic, sent_.take({kQueue | queue, number}), ns);
  count_kind(q, request->slot);
  completes(ns, q.jfc);
}

void LatencyWatch::count_kind(const SendRing& ring, uint32_t slot) {
  ++kinds_[static_cast<size_t>(kind_of(ring.slots[slot & ring.slot_mask].op))];
}

void LatencyWatch::await_compact(uint32_t queue) {
  Waiting* free = nullptr;
  for (Waiting& w : waiting_) {
    if (w.queue == queue) return;
    if (w.queue == 0) free = &w;
  }
  if (free == nullptr) {
    ++latencies_.misses(kPostedToSent).forgotten;
    return;
  }
  *free = {queue, s_.queues[queue].started_tail};
  any_waits_ = true;
}

// Requests of CTP that have begun since the last look have left.
void LatencyWatch::see_compact(uint64_t ns, Waiting& waiting) {
  const SendQueue& q = s_.queues[waiting.queue];
  if (!q.in_use || q.started_tail - waiting.next > q.work_mask + 1) {
    waiting = {};
    return;
  }
  for (; waiting.next != q.started_tail; ++waiting.next) {
    const WrState* request = started_request(q, waiting.next);
    if (request == nullptr || request->channel == 0 || !s_.channels[request->channel].compact) continue;
    end(kPostedToSent, TrafficClass::kCompact, posted_.find({waiting.queue, request->slot}), ns);
    begin(sent_, kSentToAcknowledged, {kQueue | waiting.queue, waiting.next}, {ns, 0});
  }
  if (q.next_slot == q.posted) waiting = {};
}

TrafficClass LatencyWatch::class_of_request(uint32_t queue, const WrState& request) const {
  if (s_.queues[queue].unreliable) return TrafficClass::kDatagrams;
  return class_of(s_.channels[request.channel]);
}

// ---- packets that were sent ------------------------------------------------------------------------------------

void LatencyWatch::acknowledged(uint64_t ns, uint32_t channel, uint32_t from, uint32_t to) {
  const tp::Channel& ch = s_.channels[channel];
  for (Psn psn(from); psn != Psn(to) + 1; ++psn) {
    end(kSentToAcknowledged, class_of(ch), sent_.take({ch.tpn, psn.value()}), ns);
  }
}

// The last packet of a request counts, since its acknowledgement is that of the request.
void LatencyWatch::qp_sent(uint64_t ns, uint32_t qpn, Psn psn, uint32_t number) {
  const uint32_t index = roce::find_qp(s_, qpn);
  if (index == 0 || roce_ == nullptr) return;
  const roce::Qp& qp = roce_->qps[index];
  const uint32_t slot = qp.started[number & qp.work_mask].slot;
  const bool first = qp.requests[number & qp.work_mask].first_psn == psn;
  if (first) end(kPostedToSent, TrafficClass::kRoce, posted_.find({kQp | qpn, slot}), ns);
  if (qp.type == roce::QpType::kRc) begin(sent_, kSentToAcknowledged, {kQp | qpn, number}, {ns, slot});
}

void LatencyWatch::qp_answered(uint64_t ns, uint32_t qpn, uint32_t count, uint32_t end_of_answered) {
  const uint32_t index = roce::find_qp(s_, qpn);
  if (index == 0 || roce_ == nullptr) return;
  const roce::Qp& qp = roce_->qps[index];
  for (uint32_t number = end_of_answered - count; number != end_of_answered; ++number) {
    const std::optional<Start> sent = sent_.take({kQp | qpn, number});
    end(kSentToAcknowledged, TrafficClass::kRoce, sent, ns);
    if (!sent) continue;
    end(kPostedToCompleted, TrafficClass::kRoce, posted_.take({kQp | qpn, sent->what}), ns);
    count_kind(qp.ring, sent->what);
  }
  completes(ns, qp.jfc);
}

// ---- packets that arrive ---------------------------------------------------------------------------------------

// What grows with each packet that is taken.
uint64_t LatencyWatch::accepted() const {
  const Counters& c = s_.counters;
  return c[Counter::kTpRxData] + c[Counter::kCtpRx] + c[Counter::kUmRx] + c[Counter::kRoceRxRequest] +
         c[Counter::kRoceRxResponse];
}

void LatencyWatch::handled(uint64_t ns, std::span<const std::byte> eth_frame) {
  const bool took = std::exchange(accepted_, accepted()) != accepted_ || completed_receive_;
  if (kept_) {
    ++latencies_.misses(kReceivedToPlaced).unseen;
  } else if (took && !asked_) {
    const std::optional<TrafficClass> traffic = class_of_placed(s_, eth_frame);
    if (traffic) latencies_.record(kReceivedToPlaced, *traffic, ns - received_ns_);
  }
  kept_ = asked_ = completed_receive_ = false;
}

// Copies of one message have one tag. They count from the arrival of the newest packet of it until all are done.
void LatencyWatch::copy_asked(uint64_t tag) {
  if (HeldFrames::is_tag(tag)) return;  // for a frame that leaves
  asked_ = true;
  const auto known = copies_.find(tag);
  if (known != copies_.end()) {
    ++known->second.pending;
    known->second.received_ns = received_ns_;
  } else if (copies_.size() < kMostCopies) {
    copies_.insert({tag, {received_ns_, 1}});
  } else {
    ++latencies_.misses(kReceivedToPlaced).forgotten;
  }
}

void LatencyWatch::copy_done(uint64_t ns, uint64_t tag) {
  if (HeldFrames::is_tag(tag)) return;
  const auto known = copies_.find(tag);
  if (known == copies_.end()) {
    ++latencies_.misses(kReceivedToPlaced).no_start;
    return;
  }
  if (--known->second.pending != 0) return;
  const uint64_t prefix = copy_prefix_of(tag);
  const bool of_channel = prefix >= kCopyPrefixes;
  const std::optional<TrafficClass> traffic = of_channel    ? class_of_tpn(s_, ta::purpose_of(tag).tpn)
                                              : prefix == 0 ? TrafficClass::kDatagrams
                                                            : TrafficClass::kRoce;
  if (traffic) latencies_.record(kReceivedToPlaced, *traffic, ns - known->second.received_ns);
  copies_.erase(known);
}

// ---- completions -----------------------------------------------------------------------------------------------

// One is about to be written into the JFC, if the request has one.
void LatencyWatch::completes(uint64_t ns, uint32_t jfc) {
  const bool looked_at = taken_.note(s_, jfc, [&](uint32_t index) { completed(jfc, index); });
  if (!looked_at) ++latencies_.misses(kCompletedToPolled).forgotten;
  completed_ns_ = ns;
}

void LatencyWatch::completed(uint32_t jfc, uint32_t index) {
  const Jfc& j = s_.jfcs[jfc];
  const TrafficClass traffic = class_of_completion(j.slots[index & j.mask]);
  begin(completed_, kCompletedToPolled, {jfc, index}, {completed_ns_, static_cast<uint32_t>(traffic)});
}

TrafficClass LatencyWatch::class_of_completion(const Cqe& cqe) const {
  if (roce::find_qp(s_, cqe.local_id) != 0) return TrafficClass::kRoce;
  return class_of_tpn(s_, cqe.tpn).value_or(TrafficClass::kDatagrams);
}

void LatencyWatch::begin_turn(uint64_t ns) {
  const bool in_time = ns - looked_ns_ <= kLongestPauseNs;
  looked_ns_ = ns;
  taken_.each_taken(s_, [&](uint32_t jfc, uint32_t index) {
    const std::optional<Start> start = completed_.take({jfc, index});
    if (start && !in_time) {
      ++latencies_.misses(kCompletedToPolled).unseen;
    } else {
      end(kCompletedToPolled, start ? static_cast<TrafficClass>(start->what) : TrafficClass::kSmall, start, ns);
    }
  });
}

void LatencyWatch::end_turn(uint64_t ns) {
  taken_.each_new(s_, [this](uint32_t jfc, uint32_t index) { completed(jfc, index); });
  looked_ns_ = ns;
  if (!any_waits_) return;
  any_waits_ = false;
  for (Waiting& w : waiting_) {
    if (w.queue == 0) continue;
    see_compact(ns, w);
    any_waits_ |= w.queue != 0;
  }
}

}  // namespace ub
