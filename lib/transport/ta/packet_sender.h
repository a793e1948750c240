// SPDX-License-Identifier: Apache-2.0
//
// Sends the messages of channels. Packets that have to be sent again come first, then the rest of the message that was
// begun, then answers, then requests. The channel says which packet is next (tp/transmit_state.h); this file knows what
// a message is made of. Channels of CTP, which have no such state, have a sender of their own (compact_sender.h).
//
// No packet is stored. The payload of a packet is gathered from its source (packet_source.h), and once more if the
// packet is sent again; tp/transmitter.h seals the frame. If that memory is gone, a fake packet takes the place of the
// packet, under the same PSN. If that memory answers later, the frame is held until it has answered
// (tp/held_packets.h).
#pragma once

#include <utility>

#include "lib/base/flatten.h"
#include "lib/transport/core_state.h"
#include "lib/transport/full_port.h"
#include "lib/transport/host.h"
#include "lib/transport/ta/compact_sender.h"
#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/packet_source.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/straight_sender.h"
#include "lib/transport/tp/transmitter.h"

namespace ub::ta {

template <class Host>
class PacketSender {
 public:
  PacketSender(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Sends at most `budget` packets; the channels with something to send take turns. Returns how many packets left.
  size_t send(size_t budget) { return s_.active.empty() ? 0 : send_in_turn(budget); }

 private:
  // This is one function together with all that it calls, because calls would cost as much as the work.
  [[gnu::hot]] UB_FLATTEN size_t send_in_turn(size_t budget) {
    size_t sent = 0;
    const uint32_t last_one = s_.active.back();  // each has one turn
    while (sent < budget) {
      const uint32_t channel = take_active(s_);
      tp::Channel& ch = s_.channels[channel];
      if (ch.is_up()) {
        const size_t sent_before = sent;
        const Sent last = ch.compact ? send_all_compact(channel, budget, &sent)
                                     : send_all([&] { return send_next(channel); }, budget, &sent);
        if (last == Sent::kNoRoom) [[unlikely]]
          found_no_room(channel, sent != sent_before);
        else if (last == Sent::kYes)
          activate(s_, channel);
        const bool work_left = ch.mid_message || !ch.answers.empty() || !ch.queues.empty();
        const bool held_back = last == Sent::kNothing && work_left && ch.held.empty();
        if (held_back != ch.held_back) hold_back(channel, held_back);
      }
      if (channel == last_one) break;
    }
    if (!s_.without_room.empty()) [[unlikely]]
      put_first<&tp::Channel::on_active_list>(s_.channels, std::exchange(s_.without_room, {}), s_.active);
    return sent;
  }

  // The port was full when the channel wanted to send a packet, after others of this turn or before any.
  [[gnu::noinline, gnu::cold]] void found_no_room(uint32_t channel, bool after_others) {
    if (s_.channels[channel].on_active_list) return;
    IndexList& line = after_others ? s_.active : s_.without_room;
    line.push_back<&tp::Channel::on_active_list>(s_.channels, channel);
  }

  // The channel begins to wait, or ends it.
  [[gnu::noinline]] void hold_back(uint32_t channel, bool yes) {
    tp::Channel& ch = s_.channels[channel];
    set_held_back(s_, &ch.held_back, yes);
    if (!yes || ch.compact || ch.paced || tp::window_open(s_, ch)) return;
    s_.count(channel, ChannelCount::kWindowShut);
  }

  // Calls `next` as long as packets leave, or are held, and the budget lasts. Returns its last result.
  template <class Next>
  static Sent send_all(Next next, size_t budget, size_t* sent) {
    Sent last = Sent::kYes;
    size_t n = *sent;  // in a register
    while (n < budget && (last == Sent::kYes || last == Sent::kHeld)) {
      last = next();
      n += last == Sent::kYes;
    }
    *sent = n;
    return last;
  }

  // A function of its own, so that it takes no registers of the one for RTP.
  [[gnu::noinline, gnu::hot]] UB_FLATTEN Sent send_all_compact(uint32_t channel, size_t budget, size_t* sent) {
    const tp::Channel& ch = s_.channels[channel];
    if (straight().is_usual(ch)) {
      const Sent last = straight().send_line(channel, budget, sent);
      if (last == Sent::kNoRoom || *sent == budget || (ch.queues.empty() && ch.in_flight.empty())) return last;
    }
    return send_rest_compact(channel, budget, sent);
  }
  [[gnu::noinline, gnu::hot]] UB_FLATTEN Sent send_rest_compact(uint32_t channel, size_t budget, size_t* sent) {
    return send_all([&] { return compact().send_next(channel); }, budget, sent);
  }

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
        return begin_message(channel);
    }
    return Sent::kNothing;
  }

  Sent begin_message(uint32_t channel) {
    tp::TxMessage* m = next_message(channel);
    return m == nullptr ? Sent::kNothing : send_first(channel, *m);
  }

