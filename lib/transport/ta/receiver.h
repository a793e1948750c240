// SPDX-License-Identifier: Apache-2.0
//
// Puts into effect what a channel delivers: payload into memory, atomics, answers, completions at the target; and
// at the initiator the bytes of READ and atomic responses.
//
// The payload of a WRITE or READ response packet is placed when it arrives, in any order. Everything else happens
// at delivery, in PSN order. The last packet of a message is placed last, its final word after all else, because
// applications spin on it. Memory may answer later: delivery then stops at the message's last packet until all of
// its copies are done, and goes on from there (Channel::phase says how far it was).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/initiator.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/response_placer.h"
#include "lib/transport/ta/target.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

template <class Host>
class Receiver {
 public:
  Receiver(CoreState& s, Host& host) : s_(s), host_(host) {}

  // A data packet of an open channel. `rest`: what lies between the transport header and the ICRC.
  void on_data(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    tp::RxVerdict verdict = tp::classify(s_, ch, rtp.psn);
    switch (verdict) {
      case tp::RxVerdict::kDuplicate:
        note_of<Host>(s_, Stage::kPacketDuplicate, channel, rtp.psn.value(), rtp.tpmsn.value());
        s_.count(Counter::kTpRxDuplicate);
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
    uint32_t channel = setup::channel_of_tpn(s_, purpose.tpn);
    if (purpose.kind == CopyKind::kPlaceResponse) responses().on_placed(purpose, ok);
    if (channel == 0) return dead_copy_done(s_, purpose.tpn);
    tp::Channel& ch = s_.channels[channel];
    if (ch.copies_pending == 0) return;
    --ch.copies_pending;
    if (!ok && purpose.kind == CopyKind::kPlace) note_failed_copy(ch, purpose.message);
    if (ch.copies_pending == 0 && ch.stalled) resume(channel);
  }

  // Delivery stopped for a copy or for lack of room: goes on if it can.
  void resume(uint32_t channel) {
    s_.channels[channel].stalled = false;
    deliver_accepted(channel);
  }

 private:
  enum class Delivery : uint8_t { kDone, kWaits, kNoRoom };

  static constexpr Duration kRoomPause = milliseconds(1);
  static constexpr uint32_t kCopiesAhead = 64;  // of one channel, pending

  // ---- order -------------------------------------------------------------------------------------------------

  // A packet that comes again, since there is no room for it while memory is awaited. The peer does not know whom we
  // wait for, nor how long it may take: it hears what was accepted before, so that it does not take us for dead.
  void refuse(uint32_t channel, const wire::RtpHeader& rtp, tp::RxVerdict verdict) {
    const tp::Channel& ch = s_.channels[channel];
    note_of<Host>(s_, Stage::kPacketRefused, channel, rtp.psn.value());
    if (ch.is_up() && (ch.stalled || ch.copies_pending != 0)) tp::note_for_ack(s_, channel, s_.now, rtp, verdict);
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
    // Behind a delivery that waits, or waiting itself; if it cannot be kept, it comes again and goes on from there.
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
    while (ch.is_up() && !ch.stalled && tp::accepted_at_cursor(s_, ch, &waiting)) {
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

  // The packet at the cursor was placed when it arrived: a packet of a message, but not its last.
  void deliver_placed(tp::Channel& ch, Tpmsn message) {
    if (ch.message_open || message.before(ch.message)) return;  // the latter: of a message that vanished
    ch.message_open = true;
    ch.message_start = ch.delivered;
    ch.message_rspst = ch.message_rspinfo = 0;
  }

  // ---- ahead of a gap ----------------------------------------------------------------------------------------

  // Places the bytes of a WRITE or READ response packet that is not the last of its message. False: keep it.
  bool place_ahead(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.last || rtp.fake || !ch.read_meta || rtp.nlp != wire::kNlpTransaction) return false;
    if (rtp.tpmsn.before(ch.message)) return false;
    wire::TaPacket ta;
    if (wire::parse_transaction(rest.data(), rest.data() + rest.size(), rtp.padding, true, ta) != wire::Drop::kNone) {
      return false;
    }
    if (ta.payload_len != ch.mtu) return false;
    if (ta.opcode() == wire::TaOpcode::kWrite) {
      std::byte* memory = written_memory(ta, ta.payload_len);
      if (memory == nullptr) return false;
      return place(ch, memory, ta.payload, ta.payload_len, false, rtp.tpmsn) != CopyResult::kFailed;
    }
    if (ta.opcode() != wire::TaOpcode::kReadResponse || ta.rsp.rspst != wire::kRspOk) return false;
    return responses().place_ahead(channel, rtp, ta);
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
      s_.count(Counter::kRxMessageMismatch);
      note_of<Host>(s_, Stage::kMessageVanished, channel, ch.message.value());
      abandon_message(s_, channel);
      ch.message = rtp.tpmsn;
      ch.message_open = false;
    }
    if (!ch.message_open) {
      ch.message_open = true;
      ch.message_start = ch.delivered;
      ch.message_rspst = ch.message_rspinfo = 0;
    }
    wire::TaPacket ta;
    wire::Drop drop = wire::Drop::kBadNlp;
    if (rtp.nlp == wire::kNlpTransaction) {
      drop = wire::parse_transaction(rest.data(), rest.data() + rest.size(), rtp.padding, ch.read_meta, ta);
    }
    if (drop != wire::Drop::kNone) return deliver_malformed(channel, rtp, drop, ta);
    note_step<Host>(s_, Stage::kPacketRead, channel, rtp.psn.value(), rtp.tpmsn.value());
    return ta.is_response ? deliver_response(channel, rtp, ta) : deliver_request(channel, rtp, ta);
  }

  Delivery deliver_fake(uint32_t channel, const wire::RtpHeader& rtp) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.tpmsn == ch.message) {
      if (ch.copies_pending != 0) return Delivery::kWaits;  // they may still write
      abandon_message(s_, channel);
      ch.message_open = false;
      ch.phase = 0;
      ++ch.message;
      s_.count(Counter::kRxMessageVanished);
      note_of<Host>(s_, Stage::kMessageVanished, channel, (ch.message - 1).value());
    }
    s_.count(Counter::kTpRxFake);
    return Delivery::kDone;
  }

  Delivery deliver_malformed(uint32_t channel, const wire::RtpHeader& rtp, wire::Drop drop, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (!room_for_answer(s_)) return Delivery::kNoRoom;
    s_.drop(wire::drop_counter(drop));
    fail_message(ch, {wire::kRspError, wire::kErrUnsupportedRequest});
    if (!rtp.last) return Delivery::kDone;
    if (wire::drop_is_unsupported_request(drop) && !ta.is_response) answer_message(channel, ta.req);
    end_message(ch);
    return Delivery::kDone;
  }

  static void fail_message(tp::Channel& ch, Verdict v) {
    if (ch.message_rspst != 0) return;
    ch.message_rspst = v.rspst;
    ch.message_rspinfo = v.rspinfo;
  }

  void end_message(tp::Channel& ch) {
    note_step<Host>(s_, Stage::kMessageEnded, tp::number_of(s_, ch), ch.message.value());
    ch.message_open = false;
    ch.phase = 0;
    ++ch.message;
  }

  // The message failed.
  void answer_message(uint32_t channel, const wire::Btah& request) {
    const tp::Channel& ch = s_.channels[channel];
    if (ch.message_rspst == kSilent) return;
    answer(s_, channel, request, answer_opcode(request.opcode), ch.message_rspst, ch.message_rspinfo);
  }

  // The final word of a message becomes visible last. And memory that is slower than the wire holds it up.
  static bool must_wait_for_copies(const tp::Channel& ch, const wire::RtpHeader& rtp) {
    return ch.copies_pending >= (rtp.last ? 1 : kCopiesAhead);
  }

  // ---- requests ----------------------------------------------------------------------------------------------

  Delivery deliver_request(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (!room_for_answer(s_)) return Delivery::kNoRoom;
    if (ch.phase == 0) {
      if (must_wait_for_copies(ch, rtp)) return Delivery::kWaits;
      begin_request(channel, rtp, ta);
      if (rtp.last) ch.phase = 1;
    }
    if (!rtp.last) return Delivery::kDone;
    if (ch.copies_pending != 0) return Delivery::kWaits;
    take_failed_copy(ch);
    if (ch.phase == 1 && ta.req.opcode == wire::TaOpcode::kWriteNotify && ch.message_rspst == 0) {
      ch.phase = 2;
      notify(ch, rtp, ta);
      if (ch.copies_pending != 0) return Delivery::kWaits;
    }
    finish_request(channel, ta);
    end_message(ch);
    return Delivery::kDone;
  }

  // Checks a packet and places its payload.
  void begin_request(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.message_rspst != 0) return;
    Verdict v = check_and_place(channel, rtp, ta);
    if (!v.ok()) fail_message(ch, v);
  }

  Verdict check_and_place(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    constexpr Verdict kUnsupported{wire::kRspError, wire::kErrUnsupportedRequest};
    tp::Channel& ch = s_.channels[channel];
    if (ta.payload_len > ch.mtu || (!rtp.last && ta.payload_len != ch.mtu)) return kUnsupported;
    wire::TaOpcode op = ta.req.opcode;
    switch (op) {
      case wire::TaOpcode::kWrite:
      case wire::TaOpcode::kWriteImmediate:
      case wire::TaOpcode::kWriteNotify:
        return check_write(channel, rtp, ta);
      case wire::TaOpcode::kRead:
        return rtp.last ? check_read(channel, ta) : kUnsupported;
      case wire::TaOpcode::kSend:
      case wire::TaOpcode::kSendImmediate:
      case wire::TaOpcode::kSendInvalidate:
        return check_send(channel, rtp, ta);
      default:
        return rtp.last && atomic_op(op) != WrOp::kNop ? run_atomic(channel, rtp, ta) : kUnsupported;
    }
  }

  static constexpr Verdict kAbort{wire::kRspError, wire::kErrRemoteAbort};

  std::byte* written_memory(const wire::TaPacket& ta, uint64_t bytes) {
    return remote_memory(s_, {ta.ma.token_id, ta.tv, ta.token_value, ta.ma.address, bytes, kAccessWrite}, nullptr);
  }

  Verdict check_write(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.last) {
      uint64_t before = uint64_t{rtp.psn.distance(ch.message_start)} * ch.mtu;
      if (before + ta.payload_len != ta.ma.length) return {wire::kRspError, wire::kErrUnsupportedRequest};
    }
    std::byte* memory = nullptr;
    if (ta.payload_len != 0) {
      memory = written_memory(ta, ta.payload_len);
      if (memory == nullptr) return kAbort;
    }
    if (ta.req.opcode == wire::TaOpcode::kWriteImmediate) {
      Verdict v = admit_message(s_, channel, ta);
      if (!v.ok()) return v;
    }
    if (memory != nullptr &&
        place(ch, memory, ta.payload, ta.payload_len, rtp.last, rtp.tpmsn) == CopyResult::kFailed) {
      return kAbort;
    }
    return kAccepted;
  }

  void notify(tp::Channel& ch, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    std::byte* memory = remote_memory(
        s_, {ta.ntf.token_id, ta.tv, ta.ntf.token_value, ta.ntf.address, sizeof ta.ntf.data, kAccessWrite}, nullptr);
    std::byte word[sizeof ta.ntf.data];
    std::memcpy(word, &ta.ntf.data, sizeof word);
    if (memory == nullptr || place(ch, memory, word, sizeof word, true, rtp.tpmsn) == CopyResult::kFailed) {
      fail_message(ch, kAbort);
    }
  }

  Verdict check_read(uint32_t channel, const wire::TaPacket& ta) {
    ReadJob job{};
    job.length = ta.ma.length;
    if (job.length > kMaxMessageBytes) return {wire::kRspError, wire::kErrUnsupportedRequest};
    if (job.length != 0) {
      job.memory = remote_memory(s_, {ta.ma.token_id, ta.tv, ta.token_value, ta.ma.address, job.length, kAccessRead},
                                 &job.segment);
      if (job.memory == nullptr) return kAbort;
    }
    job.channel = channel;
    job.rc_id = ta.req.rc_id;
    job.tassn = ta.req.tassn;
    job.offset_kib = ta.has_ofst ? ta.ofst.offset_kib : 0;
    job.taid = ta.has_taid ? ta.taid : 0;
    if (start_read_job(s_, channel, job) == 0) {
      s_.count(Counter::kNoReadJob);
      return {wire::kRspRnr, kReadLater};
    }
    return kAccepted;
  }

  Verdict run_atomic(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    uint32_t bytes = ta.ma.length;
    if (!is_atomic_width(bytes) || ta.payload_len != 2 * bytes || ta.ma.address % bytes != 0) {
      return {wire::kRspError, wire::kErrUnsupportedRequest};
    }
    std::byte* memory =
        remote_memory(s_, {ta.ma.token_id, ta.tv, ta.token_value, ta.ma.address, bytes, kAccessAtomic}, nullptr);
    if (memory == nullptr) return kAbort;
    if (reinterpret_cast<uintptr_t>(memory) % bytes != 0) return {wire::kRspError, wire::kErrUnsupportedRequest};
    AtomicRequest request{memory, atomic_op(ta.req.opcode), bytes, 0, 0};
    std::memcpy(&request.operand, ta.payload, bytes);
    std::memcpy(&request.compare, ta.payload + bytes, bytes);
    CopyResult result = host_.atomic(request, &ch.atomic_old, place_tag(ch.tpn, rtp.tpmsn));
    if (result == CopyResult::kPending) ++ch.copies_pending;
    return result == CopyResult::kFailed ? kAbort : kAccepted;
  }

  Verdict check_send(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (rtp.psn == ch.message_start) {
      Verdict v = admit_message(s_, channel, ta);
      if (!v.ok()) return v;
    } else if (ch.receive == 0) {
      return kAbort;
    }
    RxReceive& receive = s_.receives[ch.receive];
    uint64_t offset = uint64_t{ta.ofst.offset_kib} * 1024;
    if (offset != receive.filled) return {wire::kRspError, wire::kErrUnsupportedRequest};
    if (offset + ta.payload_len > receive.length) {
      receive.filled = UINT32_MAX;  // told to the receiver as a length error
      return {wire::kRspError, wire::kErrUnsupportedRequest};
    }
    const Copies copies{place_tag(ch.tpn, rtp.tpmsn), ch.copies_pending};
    if (!scatter(s_, host_, copies, receive, ta.payload, ta.payload_len, rtp.last)) return kAbort;
    receive.filled += ta.payload_len;
    return kAccepted;
  }

  void finish_request(uint32_t channel, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    bool ok = ch.message_rspst == 0;
    if (ch.receive != 0) {
      const RxReceive& receive = s_.receives[ch.receive];
      bool write = ta.req.opcode == wire::TaOpcode::kWriteImmediate;
      uint64_t bytes = write ? ta.imm.msg_length : receive.filled;
      CrStatus status = CrStatus::kSuccess;
      if (!ok) {
        status = !write && receive.filled == UINT32_MAX ? CrStatus::kLocLen : CrStatus::kLocAccess;
        bytes = 0;
      }
      complete_receive(s_, channel, ta, status, bytes);
    }
    if (ok && ta.req.opcode == wire::TaOpcode::kRead) return;  // its job answers
    if (ok && wire::ta_is_atomic(ta.req.opcode)) {
      return answer_atomic(s_, channel, ta.req, ch.atomic_old, static_cast<uint8_t>(ta.ma.length));
    }
    if (ch.message_rspst == kSilent) return s_.drop(Counter::kRxTargetNotReady);
    wire::TaOpcode opcode = ok ? wire::TaOpcode::kTaack : answer_opcode(ta.req.opcode);
    answer(s_, channel, ta.req, opcode, ch.message_rspst, ch.message_rspinfo);
  }

  // ---- responses ---------------------------------------------------------------------------------------------

  Delivery deliver_response(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    bool has_data = ta.rsp.rspst == wire::kRspOk && ta.rsp.opcode != wire::TaOpcode::kTaack;
    if (ch.phase == 0) {
      if (must_wait_for_copies(ch, rtp)) return Delivery::kWaits;
      if (has_data) responses().place(channel, rtp, ta);
      if (rtp.last) ch.phase = 1;
    }
    if (!rtp.last) return Delivery::kDone;
    if (ch.copies_pending != 0) return Delivery::kWaits;
    uint8_t failure = ch.message_rspst;
    end_message(ch);
    if (!has_data) {
      on_answer(s_, channel, ta.rsp);
      return Delivery::kDone;
    }
    AnsweredSegment a;
    if (!find_segment(s_, channel, ta.rsp.rc_id, ta.rsp.tassn, &a)) {
      s_.drop(Counter::kTaRxStaleAnswer);
      return Delivery::kDone;
    }
    finish_segment(s_, a, failure == 0 ? CrStatus::kSuccess : static_cast<CrStatus>(failure));
    return Delivery::kDone;
  }

  // ---- copies ------------------------------------------------------------------------------------------------

  CopyResult place(tp::Channel& ch, std::byte* dst, const std::byte* src, uint32_t bytes, bool final, Tpmsn message) {
    return place_piece(host_, {place_tag(ch.tpn, message), ch.copies_pending}, dst, src, bytes, final);
  }

  static void note_failed_copy(tp::Channel& ch, Tpmsn message) {
    if (!ch.copy_failed || message.before(ch.first_failed)) ch.first_failed = message;
    if (!ch.copy_failed || message.after(ch.last_failed)) ch.last_failed = message;
    ch.copy_failed = true;
  }

  // A copy of the open message failed: its memory went away after the check.
  static void take_failed_copy(tp::Channel& ch) {
    if (!ch.copy_failed || ch.message.before(ch.first_failed)) return;
    if (!ch.message.after(ch.last_failed)) fail_message(ch, kAbort);
    if (!ch.message.before(ch.last_failed)) ch.copy_failed = false;
  }

  ResponsePlacer<Host> responses() { return {s_, host_}; }

  static constexpr uint8_t kReadLater = 5;  // RNR code: 64 us

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
