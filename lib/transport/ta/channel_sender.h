// SPDX-License-Identifier: Apache-2.0
//
// Sends the messages of channels: what is to be sent again first, then the message that was begun, then answers, then
// requests. The channel says what its turn is (tp/transmit_state.h); here it is known what a message is made of.
//
// A packet's payload is gathered from the memory of its work request or READ job, also when it goes again: no
// packet is stored. Where that memory is gone, a fake packet takes its place under the same PSN.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/initiator.h"
#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/tp/transmitter.h"

namespace ub::ta {

template <class Host>
class ChannelSender {
 public:
  ChannelSender(CoreState& s, Host& host, tp::Transmitter<Host>& transmitter)
      : s_(s), host_(host), transmitter_(transmitter) {}

  // At most `budget` packets, of all channels with something to send in turn; returns how many left.
  // One function with all that it calls: calls would cost as much as the work.
  [[gnu::flatten]] size_t send(size_t budget) {
    size_t sent = 0;
    uint32_t turns = s_.active_count;
    while (turns-- > 0 && sent < budget) {
      const uint32_t channel = take_active(s_);
      tp::Channel& ch = s_.channels[channel];
      if (!ch.is_up()) continue;
      Sent last = Sent::kYes;
      while (sent < budget && last == Sent::kYes) {
        last = send_next(channel);
        sent += last == Sent::kYes;
      }
      if (last == Sent::kYes || last == Sent::kNoRoom) activate(s_, channel);
      const bool work_left = ch.mid_message || !ch.answers.empty() || ch.queue_head != 0;
      set_held_back(s_, &ch.held_back, last == Sent::kNothing && work_left);
    }
    return sent;
  }

 private:
  enum class Sent : uint8_t { kYes, kNothing, kNoRoom, kPending };

  // ---- which packet ------------------------------------------------------------------------------------------

  Sent send_next(uint32_t channel) {
    Psn psn;
    switch (tp::next_turn(s_, s_.channels[channel], &psn)) {
      case tp::Turn::kNothing:
        return Sent::kNothing;
      case tp::Turn::kWaits:
        return Sent::kPending;
      case tp::Turn::kHeld:
        return send_held(channel);
      case tp::Turn::kSendAgain:
        return send_again(channel, psn);
      case tp::Turn::kContinue:
        return continue_message(channel);
      case tp::Turn::kBegin:
        return begin_next_message(channel) ? send_first(channel) : Sent::kNothing;
    }
    return Sent::kNothing;
  }

  // Makes the next message the newest one in flight.
  bool begin_next_message(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.unanswered == 0) ch.give_up_after = s_.config.channel_timeout;  // nobody's longer deadline is left
    if (tp::take_keepalive(ch)) return tp::begin_keepalive(s_, ch);
    if (!tp::window_open(ch)) return false;
    if (!ch.answers.empty()) {
      if (tp::begin_message(s_, ch, ch.answers.front(s_.messages)) == nullptr) return false;
      ch.answers.pop(s_.messages);
    } else {
      if (ch.queue_head == 0) return false;
      tp::TxMessage next{};
      if (!start_next_segment(s_, channel, &next)) return false;
      const tp::TxMessage* m = tp::begin_message(s_, ch, next);
      UB_ASSERT(m != nullptr);  // the pool holds a full window for every channel
    }
    ch.mid_message = true;
    return true;
  }

  // Of a message begun just now: the window is open and a request is alive, but a READ job may have ended while its
  // answer waited.
  Sent send_first(uint32_t channel) {
    tp::TxMessage& m = s_.channels[channel].in_flight.back(s_.messages);
    const bool fake =
        m.kind == tp::MessageKind::kFake || (m.kind == tp::MessageKind::kReadResponse && !source_alive(m));
    return send_new(channel, m, fake);
  }

  Sent continue_message(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    tp::TxMessage& m = ch.in_flight.back(s_.messages);
    const bool fake = !source_alive(m);
    if (!fake && !tp::window_open(ch)) return Sent::kNothing;
    return send_new(channel, m, fake);
  }

  Sent send_new(uint32_t channel, tp::TxMessage& m, bool fake) {
    return fake ? send_fake(channel, m, s_.channels[channel].next_psn, false)
                : send_packet(channel, m, m.packets, false);
  }

  Sent send_again(uint32_t channel, Psn psn) {
    tp::Channel& ch = s_.channels[channel];
    tp::TxMessage* m = tp::message_at(s_, ch, psn);
    UB_ASSERT(m != nullptr);  // only what is in flight goes again
    uint32_t index = psn.distance(m->first_psn);
    bool fake = !source_alive(*m);
    return fake ? send_fake(channel, *m, psn, true) : send_packet(channel, *m, index, true);
  }

  Sent send_fake(uint32_t channel, const tp::TxMessage& m, Psn psn, bool again) {
    return transmitter_.send_fake(channel, s_.now, m, psn, again) ? Sent::kYes : Sent::kNoRoom;
  }

  // ---- what it is made of ------------------------------------------------------------------------------------