  // Makes the next message the newest one in flight. nullptr: there is none, or it may not leave yet.
  tp::TxMessage* next_message(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    Lane& lane = lane_of(s_, ch);
    if (lane.unanswered == 0) ch.give_up_after = s_.config.channel_timeout;  // nobody's longer deadline is left
    if (tp::take_keepalive(ch)) return tp::begin_keepalive(s_, ch);
    if (!tp::window_open(s_, ch)) return nullptr;
    tp::TxMessage* m;
    if (!ch.answers.empty()) {
      m = tp::begin_message(s_, ch, ch.answers.front(s_.answers));
      if (m == nullptr) return nullptr;
      ch.answers.pop(s_.answers);
    } else {
      if (ch.queues.empty()) return nullptr;
      tp::TxMessage next{};
      if (!start_next_segment(s_, lane, channel, &next)) return nullptr;
      m = tp::begin_message(s_, ch, next);
      UB_ASSERT(m != nullptr);  // the pool holds a full window for every channel
    }
    ch.mid_message = true;
    return m;
  }

  // Sends the first packet of a message that was begun just now. The window is open. A request is alive, but a READ job
  // may have ended while its response waited for its turn.
  Sent send_first(uint32_t channel, tp::TxMessage& m) {
    const bool fake =
        m.kind == tp::MessageKind::kFake || (m.kind == tp::MessageKind::kReadResponse && !source().alive(m));
    return send_new(channel, m, fake);
  }

  Sent continue_message(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    tp::TxMessage& m = ch.in_flight.back(s_.messages);
    const bool fake = !source().alive(m);
    // A fake is exempt from the window, but not from the largest one: there its PSN would have the oldest one's place.
    const bool may_leave = fake ? ch.outstanding() < tp::kMaxWindow : tp::window_open(s_, ch);
    return may_leave ? send_new(channel, m, fake) : Sent::kNothing;
  }

  Sent send_new(uint32_t channel, tp::TxMessage& m, bool fake) {
    tp::Channel& ch = s_.channels[channel];
    const Psn psn = tp::next_new_psn(ch);
    if (!fake) return send_packet(channel, m, psn, false);
    const Sent sent = send_fake(channel, m, psn, false);
    if (sent == Sent::kYes) ch.mid_message = false;
    return sent;
  }

  Sent send_again(uint32_t channel, Psn psn) {
    tp::Channel& ch = s_.channels[channel];
    tp::TxMessage* m = tp::message_at(s_, ch, psn);
    UB_ASSERT(m != nullptr);  // only what is in flight goes again
    bool fake = !source().alive(*m);
    return fake ? send_fake(channel, *m, psn, true) : send_packet(channel, *m, psn, true);
  }

  // A fake packet leaves at once, so it has to wait until no packet is held that was built before it.
  Sent send_fake(uint32_t channel, tp::TxMessage& m, Psn psn, bool again) {
    if (!s_.channels[channel].held.empty()) return Sent::kPending;
    return send_instead(channel, m, psn, again, true) ? Sent::kYes : Sent::kNoRoom;
  }

  // Sends what takes the place of a packet whose source is gone; false: there is no room in the port.
  [[gnu::noinline, gnu::cold]] bool send_instead(uint32_t channel, tp::TxMessage& m, Psn psn, bool again, bool last) {
    if (fills_context(s_, m)) return send_filling_write(channel, m, psn, again, last);
    return transmitter().send_fake(channel, s_.now, m, psn, again, last);
  }

