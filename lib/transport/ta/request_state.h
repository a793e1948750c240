// SPDX-License-Identifier: Apache-2.0
//
// Started requests of a send queue: finds the request of a message, and keeps the counters of segments, which change
// when a request is started, answered or given up.
#pragma once

#include <algorithm>
#include <bit>

#include "lib/transport/core_state.h"
#include "lib/transport/ta/repeated_requests.h"
#include "lib/transport/ta/segmentation.h"

namespace ub::ta {

// Why the next request of a queue may not start.
enum class RequestWaits : uint8_t { kFence, kOrder, kReceive, kAnswers, kRate, kLane };

inline Wqe& wqe_of(const SendQueue& q, const WrState& wr) { return q.slots[wr.slot & q.slot_mask]; }

// The request that a message is a part of, or nullptr if it is finished, flushed or gone.
inline WrState* request_of(CoreState& s, const tp::TxMessage& message) {
  SendQueue& q = s.queues[message.source];
  if (!q.in_use || q.generation != message.generation) return nullptr;
  if (message.work_request - q.started_head >= q.started_tail - q.started_head) return nullptr;
  WrState& wr = q.work[message.work_request & q.work_mask];
  return wr.done ? nullptr : &wr;
}
// The bit of a segment in WrState::answered and WrState::refused.
inline uint64_t segment_bit(uint32_t segment) { return uint64_t{1} << (segment % kSegmentsInFlight); }

// Is an answer to any of its segments awaited?
inline bool in_flight(const WrState& wr) {
  const uint32_t count = uint32_t{wr.cut} - wr.base;  // at most kSegmentsInFlight
  if (count == 0) return false;
  const uint64_t sent = ~uint64_t{0} >> (kSegmentsInFlight - count);
  return (std::rotl(sent, wr.base % kSegmentsInFlight) & ~(wr.answered | wr.refused)) != 0;
}

// Something was heard of the request, or a segment of it was sent: its deadline starts anew. It has one only while an
// answer is awaited, since nobody is to blame for a request that waits for others.
inline void renew_deadline(CoreState& s, const SendQueue& q, WrState& wr) {
  wr.deadline = in_flight(wr) ? s.now + q.request_timeout : Instant::never();
}
// Packets of a request were acknowledged. If it was refused meanwhile, it has no deadline until it goes again.
inline void on_progress(CoreState& s, const tp::TxMessage& message) {
  WrState* wr = request_of(s, message);
  if (wr != nullptr && !wr->deadline.is_never()) wr->deadline = s.now + s.queues[message.source].request_timeout;
}

// Messages were acknowledged. The time of the one that the peer is to acknowledge next begins, since it has waited for
// those in front of it.
inline void begin_turn_of_next(CoreState& s, tp::Channel& ch) {
  if (ch.in_flight.empty()) return;
  const tp::TxMessage& next = ch.in_flight.front(s.messages);
  if (next.kind == tp::MessageKind::kRequest) on_progress(s, next);
}

// 8.2.2.3: in which states are segments of admitted requests sent, and in which are posted requests handed back?
constexpr bool sends_admitted(QueueState state) {
  return state == QueueState::kReady || state == QueueState::kSuspended;
}
constexpr bool hands_back(QueueState state) { return state == QueueState::kError || state == QueueState::kSuspended; }

// 8.2.2.3: no further request of the queue is started. Those that were admitted go on to their end; then the completion
// kWrSuspendDone says so.
inline void suspend_queue(const CoreState& s, SendQueue& q) {
  q.state = QueueState::kSuspended;
  q.marker_pending = true;
  s.note(Stage::kQueueState, static_cast<uint32_t>(&q - &s.queues[0]), static_cast<uint32_t>(q.state));
}

// A request of the queue fails, for the first reason if there are several.
inline void fail_request(const CoreState& s, SendQueue& q, WrState& wr, CrStatus status) {
  if (wr.status == CrStatus::kSuccess) wr.status = status;
  if (q.suspends && q.state == QueueState::kReady) suspend_queue(s, q);
}

// Counts a segment of the queue. `by`: 1 if it becomes unanswered, -1 if it no longer is.
inline void count_segment(SendQueue& q, WrOp op, int by) {
  q.unanswered_segments += by;
  if (is_fenced(op)) q.unanswered_fenced += by;
  if (takes_receive(op)) q.receives_in_flight += by;
}

// A segment that was sent on the lane of this channel was answered, or its answer is no longer awaited.
inline void count_answer(CoreState& s, const tp::Channel& ch) {
  Lane& lane = lane_of(s, ch);
  UB_DCHECK(lane.unanswered != 0);
  if (lane.unanswered-- != ch.most_unanswered) return;
  for (uint32_t channel : lane.channels) {
    if (channel != 0) activate(s, channel);
  }
}

inline bool bulk_message(const CoreState& s, const Wqe& wqe) {
  return s.config.lanes > 1 && wqe.length > s.config.lane_bulk_bytes;
}

// Do channels of ROL keep the order of what this queue sends to this peer (7.3.3)?
inline bool ordered_by_channel(const CoreState& s, const SendQueue& q, uint32_t peer) {
  return q.rol && !s.peers[peer].refuses_rol;
}

// Does a channel of CTP keep the order of what this queue of ROL sends to this peer? Once it has left that, RTP does.
inline bool compact_keeps_order(const CoreState& s, const SendQueue& q, uint32_t peer) {
  return s.peers[peer].compact_rol && !q.long_messages && ordered_by_channel(s, q, peer);
}

// Can CTP carry the request? A WRITE is cut into segments of one packet each, unless it is long. A READ is not: if a
// segment of it were refused, the last one would come before it. Not inlined, because the registers that it takes would
// cost the requests of RTP more than a call costs those of CTP.
[[gnu::noinline]] inline bool fits_compact(const CoreState& s, const SendQueue& q, const Wqe& wqe) {
  if (!q.compact || (q.long_messages && takes_receive(wqe.op))) return false;
  const uint32_t target_peer = s.targets[wqe.target].peer;
  if (q.rol && !compact_keeps_order(s, q, target_peer)) return false;
  const Peer& peer = s.peers[target_peer];
  const uint32_t channel = peer.lanes[q.rol ? kOrderedCompactLane : kCompactLane].channels[0];
  const bool loses = channel == 0 ? peer.compact_loses : s.channels[channel].repeats != 0;
  if (loses && !may_be_repeated(s, q, wqe, target_peer)) return false;
  const bool agreed = channel != 0 && s.channels[channel].is_up();
  const uint32_t mtu = agreed ? s.channels[channel].mtu : peer.compact_mtu;
  return wqe.length <= (wqe.op == WrOp::kWrite ? std::min(s.config.lane_bulk_bytes, kMostCompactBytes) : mtu);
}

// A message that takes a receive is too long for CTP: those behind it go by RTP, too, or each change between the lanes
// would cost a round trip.
inline void note_long_message(const Peer& peer, SendQueue& q, uint8_t lane) {
  if (peer.compact_mtu != 0 && !is_compact(lane)) q.long_messages = true;
}

// The lane of a request, which names a target.
inline LaneKind lane_of_request(const CoreState& s, const SendQueue& q, const Wqe& wqe) {
  const uint32_t peer = s.targets[wqe.target].peer;
  const bool compact = s.peers[peer].compact_mtu != 0 && fits_compact(s, q, wqe);
  if (compact) return q.rol ? kOrderedCompactLane : kCompactLane;
  const bool ordered = ordered_by_channel(s, q, peer);
  return lane_kind(ordered, q.pinned_bulk || bulk_message(s, wqe));
}

// The place in this lane of the channel that the requests of this queue begin on.
inline uint32_t place_of(const CoreState& s, const SendQueue& q, uint32_t lane) {
  return is_compact(lane) ? 0 : q.jetty & (s.config.channels_per_lane - 1);
}

// The oldest unfinished request that asks for an order, or that takes a receive: request `number`, or an older one. A
// cursor of the queue remembers how far the search came, because requests that it has passed need not be looked at
// again.
template <class Concerns>
uint32_t oldest_unfinished(const SendQueue& q, uint32_t& cursor, uint32_t number, Concerns concerns) {
  if (cursor - q.started_head > number - q.started_head) cursor = q.started_head;
  for (; cursor != number; ++cursor) {
    const WrState& wr = q.work[cursor & q.work_mask];
    if (!wr.done && concerns(wr, wqe_of(q, wr))) break;
  }
  return cursor;
}
inline uint32_t oldest_ordered(SendQueue& q, uint32_t number) {
  return oldest_unfinished(q, q.ordered_from, number,
                           [](const WrState&, const Wqe& wqe) { return wqe.place_order != 0; });
}
inline uint32_t oldest_receive(SendQueue& q, uint32_t number) {
  return oldest_unfinished(q, q.receives_from, number,
                           [](const WrState&, const Wqe& wqe) { return takes_receive(wqe.op); });
}

// Are receives taken in the order of the requests, even if some requests are refused? In RC they are.
inline bool keeps_receive_order(const CoreState& s, const SendQueue& q) { return s.jettys[q.jetty].mode == Mode::kRc; }

}  // namespace ub::ta
