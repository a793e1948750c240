// SPDX-License-Identifier: Apache-2.0
//
// Delivers the packets of requests to their execution (target_executor.h), message by message, and ends the messages of
// a channel.
//
// If memory answers later, a message whose end waits for its copies is parked (parked_messages.h), and delivery goes on
// behind it. If there is no record to park it in, delivery stops there. A message whose turn in its sequence context
// has not come is held beside the channel (sequence_contexts.h).
#pragma once

#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/fused_answer.h"
#include "lib/transport/ta/parked_messages.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/receive_matching.h"
#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/ta/target_executor.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

enum class Delivered : uint8_t { kDone, kWaits, kNoRoom };
constexpr Duration kRoomPause = milliseconds(1);  // where room is wanted that nobody tells of

template <class Host>
class RequestDelivery {
 public:
  RequestDelivery(CoreState& s, Host& host) : s_(s), host_(host) {}

  // ---- the open message --------------------------------------------------------------------------------------

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

  // ---- requests ----------------------------------------------------------------------------------------------

  // A packet of the open message, which is a request.
  Delivered deliver(uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest, wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    if (!room_for_answer(s_, ch)) return Delivered::kNoRoom;
    if (names_context(ta.req)) [[unlikely]]
      return deliver_in_context(channel, rtp, rest, ta);
    return deliver_in_turn<false>({channel, ch.open, ch.message_start, rtp, ta}, rest);
  }

  // A copy of a message is done. The message is the open one, or a parked one, or delivery has not reached it yet.
  void message_copied(uint32_t channel, Tpmsn number, bool ok) {
    ParkedMessage* m = copy_done(s_, channel, number, ok);
    if (m == nullptr || m->copies != 0) return;
    if (m->kept != 0 && !follows_parked(s_, s_.channels[channel], m->last)) place_kept(channel, *m);
    end_parked(channel);
  }

  // Refuses messages that were held for their turn for too long.
  void refuse_overdue(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    while (!ch.early.empty()) {
      const uint32_t oldest = ch.early.front<&ParkedMessage::in_line>(s_.parked);
      ParkedMessage& m = s_.parked[oldest];
      if (s_.now < m.held_until) {
        s_.timers.arm(s_.timer_of_channel(channel), m.held_until);
        break;
      }
      fail_message(m, {wire::kRspRnr, kSoon});
      park_held(s_, oldest);
    }
    end_parked(channel);
  }

