// SPDX-License-Identifier: Apache-2.0
//
// Receives the packets of a channel and delivers what is in them: requests go to request_delivery.h, the bytes of READ
// and atomic responses to response_placer.h, and answers to receive_answer.h.
//
// The payload of a WRITE or READ response packet is placed when it arrives, in any order. Everything else happens at
// delivery, in PSN order. Beyond a gap a packet is placed only if it carries a full MTU, is not the last one of its
// message and passes the checks, on a channel with read-meta; any other is kept until its delivery. A channel of
// Go-Back-N discards all of them.
#pragma once

#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/kept_results.h"
#include "lib/transport/ta/parked_messages.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/receive_matching.h"
#include "lib/transport/ta/repeated_requests.h"
#include "lib/transport/ta/request_delivery.h"
#include "lib/transport/ta/response_placer.h"
#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/ta/silent_requests.h"
#include "lib/transport/ta/target_executor.h"
#include "lib/transport/tp/gap_report.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/receive_state.h"
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
        if (tp::is_confirmation(ch, rtp)) return;
        break;
      case tp::RxVerdict::kBeyondWindow:
        note_of<Host>(s_, Stage::kPacketTooFarAhead, channel, rtp.psn.value(), rtp.tpmsn.value());
        s_.count(Counter::kTpRxBeyondWindow);
        return refuse(channel, rtp, verdict);
      case tp::RxVerdict::kAhead:
        note_of<Host>(s_, Stage::kPacketAhead, channel, rtp.psn.value(), rtp.tpmsn.value());
        if (ch.go_back_n) return tp::note_gap(s_, channel, s_.now);
        if (!take_ahead(channel, rtp, rest)) return refuse(channel, rtp, verdict);
        s_.count(channel, ChannelCount::kOutOfOrder);
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

  // A packet of a channel of CTP, which is a message. Nothing waits here: memory answers at once, and there is room for
  // the answer.
  void on_compact(uint32_t channel, const wire::CompactPacket& packet) {
    tp::Channel& ch = s_.channels[channel];
    wire::RtpHeader rtp;
    rtp.last = true;
    rtp.padding = packet.ctp.padding;
    rtp.psn = ch.expected;
    rtp.tpmsn = ch.message;
    ch.begun = tp::Begun::kYes;
    ch.message_start = ch.expected;
    const Delivered d = deliver_compact(channel, rtp, packet);
    UB_DCHECK(d == Delivered::kDone);
    if (!ch.is_up()) return;
    ch.delivered = ++ch.expected;
    s_.count(Counter::kCtpRx);
  }

  void on_placed(const CopyPurpose& purpose, bool ok) {
    const uint32_t channel = setup::channel_of_tpn(s_, purpose.tpn);
    if (purpose.kind == CopyKind::kPlaceResponse) {
      responses().on_placed(purpose, ok);
      if (channel != 0) resume_others(channel);
    } else if (channel == 0) {
      dead_copy_done(s_, purpose.tpn, purpose.message);
    } else {
      requests().message_copied(channel, purpose.message, ok);
    }
    if (channel != 0 && s_.channels[channel].stalled) resume(channel);
  }

  // A deadline of the channel has come.
  void on_timer(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    if (!ch.early.empty()) requests().refuse_overdue(channel);
    if (ch.stalled || !ch.ending.empty()) resume(channel);
  }

  // Delivery has stopped for a copy or for lack of room. It goes on if it can.
  void resume(uint32_t channel) {
    requests().end_parked(channel);
    s_.channels[channel].stalled = false;
    deliver_accepted(channel);
    if (s_.channels[channel].rol) tp::demand_ack(s_, channel, s_.now);  // which says how far it has come
  }

 private:
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

  // ---- order -------------------------------------------------------------------------------------------------

  // On ROL it may confirm a failure.
  void on_duplicate(uint32_t channel, const wire::RtpHeader& rtp) {
    note_of<Host>(s_, Stage::kPacketDuplicate, channel, rtp.psn.value(), rtp.tpmsn.value());
    s_.count(channel, ChannelCount::kDuplicate);
    tp::Channel& ch = s_.channels[channel];
    if (tp::is_confirmation(ch, rtp) && tp::thaw(ch, rtp)) resume(channel);
  }

  // There is no room for the packet now, so the peer sends it again. While this side waits for memory, the peer cannot
  // know that and would take us for dead. So an acknowledgement tells it what was accepted before.
  void refuse(uint32_t channel, const wire::RtpHeader& rtp, tp::RxVerdict verdict) {
    const tp::Channel& ch = s_.channels[channel];
    const bool waits = verdict == tp::RxVerdict::kInOrder || ch.stalled || ch.open.copies != 0 || ch.parked != 0;
    note_of<Host>(s_, Stage::kPacketRefused, channel, rtp.psn.value());
    if (waits) tp::note_for_ack(s_, channel, s_.now, rtp, verdict);
  }

  bool take_in_order(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.delivered == ch.expected) {
      Delivered d = deliver(channel, rtp, rest);
      if (d == Delivered::kWaits) note_of<Host>(s_, Stage::kMessageWaits, channel, ch.message.value());
      if (d == Delivered::kNoRoom) {
        s_.drop(Counter::kRxNoAnswerRoom);
        return false;
      }
      if (d == Delivered::kDone) {
        if (!ch.is_up()) return false;
        const bool fills_gap = ch.reorder != 0;
        tp::accept_in_order(s_, ch);
        tp::delivered_one(ch);
        if (fills_gap) deliver_accepted(channel);
        return true;
      }
    }
    // The packet comes behind a delivery that waits, or it waits itself. If it cannot be kept, the peer sends it again,
    // and its execution goes on where it stopped.
    bool waits_itself = ch.delivered == ch.expected;
    if (!tp::keep_until_delivery(s_, ch, rtp, rest)) {
      s_.drop(Counter::kRxNoReorderBuffer);
      return false;
    }
    ch.stalled |= waits_itself;
    tp::accept_in_order(s_, ch);
    return true;
  }

  bool take_ahead(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (!place_ahead(channel, rtp, rest) && !tp::keep_until_delivery(s_, ch, rtp, rest)) {
      s_.drop(Counter::kRxNoReorderBuffer);
      return false;
    }
    tp::accept_ahead(s_, ch, rtp.psn);
    return true;
  }

  // Delivers what was accepted earlier.
  void deliver_accepted(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    while (ch.is_up() && tp::accepted_at_cursor(ch)) {
      const uint32_t kept = tp::kept_at_cursor(s_, ch);
      if (kept == 0) {
        deliver_placed(ch);
        tp::delivered_one(ch);
        continue;
      }
      const tp::KeptPacket& packet = s_.kept[kept];
      Delivered d = deliver(channel, packet.rtp, {s_.kept.data(kept), packet.bytes});
      if (!ch.is_up()) return;
      if (d != Delivered::kDone) {
        note_of<Host>(s_, Stage::kMessageWaits, channel, ch.message.value());
        ch.stalled = true;
        if (d == Delivered::kNoRoom) s_.timers.arm(s_.timer_of_channel(channel), s_.now + kRoomPause);
        return;
      }
      tp::delivered_kept(s_, ch, kept);
    }
  }

  // The packet at the cursor was placed when it arrived.
  void deliver_placed(tp::Channel& ch) {
    if (ch.begun != tp::Begun::kNothing) return;
    ch.begun = tp::Begun::kPlaced;
    ch.message_start = ch.delivered;
  }
  // A packet of a message that vanished is delivered. So the placed ones in front of it were of such messages, too.
  void forget_placed(tp::Channel& ch) {
    if (ch.begun == tp::Begun::kPlaced) ch.begun = tp::Begun::kNothing;
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
    const bool waits = ch.rol || names_context(ta.req);
    if (waits && wire::is_strong(ta.req)) return false;  // what comes before it may not have been executed
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

  Delivered deliver(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.fake) return deliver_fake(channel, rtp);
    if (rtp.tpmsn.before(ch.message)) {
      forget_placed(ch);
      s_.count(Counter::kRxAbortedMessage);  // what is left of a message that vanished
      return Delivered::kDone;
    }
    if (rtp.tpmsn != ch.message) {
      if (!requests().may_end(ch)) return Delivered::kWaits;
      s_.count(Counter::kRxMessageMismatch);
      note_of<Host>(s_, Stage::kMessageVanished, channel, ch.message.value());
      requests().put_away(channel, rtp.tpmsn);
    }
    if (ch.begun != tp::Begun::kYes) {
      if (is_parked(s_, ch, ch.message)) return Delivered::kWaits;
      if (ch.begun == tp::Begun::kNothing) ch.message_start = ch.delivered;
      ch.begun = tp::Begun::kYes;
    }
    wire::TaPacket ta;
    wire::Drop drop = wire::Drop::kBadNlp;
    if (rtp.nlp == wire::kNlpTransaction) {
      drop = wire::parse_transaction(rest.data(), rest.data() + rest.size(), rtp.padding, ch.read_meta, ta);
    }
    if (drop != wire::Drop::kNone) return deliver_malformed(channel, rtp, drop, ta);
    return ta.is_response ? deliver_response(channel, rtp, ta) : requests().deliver(channel, rtp, rest, ta);
  }

  Delivered deliver_compact(uint32_t channel, const wire::RtpHeader& rtp, const wire::CompactPacket& packet) {
    note_step<Host>(s_, Stage::kCompactArrived, channel);
    wire::TaPacket ta;
    const wire::Drop drop = wire::parse_compact_transaction(packet.rest, packet.end, rtp.padding, ta);
    if (!ta.is_response && !admits_request(channel)) return pass_over(channel);
    if (drop != wire::Drop::kNone) return deliver_malformed(channel, rtp, drop, ta);
    const tp::Channel& ch = s_.channels[channel];
    if (ch.repeats != 0 && !is_news(channel, ta)) return pass_over(channel);
    if (ta.is_response && has_silent(s_, ch)) end_silent_before(s_, channel, ta.rsp);
    return ta.is_response ? deliver_response(channel, rtp, ta) : requests().deliver(channel, rtp, packet.body(), ta);
  }

  // For a peer that has more requests unanswered than it may there is no place for the answer. If nothing is repeated,
  // its channel ends; else the network may have made more of them, and the request comes again.
  bool admits_request(uint32_t channel) {
    const tp::Channel& ch = s_.channels[channel];
    if (ch.in_flight.size() < s_.config.window_packets) return true;
    s_.drop(Counter::kCtpRxTooMany);
    if (ch.repeats == 0) setup::end_channel(s_, channel);
    return false;
  }

  // The wire may lose and double packets: is this one to be delivered?
  [[gnu::noinline]] bool is_news(uint32_t channel, const wire::TaPacket& ta) {
    if (!ta.is_response) return is_to_be_executed(s_, channel, ta.req);
    note_answered(s_, channel, ta.rsp);
    return true;
  }

  // A packet is not delivered.
  Delivered pass_over(uint32_t channel) {
    const tp::Channel& ch = s_.channels[channel];
    if (ch.is_up()) requests().put_away(channel, ch.message + 1);
    return Delivered::kDone;
  }

  Delivered deliver_fake(uint32_t channel, const wire::RtpHeader& rtp) {
    tp::Channel& ch = s_.channels[channel];
    forget_placed(ch);
    if (rtp.tpmsn == ch.message) {
      if (!requests().may_end(ch)) return Delivered::kWaits;
      requests().put_away(channel, ch.message + 1);
      s_.count(Counter::kRxMessageVanished);
      note_of<Host>(s_, Stage::kMessageVanished, channel, (ch.message - 1).value());
    }
    s_.count(Counter::kTpRxFake);
    return Delivered::kDone;
  }

  Delivered deliver_malformed(uint32_t channel, const wire::RtpHeader& rtp, wire::Drop drop, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (!room_for_answer(s_, ch)) return Delivered::kNoRoom;
    if (rtp.last && !requests().may_end(ch)) return Delivered::kWaits;
    fail_message(ch.open, {wire::kRspError, wire::kErrUnsupportedRequest});
    if (rtp.last && ch.rol && !ta.is_response && !fail_in_turn(channel, rtp, ta)) return Delivered::kWaits;
    s_.drop(wire::drop_counter(drop));
    if (!rtp.last) return Delivered::kDone;
    const bool answered = wire::drop_is_unsupported_request(drop) && !ta.is_response && !ch.rol;
    if (answered) executor().answer_malformed({channel, ch.open, ch.message_start, rtp, ta});
    requests().put_away(channel, ch.message + 1);
    return Delivered::kDone;
  }

  // The open message of a channel of ROL failed. False: not yet, because those in front of it have not ended.
  bool fail_in_turn(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    const tp::Channel& ch = s_.channels[channel];
    return ch.ending.empty() && fail_by_ack(s_, channel, rtp, ta.req, ch.open.rspst, ch.open.rspinfo);
  }

  // ---- responses ---------------------------------------------------------------------------------------------

  Delivered deliver_response(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.last && !requests().may_end(ch)) return Delivered::kWaits;
    bool has_data = wire::says_success(ta.rsp.rspst) && ta.rsp.opcode != wire::TaOpcode::kTaack;
    if (has_data && !responses().place(channel, rtp, ta)) return wait_for_request(channel);
    if (!rtp.last) return Delivered::kDone;
    uint8_t failure = ch.open.rspst;
    note_step<Host>(s_, Stage::kMessageEnded, channel, ch.message.value());
    requests().put_away(channel, ch.message + 1);
    if (!has_data) {
      on_answer(s_, channel, ta.rsp);
      return Delivered::kDone;
    }
    AnsweredSegment a;
    const bool awaited = find_segment(s_, channel, ta.rsp, &a);
    note_response(s_, channel, ta.rsp, awaited);
    if (!awaited) {
      s_.drop(Counter::kTaRxStaleAnswer);
      return Delivered::kDone;
    }
    finish_segment(s_, a, outcome_of(failure));
    return Delivered::kDone;
  }

  // The placer notes how a response failed, as a status. Where a packet of it was malformed, the message failed as a
  // request would, with kRspError, which is no status of the placer.
  static CrStatus outcome_of(uint8_t failure) {
    if (failure == 0) return CrStatus::kSuccess;
    return failure == wire::kRspError ? CrStatus::kRemRespLen : static_cast<CrStatus>(failure);
  }

  // Copies of the request are pending. The end of a copy resumes this channel. If the channel that the copy belongs to
  // has died, the timer does it instead.
  Delivered wait_for_request(uint32_t channel) {
    s_.timers.arm(s_.timer_of_channel(channel), s_.now + kRoomPause);
    return Delivered::kWaits;
  }

  RequestDelivery<Host> requests() { return {s_, host_}; }
  TargetExecutor<Host> executor() { return {s_, host_}; }
  ResponsePlacer<Host> responses() { return {s_, host_}; }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