  // A fake message has no source.
  bool has_source(const tp::TxMessage& m) {
    switch (m.kind) {
      case tp::MessageKind::kRequest:
        return request_of(s_, m) != nullptr;
      case tp::MessageKind::kReadResponse:
        return job_of(s_, m) != nullptr;
      default:
        return m.kind == tp::MessageKind::kAnswer;
    }
  }
  bool source_alive(tp::TxMessage& m) {
    if (!m.vanished) m.vanished = !has_source(m);
    return !m.vanished;
  }

  Sent send_packet(uint32_t channel, tp::TxMessage& m, uint32_t index, bool again) {
    tp::Channel& ch = s_.channels[channel];
    wire::TaPacket ta;
    Payload payload;
    bool last = describe(s_, ch, m, index, &ta, &payload);
    uint8_t padding = wire::padding_for(payload.bytes);
    wire::RtpHeader rtp;
    rtp.last = last;
    rtp.padding = padding;
    rtp.psn = again ? m.first_psn + index : ch.next_psn;
    rtp.tpmsn = m.tpmsn;
    rtp.ack_req = tp::asks_for_ack(ch, again);

    size_t most = ch.headers.size + wire::RtpHeader::kSize + wire::kMaxTransactionHeaderSize + payload.bytes + padding +
                  wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, most);
    if (frame == nullptr) return Sent::kNoRoom;
    std::byte* at = frame + ch.headers.size + wire::RtpHeader::kSize;
    at += wire::write_transaction_headers(ta, at);
    std::byte* end = at + payload.bytes;
    std::memset(end, 0, padding);
    end += padding;
    transmitter_.write_header(ch, rtp, frame, static_cast<size_t>(end - frame) - ch.headers.size);

    CopyResult copied = gather(ch, payload, at);
    if (ch.gathers_pending != 0) ch.gather_since = s_.now;
    size_t bytes = static_cast<size_t>(end - frame) + wire::kIcrcSize;
    if (copied == CopyResult::kFailed) {
      host_.tx_abort(ch.link, frame);
      payload_vanished(m);
      return Sent::kYes;  // the next turn sends the fake packet
    }
    if (copied == CopyResult::kPending) {
      transmitter_.hold(channel, frame, bytes, rtp.psn, again);
      return Sent::kPending;
    }
    const bool may_wait = m.kind == tp::MessageKind::kAnswer && payload.bytes == 0 && !again;
    transmitter_.send_frame(channel, s_.now, frame, bytes, rtp.psn, again, last);
    if (may_wait) host_.tx_may_wait(ch.link);
    return Sent::kYes;
  }

  // Memory that answers later has answered: the packet leaves, unless what it was part of is gone by now.
  Sent send_held(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    tp::TxMessage* m = tp::held_message(s_, ch);
    const bool alive = m != nullptr && source_alive(*m);
    if (alive && !ch.gather_failed) {
      if (!transmitter_.send_held(channel, s_.now)) return Sent::kNoRoom;
    } else if (alive) {
      payload_vanished(*m);
    }
    ch.gather_held = ch.gather_failed = false;
    return Sent::kYes;
  }

  // Local memory of a request is not there (any more).
  void payload_vanished(tp::TxMessage& m) {
    if (m.kind == tp::MessageKind::kRequest) {
      uint32_t queue = m.source;
      uint32_t number = m.work_request;
      give_up(s_, queue, number, CrStatus::kLocAccess);
      retire_requests(s_, queue);
      schedule_queue(s_, queue);
    } else {
      abort_job(s_, m.source);
    }
  }

  CopyResult gather(tp::Channel& ch, const Payload& p, std::byte* dst) {
    if (p.gone) return CopyResult::kFailed;
    if (p.bytes == 0) return CopyResult::kDone;
    if (p.answer != nullptr) {
      store_operand_be(dst, make_uint128(p.answer->value, p.answer->value_high), p.bytes);
      return CopyResult::kDone;
    }
    if (p.atomic_operands) {
      // Operand 1 is the swap value or operand, operand 2 what is compared; both always travel, little-endian.
      const uint128 operand = operand_of(*p.wqe), compare = compare_of(*p.wqe);
      const uint32_t each = p.bytes / 2;
      std::memcpy(dst, &operand, each);
      std::memcpy(dst + each, &compare, each);
      return CopyResult::kDone;
    }
    const Copies copies{gather_tag(ch.tpn), ch.gathers_pending};
    if (p.memory != nullptr) return gather_piece(host_, copies, dst, p.memory, p.bytes);
    return gather_request(s_, host_, copies, *p.wqe, p.owner, p.offset, p.bytes, dst);
  }

  static void store_operand_be(std::byte* dst, uint128 value, uint32_t bytes) {
    switch (bytes) {
      case 16:
        return store_be128(dst, value);
      case 8:
        return store_be64(dst, low_half(value));
      default:
        return store_be32(dst, static_cast<uint32_t>(value));
    }
  }

  CoreState& s_;
  Host& host_;
  tp::Transmitter<Host>& transmitter_;
};

}  // namespace ub::ta