  // For the peer the message ends with this packet, whichever it is.
  bool send_filling_write(uint32_t channel, tp::TxMessage& m, Psn psn, bool again, bool last) {
    tp::Channel& ch = s_.channels[channel];
    const size_t most = ch.headers.size + wire::RtpHeader::kSize + wire::kMaxTransactionHeaderSize + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, most);
    if (frame == nullptr) return false;
    const wire::TaPacket ta = filling_write(m);
    const size_t ta_bytes = wire::write_transaction_headers(ta, frame + ch.headers.size + wire::RtpHeader::kSize);
    wire::RtpHeader rtp;
    rtp.last = true;
    rtp.psn = psn;
    rtp.tpmsn = m.tpmsn;
    rtp.ack_req = true;
    const size_t tp_bytes = wire::RtpHeader::kSize + ta_bytes;
    transmitter().write_header(ch, rtp, frame, tp_bytes);
    transmitter().send_frame(channel, s_.now, m, frame, ch.headers.size + tp_bytes + wire::kIcrcSize, psn, again, last);
    return true;
  }

  // ---- what it is made of ------------------------------------------------------------------------------------

  Sent send_packet(uint32_t channel, tp::TxMessage& m, Psn psn, bool again) {
    tp::Channel& ch = s_.channels[channel];
    wire::TaPacket ta;
    Payload payload;
    bool last = describe(s_, ch, m, psn.distance(m.first_psn), &ta, &payload);
    uint8_t padding = wire::padding_for(payload.bytes);
    wire::RtpHeader rtp;
    rtp.last = last;
    rtp.padding = padding;
    rtp.psn = psn;
    rtp.tpmsn = m.tpmsn;
    rtp.ack_req = tp::asks_for_ack(s_, ch, again);

    size_t most = ch.headers.size + wire::RtpHeader::kSize + wire::kMaxTransactionHeaderSize + payload.bytes + padding +
                  wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, most);
    if (frame == nullptr) return Sent::kNoRoom;
    std::byte* at = frame + ch.headers.size + wire::RtpHeader::kSize;
    at += wire::write_transaction_headers(ta, at);
    std::byte* end = at + payload.bytes;
    std::memset(end, 0, padding);
    end += padding;
    transmitter().write_header(ch, rtp, frame, static_cast<size_t>(end - frame) - ch.headers.size);

    note_step<Host>(s_, Stage::kPacketBuilt, channel, psn.value(), m.tpmsn.value());
    const Frame built{frame, at, static_cast<size_t>(end - frame) + wire::kIcrcSize};
    if (s_.config.slow_memory) return gather_slowly(channel, m, payload, built, rtp, again);
    uint32_t pending = 0;  // stays 0, because this memory answers at once
    if (source().gather(payload, {0, pending}, at) == CopyResult::kFailed) {
      host_.tx_abort(ch.link, frame);
      source().vanished(m);
      return Sent::kYes;  // the next turn sends the fake packet
    }
    note_step<Host>(s_, Stage::kPayloadGathered, channel, psn.value());
    return send_at_once(channel, m, payload, built, rtp, again);
  }

  struct Frame {
    std::byte* begin;
    std::byte* payload;
    size_t bytes;
  };

  Sent send_at_once(uint32_t channel, tp::TxMessage& m, const Payload& payload, const Frame& frame,
                    const wire::RtpHeader& rtp, bool again) {
    tp::Channel& ch = s_.channels[channel];
    const bool may_wait = m.kind == tp::MessageKind::kAnswer && payload.bytes == 0 && !again;
    transmitter().send_frame(channel, s_.now, m, frame.begin, frame.bytes, rtp.psn, again, rtp.last);
    if (rtp.last && !again) ch.mid_message = false;
    if (may_wait) host_.tx_may_wait(ch.link);
    return Sent::kYes;
  }

  // Memory may answer later. The packet leaves when it has answered and all packets that were built before have left.
  Sent gather_slowly(uint32_t channel, tp::TxMessage& m, const Payload& payload, const Frame& frame,
                     const wire::RtpHeader& rtp, bool again) {
    tp::Channel& ch = s_.channels[channel];
    HeldFrame& h = tp::take_held(s_, channel);
    h.message = &m;
    h.bytes = static_cast<uint32_t>(frame.bytes);
    h.psn = rtp.psn;
    h.again = again;
    h.last = rtp.last;
    const CopyResult copied = source().gather(payload, {s_.held.tag_of(h), h.pending}, frame.payload);
    if (copied == CopyResult::kFailed) {
      host_.tx_abort(ch.link, frame.begin);
      s_.held.free(h);
      source().vanished(m);
      return Sent::kYes;
    }
    if (copied == CopyResult::kDone && ch.held.empty()) {
      s_.held.free(h);
      return send_at_once(channel, m, payload, frame, rtp, again);
    }
    transmitter().hold(channel, s_.now, h, frame.begin);
    if (rtp.last && !again) ch.mid_message = false;
    return Sent::kHeld;
  }

  // The memory of the first held packet has answered. The packet leaves. If its message has lost its memory meanwhile,
  // a fake packet leaves in its place, and if it need not be sent any more, none does.
  Sent send_held(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    const HeldFrame& h = s_.held.first(ch.held);
    tp::TxMessage* m = tp::held_message(s_, ch, h);
    if (m != nullptr) {
      if (h.failed && source().alive(*m)) source().vanished(*m);
      const bool may_wait = m->kind == tp::MessageKind::kAnswer && m->value_bytes == 0 && !h.again;
      const uint32_t link = ch.link;
      const bool left = source().alive(*m) ? transmitter().send_held(channel, s_.now, *m, h)
                                           : send_instead(channel, *m, h.psn, h.again, h.last);
      if (!left) return Sent::kNoRoom;
      if (may_wait) host_.tx_may_wait(link);
    }
    tp::drop_first_held(s_, ch, s_.now);
    return Sent::kYes;
  }

  tp::Transmitter<Host> transmitter() { return {s_, host_}; }
  PacketSource<Host> source() { return {s_, host_}; }
  StraightSender<Host> straight() { return {s_, host_}; }
  CompactSender<Host> compact() { return {s_, host_}; }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
