// SPDX-License-Identifier: Apache-2.0
//
// Sends the packets of a channel of CTP (UB Base Specification Rev 2.0, 6.2.1). Each message is one packet, which is
// sent once and forgotten, unless the wire may lose it (repeated_requests.h). Channel::in_flight has the messages that
// are not sent yet: answers until their turn, and at most one request that found the port full, because requests are
// taken from their queues only when nothing else is to be sent. Channel::answers has the questions of queues that left
// requests without an answer (silent_requests.h); they leave behind those.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/seal_and_commit.h"
#include "lib/transport/setup/compact_life.h"
#include "lib/transport/ta/compact_frame.h"
#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/packet_source.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/repeated_requests.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/silent_requests.h"
#include "lib/transport/wire/compact_packet.h"

namespace ub::ta {

template <class Host>
class CompactSender {
 public:
  CompactSender(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Sends the next packet of the channel.
  Sent send_next(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    Sent sent = Sent::kNothing;
    while (sent == Sent::kNothing && !ch.in_flight.empty()) sent = send_waiting(channel);
    if (sent == Sent::kNothing && ch.repeats != 0) sent = repeat(channel);
    if (sent == Sent::kNothing && !ch.answers.empty()) sent = ask(channel);
    while (sent == Sent::kNothing) {
      tp::TxMessage next{};
      if (!begin_request(channel, &next)) return Sent::kNothing;
      sent = send_first(channel, next);
      if (sent == Sent::kNoRoom) let_wait(s_, ch, next);
    }
    return sent;
  }

 private:
  // Sends the first of the messages that wait. kNothing: it was not needed any more.
  Sent send_waiting(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    tp::TxMessage& m = ch.in_flight.front(s_.messages);
    Sent sent = has_bytes(m) ? send_first(channel, m) : Sent::kNothing;
    if (sent == Sent::kNothing && has_bytes(m)) sent = send(channel, m);  // the memory of a READ was not there
    if (sent == Sent::kNoRoom) return sent;
    if (m.kind == tp::MessageKind::kReadResponse) finish_read_job(s_, m);
    ch.in_flight.pop(s_.messages);
    return sent;
  }

  // A segment that has left may have to leave again.
  Sent send_first(uint32_t channel, tp::TxMessage& m) {
    const Sent sent = send(channel, m);
    const bool repeats = s_.channels[channel].repeats != 0;
    if (repeats && sent == Sent::kYes && m.kind == tp::MessageKind::kRequest) note_sent(s_, channel, m);
    return sent;
  }

  // Sends the next segment that is to be sent again. kNothing: there is none.
  [[gnu::noinline, gnu::cold]] Sent repeat(uint32_t channel) {
    Sent sent = Sent::kNothing;
    for (SentSegment* due; sent == Sent::kNothing && (due = next_repeat(s_, s_.channels[channel])) != nullptr;) {
      tp::TxMessage m = message_of(s_, *due);
      sent = send(channel, m);
      if (sent != Sent::kYes) continue;
      note_of<Host>(s_, Stage::kCompactRepeated, channel, m.tassn.value());
      note_repeated(s_, channel, *due);
    }
    return sent;
  }

  // Sends the next question that still matters. kNothing: there is none.
  [[gnu::noinline, gnu::cold]] Sent ask(uint32_t channel) {
    tp::MessageQueue& questions = s_.channels[channel].answers;
    Sent sent = Sent::kNothing;
    while (sent == Sent::kNothing && !questions.empty()) {
      tp::TxMessage& m = questions.front(s_.answers);
      if (request_of(s_, m) != nullptr) sent = send(channel, m);
      if (sent == Sent::kNoRoom) break;
      if (sent == Sent::kYes) s_.count(Counter::kCtpTxQuestion);
      questions.pop(s_.answers);
    }
    return sent;
  }

  // The next segment of the queues that wait for the channel becomes a message.
  bool begin_request(uint32_t channel, tp::TxMessage* m) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.queues.empty()) return false;
    Lane& lane = lane_of(s_, ch);
    const bool idle = lane.unanswered == 0;
    if (idle) ch.give_up_after = s_.config.channel_timeout;  // nobody's longer deadline is left
    if (!start_next_segment(s_, lane, channel, m)) return false;
    if (idle) setup::await_answers(s_, channel);
    return true;
  }

  // Is there anything to send? A READ whose memory has gone is answered with an error; a request that was given up
  // needs nothing.
  bool has_bytes(tp::TxMessage& m) {
    if (source().alive(m)) return true;
    if (m.kind != tp::MessageKind::kReadResponse) return false;
    refuse_read(s_, m);
    return true;
  }

  // Builds and sends the packet. kNothing: its memory is gone.
  Sent send(uint32_t channel, tp::TxMessage& m) {
    tp::Channel& ch = s_.channels[channel];
    wire::TaPacket ta;
    Payload payload;
    const bool silent = describe_packet(ch, m, &ta, &payload);
    const size_t most =
        wire::CompactTemplate::kSize + wire::kMaxTransactionHeaderSize + payload.bytes + 3 + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, most);
    if (frame == nullptr) return Sent::kNoRoom;
    const size_t headers = wire::write_transaction_headers(ta, frame + wire::CompactTemplate::kSize);
    std::byte* at = frame + wire::CompactTemplate::kSize + headers;
    uint32_t pending = 0;  // stays 0, because this memory answers at once
    if (source().gather(payload, {0, pending}, at) == CopyResult::kFailed) {
      host_.tx_abort(ch.link, frame);
      source().vanished(m);
      return Sent::kNothing;
    }
    const uint8_t padding = wire::compact_padding_for(headers + payload.bytes);
    at += payload.bytes;
    std::memset(at, 0, padding);
    at += padding;
    ch.compact_headers.write(frame, padding);
    seal_and_commit(s_, host_, ch.link, frame, static_cast<size_t>(at - frame) + wire::kIcrcSize, CompactIcrc{ch.icrc});
    count_compact(s_, ch);
    if (has_silent(s_, ch)) note_left(s_, m, silent);
    note_step<Host>(s_, Stage::kCompactSent, channel, m.tassn.value());
    if (m.kind == tp::MessageKind::kAnswer && payload.bytes == 0) host_.tx_may_wait(ch.link);
    return Sent::kYes;
  }

  // What the packet says. Returns whether it is a request that wants no answer.
  bool describe_packet(const tp::Channel& ch, const tp::TxMessage& m, wire::TaPacket* ta, Payload* payload) {
    if (m.kind == tp::MessageKind::kFake) [[unlikely]] {
      *ta = question(s_, m);
      return false;
    }
    [[maybe_unused]] const bool whole = describe(s_, ch, m, 0, ta, payload);
    UB_DCHECK(whole);
    if (!has_silent(s_, ch)) [[likely]]
      return false;
    ta->req.no_taack = is_silent(s_, ch, m);
    return ta->req.no_taack;
  }

  PacketSource<Host> source() { return {s_, host_}; }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
