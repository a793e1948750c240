// SPDX-License-Identifier: Apache-2.0
//
// Receives the packets of a channel and delivers what is in them: requests go to target_executor.h, the bytes of READ
// and atomic responses to response_placer.h, and answers to receive_answer.h.
//
// The payload of a WRITE or READ response packet is placed when it arrives, in any order. Everything else happens at
// delivery, in PSN order. Beyond a gap a packet is placed only if it carries a full MTU, is not the last one of its
// message and passes the checks, on a channel with read-meta; any other is kept until its delivery.
//
// If memory answers later, a message whose end waits for its copies is parked (parked_messages.h), and delivery goes on
// behind it. If there is no record to park it in, delivery stops there.
#pragma once

#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/message_admission.h"
#include "lib/transport/ta/parked_messages.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/response_placer.h"
#include "lib/transport/ta/send_answer.h"
#include "lib/transport/ta/target_executor.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/send_ack.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

template <class Host>
class PacketReceiver {
 public:
  PacketReceiver(CoreState& s, Host& host) : s_(s), host_(host) {}

  // A data packet of an open channel. `rest`: what lies between the transport header and the ICRC.
  void on_data(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    tp::RxVerdict verdict = tp::classify(s_, ch, rtp.psn);
    switch (verdict) {
      case tp::RxVerdict::kDuplicate:
        on_duplicate(channel, rtp);
        break;
      case tp::RxVerdict::kBeyondWindow:
        note_of<Host>(s_, Stage::kPacketTooFarAhead, channel, rtp.psn.value(), rtp.tpmsn.value());
        s_.count(Counter::kTpRxBeyondWindow);
        return refuse(channel, rtp, verdict);
      case tp::RxVerdict::kAhead:
        note_of<Host>(s_, Stage::kPacketAhead, channel, rtp.psn.value(), rtp.tpmsn.value());
        if (!take_ahead(channel, rtp, rest)) return refuse(channel, rtp, verdict);
        s_.count(Counter::kTpRxOutOfOrder);
        s_.count(Counter::kTpRxData);
        break;
      case tp::RxVerdict::kInOrder:
        note_step<Host>(s_, Stage::kPacketNext, channel, rtp.psn.value(), rtp.tpmsn.value());
        if (!take_in_order(channel, rtp, rest)) return refuse(channel, rtp, verdict);
        s_.count(Counter::kTpRxData);
        break;
    }
    if (ch.is_up()) tp::note_for_ack(s_, channel, s_.now, rtp, verdict);
  }

  void on_placed(const CopyPurpose& purpose, bool ok) {
    const uint32_t channel = setup::channel_of_tpn(s_, purpose.tpn);
    if (purpose.kind == CopyKind::kPlaceResponse) {
      responses().on_placed(purpose, ok);
      if (channel != 0) resume_others(channel);
    } else if (channel == 0) {
      dead_copy_done(s_, purpose.tpn, purpose.message);
    } else {
      message_copied(channel, purpose.message, ok);
    }
    if (channel != 0 && s_.channels[channel].stalled) resume(channel);
  }

  // Delivery has stopped for a copy or for lack of room. It goes on if it can.
  void resume(uint32_t channel) {
    end_parked(channel);
    s_.channels[channel].stalled = false;
    deliver_accepted(channel);
    if (s_.channels[channel].rol) tp::owe_fused_ack(s_, channel, s_.now);  // which says how far it has come
  }

 private:
  enum class Delivery : uint8_t { kDone, kWaits, kNoRoom };

  // A copy of a response is done. Other channels of the same peer may wait for it, because they carry other segments of
  // the same request.
  void resume_others(uint32_t channel) {
    const uint32_t peer = s_.channels[channel].peer;
    for (const Lane& lane : s_.peers[peer].lanes) {
      resume_stalled(lane.channels);
      resume_stalled(lane.accepted);
    }
  }
  // In a place without a channel there is channel 0, which never stalls.
  void resume_stalled(std::span<const uint32_t> channels) {
    for (const uint32_t channel : channels.first(s_.config.channels_per_lane)) {
      if (s_.channels[channel].stalled) resume(channel);
    }
  }