  // Ends parked messages of the channel, as far as they may end now.
  void end_parked(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.ending.empty()) return;
    end_in_order(channel);
    note_unexecuted(s_, ch);
  }

 private:
  // The open message was executed; nothing of it is pending.
  void end_message(uint32_t channel) {
    const Tpmsn number = s_.channels[channel].message;
    note_step<Host>(s_, Stage::kMessageEnded, channel, number.value());
    go_to_message(channel, number + 1);
  }

  void go_to_message(uint32_t channel, Tpmsn next) {
    tp::Channel& ch = s_.channels[channel];
    ch.begun = tp::Begun::kNothing;
    ch.open.rspst = ch.open.rspinfo = ch.open.phase = 0;
    ch.open.copy_failed = false;
    if (!ch.ahead.empty()) return reach_message(s_, channel, next);
    ch.message = next;
  }

  // What comes from a sequence context is known when it compiles, so that other requests are not asked again.
  template <bool kInContext>
  Delivered deliver_in_turn(const RequestPacket& p, std::span<const std::byte> rest) {
    tp::Channel& ch = s_.channels[p.channel];
    if (!p.rtp.last) {
      const bool waits = !ch.ending.empty() && ch.rol && wire::is_strong(p.ta.req);
      return !waits && executor().execute(p) ? Delivered::kDone : Delivered::kWaits;
    }
    if (!ch.ending.empty()) return end_behind_parked(p, rest) ? Delivered::kDone : Delivered::kWaits;
    if (!executor().execute_last(p)) return park_last(p, rest) ? Delivered::kDone : Delivered::kWaits;
    if constexpr (kInContext) {
      end_in_context(p);
    } else {
      end_message(p.channel);
    }
    return Delivered::kDone;
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

  // May the request be executed before the messages in front of it? Not if it asks the channel for an order or reads
  // memory of the target, because it must find there what was written before it.
  static bool may_overtake(const wire::Btah& request) {
    const bool ordered = (request.odr & ~wire::kOdrCompletion) != 0 && !names_context(request);
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
    m.kept = kept;
    describe_kept(m, p, rest);
    go_to_message(p.channel, ch.message + 1);
    note_unexecuted(s_, ch);
    return true;
  }

  // Places the payload of the last packet of a parked message, or a part of it.
  void place_kept(uint32_t channel, ParkedMessage& m) {
    executor().place_last(packet_of(channel, m));
    if (!is_placed(m)) return;
    s_.kept.free(m.kept, s_.channels[channel].kept);
    m.kept = 0;
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
      const EndedInContext ended{m.last.req, context_of(s_, ch.peer, m.context), m.rspst};
      unpark_first(s_, ch);
      if (names_context(ended.request)) let_next_go(ended);
    }
  }

  static RequestPacket packet_of(uint32_t channel, ParkedMessage& m) { return {channel, m, m.start, m.rtp, m.last}; }

  // ---- requests of a sequence context (ROT) ------------------------------------------------------------------

  // The header names the context in place of the send queue, which those that execute the request want to know.
  [[gnu::noinline, gnu::cold]] Delivered deliver_in_context(uint32_t channel, const wire::RtpHeader& rtp,
                                                           std::span<const std::byte> rest, wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    const RequestPacket p{channel, ch.open, ch.message_start, rtp, ta};
    wire::Btah& request = ta.req;
    const uint32_t context = ch.rol || ch.compact ? 0 : context_of(s_, ch.peer, request.rc_id);
    Turn turn = Turn::kNever;
    ch.open.context = static_cast<uint16_t>(context == 0 ? 0 : request.rc_id);
    request.rc_id = 0;  // no queue has it, so that nobody takes the answer for one to a request of his
    if (context != 0) {
      request.rc_id = s_.contexts[context].rcid;
      turn = turn_of(s_.contexts[context], request);
    }
    request.rc_id |= kAnswerToContext;
    if (turn == Turn::kNever) {
      s_.count(Counter::kTaRxNoContext);
      fail_message(ch.open, {wire::kRspError, wire::kErrUnsupportedRequest});
    } else if (turn == Turn::kEarly && ch.open.rspst == 0) {
      if (hold(p, rest, context)) return Delivered::kDone;
      fail_message(ch.open, {wire::kRspRnr, kSoon});
    }
    return deliver_in_turn<true>(p, rest);
  }

  // The turn of this message has not come: it is held until then. Only one packet of an operation that takes no receive
  // is, and no atomic where memory answers later, because the host would write the value that it found into a record
  // that ends with its channel. False: it is not held, and the initiator sends it again.
  bool hold(const RequestPacket& p, std::span<const std::byte> rest, uint32_t context) {
    using enum wire::TaOpcode;
    tp::Channel& ch = s_.channels[p.channel];
    const wire::TaOpcode op = p.ta.req.opcode;
    const bool may_wait = wire::ta_is_atomic(op) ? !s_.config.slow_memory
                                                 : op == kWrite || op == kWriteByteEnable || op == kRead;
    // A message of one packet has no copies under way, unless another packet says that it belongs to it, too.
    if (!may_wait || !p.rtp.last || p.rtp.psn != p.start || ch.open.copies != 0) return false;
    if (!room_for_early(s_, ch, s_.contexts[context])) return false;
    const uint32_t kept = tp::keep_packet(s_, ch, p.rtp, rest);
    if (kept == 0) return false;
    ParkedMessage& m = hold_early(s_, p.channel);
    m.kept = kept;
    m.held_until = s_.now + kHeldLongest;
    s_.timers.arm(s_.timer_of_channel(p.channel), m.held_until);
    describe_kept(m, p, rest);
    s_.count(Counter::kTaRxEarly);
    note_of<Host>(s_, Stage::kMessageEarly, p.channel, m.number.value(), context);
    go_to_message(p.channel, ch.message + 1);
    return true;
  }

  // The record remembers the last packet of its message; if its payload was kept, where that is.
  void describe_kept(ParkedMessage& m, const RequestPacket& p, std::span<const std::byte> rest) {
    m.rtp = p.rtp;
    m.last = p.ta;
    if (m.kept == 0) return;
    m.last.payload = s_.kept.data(m.kept) + (p.ta.payload - rest.data());
    if (p.ta.has_be) m.last.be.bits = s_.kept.data(m.kept) + (p.ta.be.bits - rest.data());
  }

  // A request of a context that has been executed, or will not be.
  struct EndedInContext {
    wire::Btah request;
    uint32_t context;  // 0: it has ended meanwhile, and its record may be that of another one
    uint8_t rspst;
  };

  void end_in_context(const RequestPacket& p) {
    const uint32_t peer = s_.channels[p.channel].peer;
    const EndedInContext ended{p.ta.req, context_of(s_, peer, p.message.context), p.message.rspst};
    end_message(p.channel);
    let_next_go(ended);
  }

  // One that asks for an order and was refused comes again. Otherwise the next one in turn, which any channel of the
  // peer may hold, is executed.
  void let_next_go(const EndedInContext& ended) {
    if (ended.context == 0 || ended.rspst == kSilent) return;
    const bool ordered = (ended.request.odr & wire::kOdrExecutionMask) != wire::kOdrNone;
    if (ended.rspst == wire::kRspRnr && ordered) return;
    const uint32_t next = note_executed(s_, ended.context, ended.request.tassn);
    if (next == 0) return;
    const uint32_t channel = s_.parked[next].channel;
    park_held(s_, next);
    end_parked(channel);
    // What its record made room for is delivered later, because this call may come from the delivery of that channel.
    if (s_.channels[channel].stalled) s_.timers.arm(s_.timer_of_channel(channel), s_.now + nanoseconds(1));
  }

  TargetExecutor<Host> executor() { return {s_, host_}; }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
