// SPDX-License-Identifier: Apache-2.0
//
// Sends straight requests (routes.h) by channels of CTP: the packet is written at once, from the element, and not
// described first (docs/straight-path-design.md). A channel on which anything else is to be sent is left to
// compact_sender.h.
#pragma once

#include "lib/base/flatten.h"
#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/seal_and_commit.h"
#include "lib/transport/setup/compact_life.h"
#include "lib/transport/ta/begin_segment.h"
#include "lib/transport/ta/compact_frame.h"
#include "lib/transport/ta/packet_source.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/routes.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/send_ring.h"
#include "lib/transport/ta/silent_requests.h"
#include "lib/transport/wire/extension_headers.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

template <class Host>
class StraightSender {
 public:
  StraightSender(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Has the channel nothing about it that this sender does not know?
  bool is_usual(const tp::Channel& ch) const {
    return s_.config.straight && ch.answers.empty() && ch.repeats == 0 && !has_silent(s_, ch);
  }

  // Sends answers of success without data that wait in the channel, and then straight requests of the queues in line,
  // as long as the next packet is one of these and the budget lasts. The channel must be a usual one.
  Sent send_line(uint32_t channel, size_t budget, size_t* sent) {
    tp::Channel& ch = s_.channels[channel];
    Sent last = Sent::kYes;
    while (!ch.in_flight.empty()) {
      const tp::TxMessage& m = ch.in_flight.front(s_.messages);
      if (*sent == budget) return Sent::kYes;
      if (!is_taack(m)) return Sent::kNothing;
      if (!write_taack(channel, m)) return Sent::kNoRoom;
      ch.in_flight.pop(s_.messages);
      ++*sent;
    }
    Lane& lane = lane_of(s_, ch);
    while (*sent < budget && last == Sent::kYes) {
      if (ch.queues.empty() || lane.unanswered >= ch.most_unanswered) return Sent::kNothing;
      const bool idle = begin(lane, ch);
      tp::TxMessage m{};
      if (!start_straight(s_, lane, channel, &m)) return Sent::kNothing;
      last = send(channel, m, idle);
      *sent += last == Sent::kYes;
    }
    return last;
  }

  // The doorbell of a queue that stands in no line, while nothing else of this Core is to be sent: sends what was
  // posted if it is straight. True: nothing is left. False: the general path goes on from here.
  bool send_posted(uint32_t queue, size_t budget, size_t* sent) {
    SendQueue& q = s_.queues[queue];
    if (q.waits_for != 0) [[unlikely]]
      return false;
    if (q.next_slot == q.posted && see_posted(q)) fetch(q);
    const uint32_t channel = straight_channel(s_, q, queue);
    if (channel == 0 || !is_idle(s_.channels[channel])) [[unlikely]]
      return false;
    tp::Channel& ch = s_.channels[channel];
    Lane& lane = lane_of(s_, ch);
    set_held_back(s_, &q.held_back, false);
    do {
      if (*sent == budget || lane.unanswered >= ch.most_unanswered || !result_fits(s_, q)) [[unlikely]]
        return false;
      const bool idle = begin(lane, ch);
      tp::TxMessage m{};
      begin_straight(s_, lane, queue, channel, &m);
      const Sent last = send(channel, m, idle);
      if (last != Sent::kYes) {
        tp::activate(s_, channel);
        return false;
      }
      ++*sent;
      if (q.next_slot == q.indices->produced.load(std::memory_order_relaxed)) [[likely]]
        return true;
    } while (straight_channel(s_, q, queue) == channel);
    return false;
  }

 private:
  // Has the channel nothing to do, and does it wait for nothing?
  bool is_idle(const tp::Channel& ch) const {
    return ch.compact && is_usual(ch) && ch.in_flight.empty() && ch.queues.empty() && !ch.on_active_list &&
           !ch.held_back;
  }

  // A request is about to begin. Was no answer awaited?
  bool begin(const Lane& lane, tp::Channel& ch) const {
    const bool idle = lane.unanswered == 0;
    if (idle) ch.give_up_after = s_.config.channel_timeout;  // nobody's longer deadline is left
    return idle;
  }

  // Sends a request that has begun; if its port is full, it waits in the channel.
  Sent send(uint32_t channel, tp::TxMessage& m, bool idle) {
    if (idle) setup::await_answers(s_, channel);
    const Sent sent = write(channel, m);
    if (sent == Sent::kNoRoom) [[unlikely]]
      let_wait(s_, s_.channels[channel], m);
    return sent;
  }

  // Does the message say that WRITEs or SENDs of a queue were executed, and nothing else?
  static bool is_taack(const tp::TxMessage& m) {
    return m.kind == tp::MessageKind::kAnswer && m.opcode == wire::TaOpcode::kTaack && m.rspst == wire::kRspOk &&
           m.source <= kAnswerRcid;
  }

  // Writes and sends it. False: there is no room in the port.
  bool write_taack(uint32_t channel, const tp::TxMessage& m) {
    constexpr uint8_t kPadding = wire::compact_padding_for(wire::Atah::kSize);
    constexpr size_t kBytes = wire::CompactTemplate::kSize + wire::Atah::kSize + kPadding + wire::kIcrcSize;
    tp::Channel& ch = s_.channels[channel];
    std::byte* const frame = host_.tx_begin(ch.link, kBytes);
    if (frame == nullptr) [[unlikely]]
      return false;
    ch.compact_headers.write(frame, kPadding);
    wire::Atah answer;
    answer.opcode = wire::TaOpcode::kTaack;
    answer.tassn = m.tassn;
    answer.rspinfo = m.rspinfo;
    answer.rc_id = m.source;
    std::byte* const at = frame + wire::CompactTemplate::kSize;
    answer.write(at);
    std::memset(at + wire::Atah::kSize, 0, kPadding);
    seal_and_commit(s_, host_, ch.link, frame, kBytes, CompactIcrc{ch.icrc});
    count_compact(s_, ch);
    note_step<Host>(s_, Stage::kCompactSent, channel, m.tassn.value());
    host_.tx_may_wait(ch.link);
    return true;
  }

  // Writes and sends the packet. kNothing: its memory is gone.
  Sent write(uint32_t channel, tp::TxMessage& m) {
    tp::Channel& ch = s_.channels[channel];
    const SendQueue& q = s_.queues[m.source];
    const Wqe& wqe = wqe_of(q, q.work[m.work_request & q.work_mask]);
    const bool token = (wqe.flags & kWrToken) != 0;
    const bool writes = wqe.op == WrOp::kWrite;
    const uint32_t payload = writes ? wqe.length : 0;
    const size_t size = wire::Btah::kSize + wire::Maetah::kSize + (token ? wire::Tvetah::kSize : 0) + payload;
    const uint8_t padding = wire::compact_padding_for(size);
    const size_t bytes = wire::CompactTemplate::kSize + size + padding + wire::kIcrcSize;
    std::byte* const frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return Sent::kNoRoom;

    ch.compact_headers.write(frame, padding);
    std::byte* at = frame + wire::CompactTemplate::kSize;
    wire::Btah request;
    request.opcode = writes ? wire::TaOpcode::kWrite : wire::TaOpcode::kRead;
    request.tv_en = token;
    request.tassn = m.tassn;
    request.rc_id = q.rcid;
    request.write(at);
    at += wire::Btah::kSize;
    wire::Maetah{wqe.remote_address, wqe.token_id, wqe.length}.write(at);
    at += wire::Maetah::kSize;
    if (token) {
      wire::Tvetah{wqe.token_value}.write(at);
      at += wire::Tvetah::kSize;
    }
    if (writes && !gather(q.owner, wqe, at)) [[unlikely]] {
      host_.tx_abort(ch.link, frame);
      PacketSource<Host>(s_, host_).vanished(m);
      return Sent::kNothing;
    }
    std::memset(at + payload, 0, padding);
    seal_and_commit(s_, host_, ch.link, frame, bytes, CompactIcrc{ch.icrc});
    count_compact(s_, ch);
    note_step<Host>(s_, Stage::kCompactSent, channel, m.tassn.value());
    return Sent::kYes;
  }

  // False: its memory is not there.
  bool gather(Owner owner, const Wqe& wqe, std::byte* dst) {
    const std::byte* const src =
        wqe.sge.length < wqe.length ? nullptr : local_memory(s_, owner, wqe.sge.segment, wqe.sge.address, wqe.length);
    // This memory answers at once, and needs no tag for it.
    return src != nullptr && host_.gather(dst, src, wqe.length, 0) != CopyResult::kFailed;
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