  static constexpr Duration kRoomPause = milliseconds(1);

  // ---- order -------------------------------------------------------------------------------------------------

  // On ROL a fake packet under a PSN that was accepted confirms a failure.
  void on_duplicate(uint32_t channel, const wire::RtpHeader& rtp) {
    note_of<Host>(s_, Stage::kPacketDuplicate, channel, rtp.psn.value(), rtp.tpmsn.value());
    s_.count(Counter::kTpRxDuplicate);
    if (rtp.fake && tp::thaw(s_.channels[channel], rtp)) resume(channel);
  }

  // There is no room for the packet now, so the peer sends it again. While this side waits for memory, the peer cannot
  // know that and would take us for dead. So an acknowledgement tells it what was accepted before.
  void refuse(uint32_t channel, const wire::RtpHeader& rtp, tp::RxVerdict verdict) {
    const tp::Channel& ch = s_.channels[channel];
    const bool waits = ch.stalled || ch.open.copies != 0 || ch.parked != 0;
    note_of<Host>(s_, Stage::kPacketRefused, channel, rtp.psn.value());
    if (waits) tp::note_for_ack(s_, channel, s_.now, rtp, verdict);
  }

  bool take_in_order(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.delivered == ch.expected) {
      Delivery d = deliver(channel, rtp, rest);
      if (d == Delivery::kWaits) note_of<Host>(s_, Stage::kMessageWaits, channel, ch.message.value());
      if (d == Delivery::kNoRoom) {
        s_.drop(Counter::kRxNoAnswerRoom);
        return false;
      }
      if (d == Delivery::kDone) {
        if (!ch.is_up()) return false;
        tp::accept_in_order(s_, ch);
        tp::delivered_one(s_, ch);
        if (ch.reorder != 0) deliver_accepted(channel);
        return true;
      }
    }
    // The packet comes behind a delivery that waits, or it waits itself. If it cannot be kept, the peer sends it again,
    // and its execution goes on where it stopped.
    bool waits_itself = ch.delivered == ch.expected;
    uint32_t kept = tp::keep_packet(s_, ch, rtp, rest);
    if (kept == 0) {
      s_.drop(Counter::kRxNoReorderBuffer);
      return false;
    }
    ch.stalled |= waits_itself;
    tp::accept_ahead(s_, ch, rtp.psn, kept);
    tp::accept_in_order(s_, ch);
    return true;
  }

  bool take_ahead(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    uint32_t waiting = tp::placed(rtp.tpmsn);
    if (!place_ahead(channel, rtp, rest)) {
      waiting = tp::keep_packet(s_, ch, rtp, rest);
      if (waiting == 0) {
        s_.drop(Counter::kRxNoReorderBuffer);
        return false;
      }
    }
    tp::accept_ahead(s_, ch, rtp.psn, waiting);
    return true;
  }

  // Delivers what was accepted earlier.
  void deliver_accepted(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    uint32_t waiting;
    while (ch.is_up() && tp::accepted_at_cursor(s_, ch, &waiting)) {
      if (tp::is_placed(waiting)) {
        deliver_placed(ch, Tpmsn(waiting));
      } else {
        const tp::KeptPacket& packet = s_.kept[waiting];
        Delivery d = deliver(channel, packet.rtp, {s_.kept_data(waiting), packet.bytes});
        if (!ch.is_up()) return;
        if (d != Delivery::kDone) {
          note_of<Host>(s_, Stage::kMessageWaits, channel, ch.message.value());
          ch.stalled = true;
          if (d == Delivery::kNoRoom) s_.timers.arm(s_.timer_of_channel(channel), s_.now + kRoomPause);
          return;
        }
      }
      tp::delivered_one(s_, ch);
    }
  }

  // The packet at the cursor was placed when it arrived. It belongs to a message, but is not the last packet of it.
  void deliver_placed(tp::Channel& ch, Tpmsn message) {
    if (ch.message_open || message.before(ch.message)) return;  // or: its message vanished
    ch.message_open = true;
    ch.message_start = ch.delivered;
  }

  // ---- ahead of a gap ----------------------------------------------------------------------------------------

  // Places the bytes of a WRITE or READ response packet that is not the last of its message. False: the caller must
  // keep the packet.
  bool place_ahead(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.last || rtp.fake || !ch.read_meta || rtp.nlp != wire::kNlpTransaction) return false;
    if (rtp.tpmsn.before(ch.message)) return false;
    wire::TaPacket ta;
    if (wire::parse_transaction(rest.data(), rest.data() + rest.size(), rtp.padding, true, ta) != wire::Drop::kNone) {
      return false;
    }
    if (ta.payload_len != ch.mtu) return false;
    if (ta.opcode() == wire::TaOpcode::kWrite) return place_write_ahead(channel, rtp, ta);
    if (ta.opcode() != wire::TaOpcode::kReadResponse) return false;  // one that reports a failure has no payload
    return responses().place_ahead(channel, rtp, ta);
  }

  bool place_write_ahead(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.rol && wire::is_strong(ta.req)) return false;  // what comes before it may not have been executed
    if (ta.req.poison) return false;
    std::byte* memory = executor().written_memory(ta, ta.payload_len);
    if (memory == nullptr) return false;
    // Where memory answers at once, no copy is pending, so the counter of `ch.open` stays as it is.
    tp::OpenMessage* m = s_.config.slow_memory ? message_ahead(s_, channel, rtp.tpmsn) : &ch.open;
    if (m == nullptr || m->copies >= kCopiesOfMessage) return false;
    const Copies copies{place_tag(ch.tpn, rtp.tpmsn), m->copies};
    return place_piece(host_, copies, memory, ta.payload, ta.payload_len, false) != CopyResult::kFailed;
  }

  // ---- delivery ----------------------------------------------------------------------------------------------

  Delivery deliver(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.fake) return deliver_fake(channel, rtp);
    if (rtp.tpmsn.before(ch.message)) {
      s_.count(Counter::kRxAbortedMessage);  // what is left of a message that vanished
      return Delivery::kDone;
    }
    if (rtp.tpmsn != ch.message) {
      if (!may_end(ch)) return Delivery::kWaits;
      s_.count(Counter::kRxMessageMismatch);
      note_of<Host>(s_, Stage::kMessageVanished, channel, ch.message.value());
      put_away(channel, rtp.tpmsn);
    }
    if (!ch.message_open) {
      if (is_parked(s_, ch, ch.message)) return Delivery::kWaits;
      ch.message_open = true;
      ch.message_start = ch.delivered;
    }
    wire::TaPacket ta;
    wire::Drop drop = wire::Drop::kBadNlp;
    if (rtp.nlp == wire::kNlpTransaction) {
      drop = wire::parse_transaction(rest.data(), rest.data() + rest.size(), rtp.padding, ch.read_meta, ta);
    }
    if (drop != wire::Drop::kNone) return deliver_malformed(channel, rtp, drop, ta);
    return ta.is_response ? deliver_response(channel, rtp, ta) : deliver_request(channel, rtp, rest, ta);
  }

  Delivery deliver_fake(uint32_t channel, const wire::RtpHeader& rtp) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.tpmsn == ch.message) {
      if (!may_end(ch)) return Delivery::kWaits;
      put_away(channel, ch.message + 1);
      s_.count(Counter::kRxMessageVanished);
      note_of<Host>(s_, Stage::kMessageVanished, channel, (ch.message - 1).value());
    }
    s_.count(Counter::kTpRxFake);
    return Delivery::kDone;
  }

  Delivery deliver_malformed(uint32_t channel, const wire::RtpHeader& rtp, wire::Drop drop, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (!room_for_answer(s_, ch)) return Delivery::kNoRoom;
    if (rtp.last && !may_end(ch)) return Delivery::kWaits;
    fail_message(ch.open, {wire::kRspError, wire::kErrUnsupportedRequest});
    if (rtp.last && ch.rol && !ta.is_response && !fail_in_turn(channel, rtp, ta)) return Delivery::kWaits;
    s_.drop(wire::drop_counter(drop));
    if (!rtp.last) return Delivery::kDone;
    const bool answered = wire::drop_is_unsupported_request(drop) && !ta.is_response && !ch.rol;
    if (answered) executor().answer_malformed({channel, ch.open, ch.message_start, rtp, ta});
    put_away(channel, ch.message + 1);
    return Delivery::kDone;
  }

  // The open message of a channel of ROL failed. False: not yet, because those in front of it have not ended.
  bool fail_in_turn(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    const tp::Channel& ch = s_.channels[channel];
    return ch.ending.empty() && fail_by_ack(s_, channel, rtp, ta.req, ch.open.rspst, ch.open.rspinfo);
  }

  // The open message was executed; nothing of it is pending.
  void end_message(uint32_t channel) {
    const Tpmsn number = s_.channels[channel].message;
    note_step<Host>(s_, Stage::kMessageEnded, channel, number.value());
    go_to_message(channel, number + 1);
  }

  // May the open message end without being executed? If copies of it are pending, it has to be parked until they are
  // done.
  bool may_end(const tp::Channel& ch) const { return ch.open.copies == 0 || room_to_park(s_, ch); }
  // Ends the open message without executing it. `next`: the message that delivery goes on with.
  void put_away(uint32_t channel, Tpmsn next) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.open.copies != 0) {
      park(s_, channel).vanished = true;
    } else {
      abandon_message(s_, ch.open);
    }
    go_to_message(channel, next);
  }

  void go_to_message(uint32_t channel, Tpmsn next) {
    tp::Channel& ch = s_.channels[channel];
    ch.message_open = false;
    ch.open.rspst = ch.open.rspinfo = ch.open.phase = 0;
    ch.open.copy_failed = false;
    if (!ch.ahead.empty()) return reach_message(s_, channel, next);
    ch.message = next;
  }

  // ---- requests ----------------------------------------------------------------------------------------------

  Delivery deliver_request(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest,
                           const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (!room_for_answer(s_, ch)) return Delivery::kNoRoom;
    const RequestPacket p{channel, ch.open, ch.message_start, rtp, ta};
    if (!rtp.last) {
      const bool waits = !ch.ending.empty() && ch.rol && wire::is_strong(ta.req);
      return !waits && executor().execute(p) ? Delivery::kDone : Delivery::kWaits;
    }
    if (!ch.ending.empty()) return end_behind_parked(p, rest) ? Delivery::kDone : Delivery::kWaits;
    if (!executor().execute_last(p)) return park_last(p, rest) ? Delivery::kDone : Delivery::kWaits;
    end_message(channel);
    return Delivery::kDone;
  }

  // The last packet of a request, while messages in front of it are parked: the request is parked behind them. Its
  // payload is placed meanwhile, but only if the request may overtake them.
  bool end_behind_parked(const RequestPacket& p, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[p.channel];
    if (!room_to_park(s_, ch) || !may_overtake(p.ta.req)) return false;
    UB_DCHECK(!is_placed(ch.open));  // what was placed is parked at once
    if (ch.open.copies == 0 && !follows_parked(s_, ch, p.ta)) executor().place_last(p);
    return park_last(p, rest);
  }

  // May the request be executed before the messages in front of it? Not if it asks for an order or reads memory of the
  // target, because it must find there what was written before it.
  static bool may_overtake(const wire::Btah& request) {
    const bool ordered = (request.odr & ~wire::kOdrCompletion) != 0;
    return !ordered && request.opcode != wire::TaOpcode::kRead && !wire::ta_is_atomic(request.opcode);
  }

  // Delivery goes on behind the open message, of which this is the last packet. An atomic is not parked, because the
  // host writes the value that it found into the record of the channel.
  bool park_last(const RequestPacket& p, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[p.channel];
    if (!room_to_park(s_, ch) || wire::ta_is_atomic(p.ta.req.opcode)) return false;
    uint32_t kept = 0;
    if (!is_placed(ch.open)) {
      kept = tp::keep_packet(s_, ch, p.rtp, rest);
      if (kept == 0) return false;
    }
    ParkedMessage& m = park(s_, p.channel);
    note_of<Host>(s_, Stage::kMessageParked, p.channel, m.number.value());
    m.rtp = p.rtp;
    m.last = p.ta;
    m.kept = kept;
    if (kept != 0) m.last.payload = s_.kept_data(kept) + (p.ta.payload - rest.data());
    if (kept != 0 && p.ta.has_be) m.last.be.bits = s_.kept_data(kept) + (p.ta.be.bits - rest.data());
    go_to_message(p.channel, ch.message + 1);
    note_unexecuted(s_, ch);
    return true;
  }

  // A copy of a message is done. The message is the open one, or a parked one, or delivery has not reached it yet.
  void message_copied(uint32_t channel, Tpmsn number, bool ok) {
    ParkedMessage* m = copy_done(s_, channel, number, ok);
    if (m == nullptr || m->copies != 0) return;
    if (m->kept != 0 && !follows_parked(s_, s_.channels[channel], m->last)) place_kept(channel, *m);
    end_parked(channel);
  }

  // Places the payload of the last packet of a parked message, or a part of it.
  void place_kept(uint32_t channel, ParkedMessage& m) {
    executor().place_last(packet_of(channel, m));
    if (!is_placed(m)) return;
    tp::release_kept(s_, s_.channels[channel], m.kept);
    m.kept = 0;
  }

  void end_parked(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.ending.empty()) return;
    end_in_order(channel);
    note_unexecuted(s_, ch);
  }

  // Ends parked messages in their order, up to the first one with a pending copy.
  void end_in_order(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    while (!ch.ending.empty()) {
      ParkedMessage& m = first_parked(s_, ch);
      if (m.copies != 0) return;
      if (!room_for_answer(s_, ch)) return s_.timers.arm(s_.timer_of_channel(channel), s_.now + kRoomPause);
      if (m.kept != 0) place_kept(channel, m);  // the segment in front of it has ended
      if (m.vanished) {
        abandon_message(s_, m);
      } else if (!executor().execute_last(packet_of(channel, m))) {
        return;
      }
      note_of<Host>(s_, Stage::kMessageEnded, channel, m.number.value());
      unpark_first(s_, ch);
    }
  }

  static RequestPacket packet_of(uint32_t channel, ParkedMessage& m) { return {channel, m, m.start, m.rtp, m.last}; }

  // ---- responses ---------------------------------------------------------------------------------------------

  Delivery deliver_response(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.last && !may_end(ch)) return Delivery::kWaits;
    bool has_data = wire::says_success(ta.rsp.rspst) && ta.rsp.opcode != wire::TaOpcode::kTaack;
    if (has_data && !responses().place(channel, rtp, ta)) return wait_for_request(channel);
    if (!rtp.last) return Delivery::kDone;
    uint8_t failure = ch.open.rspst;
    note_step<Host>(s_, Stage::kMessageEnded, channel, ch.message.value());
    put_away(channel, ch.message + 1);
    if (!has_data) {
      on_answer(s_, channel, ta.rsp);
      return Delivery::kDone;
    }
    AnsweredSegment a;
    if (!find_segment(s_, channel, ta.rsp.rc_id, ta.rsp.tassn, &a)) {
      s_.drop(Counter::kTaRxStaleAnswer);
      return Delivery::kDone;
    }
    finish_segment(s_, a, outcome_of(failure));
    return Delivery::kDone;
  }

  // The placer notes how a response failed, as a status. Where a packet of it was malformed, the message failed as a
  // request would, with kRspError, which is no status of the placer.
  static CrStatus outcome_of(uint8_t failure) {
    if (failure == 0) return CrStatus::kSuccess;
    return failure == wire::kRspError ? CrStatus::kRemRespLen : static_cast<CrStatus>(failure);
  }

  // Copies of the request are pending. The end of a copy resumes this channel. If the channel that the copy belongs to
  // has died, the timer does it instead.
  Delivery wait_for_request(uint32_t channel) {
    s_.timers.arm(s_.timer_of_channel(channel), s_.now + kRoomPause);
    return Delivery::kWaits;
  }

  TargetExecutor<Host> executor() { return {s_, host_}; }
  ResponsePlacer<Host> responses() { return {s_, host_}; }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
