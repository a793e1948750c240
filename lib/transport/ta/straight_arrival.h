// SPDX-License-Identifier: Apache-2.0
//
// Takes packets of CTP that are what their channel expects: a WRITE with its whole payload in one packet, an answer of
// success without data, or the response to the oldest READ of its queue. Their headers are compared with those that the
// peer would write, and not taken apart, as TCP does with its header prediction (docs/straight-path-design.md). A
// packet that differs, or finds anything unusual about its channel, is left to packet_receiver.h, as if nobody had
// looked at it.
#pragma once

#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/oldest_requests.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/silent_requests.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/extension_headers.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

template <class Host>
class StraightArrival {
 public:
  StraightArrival(CoreState& s, Host& host) : s_(s), host_(host) {}

  // A frame that begins with a link header. False: nothing has changed, and the general path has to take it.
  bool take(uint32_t link, std::span<const std::byte> frame) {
    constexpr size_t kLeast = wire::CompactTemplate::kSize + wire::Btah::kSize + wire::kIcrcSize;
    if (frame.size() < kLeast || !s_.config.straight) [[unlikely]]
      return false;
    const auto opcode = static_cast<wire::TaOpcode>(load_u8(frame.data() + wire::CompactTemplate::kSize));
    const bool known = opcode == wire::TaOpcode::kWrite || opcode == wire::TaOpcode::kTaack ||
                       opcode == wire::TaOpcode::kReadResponse;
    if (!known) [[unlikely]]
      return false;
    const uint32_t channel = setup::channel_of_tpn(s_, wire::CompactTemplate::dcna_of(frame.data()));
    if (channel == 0) [[unlikely]]
      return false;
    tp::Channel& ch = s_.channels[channel];
    if (ch.link != link || !is_quiet(ch)) [[unlikely]]
      return false;
    uint8_t padding;
    if (!ch.compact_headers.expects(frame.data(), &padding)) [[unlikely]]
      return false;
    const std::byte* const ta = frame.data() + wire::CompactTemplate::kSize;
    const std::byte* const end = frame.data() + frame.size() - wire::kIcrcSize;
    if (wire::compact_padding_for(static_cast<size_t>(end - ta)) != 0) [[unlikely]]
      return false;
    if (ch.icrc && !has_icrc(frame.data(), end)) [[unlikely]]
      return false;
    const uint64_t word = load_be64(ta);
    if ((word & ~kOfWrite) == kWrite) return take_write(channel, word, ta + wire::Btah::kSize, end - padding);
    if ((word & ~kOfTaack) == kTaack && end - padding == ta + wire::Atah::kSize) return take_answer(channel, ta);
    if ((word & ~kOfResponse) == kResponse) return take_response(channel, word, ta + wire::Atah::kSize, end - padding);
    return false;
  }

 private:
  static bool has_icrc(const std::byte* frame, const std::byte* end) {
    wire::CompactPacket packet{};
    packet.nth = frame + wire::kEthSize + wire::LinkHeader::kSize;
    packet.end = end;
    return wire::icrc_matches(packet);
  }

  // What the headers say, but for the fields that differ from packet to packet.
  template <class Header>
  static constexpr uint64_t plain(wire::TaOpcode opcode) {
    Header header;
    header.opcode = opcode;
    return header.word();
  }
  static constexpr uint64_t kWrite = plain<wire::Btah>(wire::TaOpcode::kWrite);
  static constexpr uint64_t kOfWrite = wire::Btah::kNumbers | wire::Btah::kToken;
  static constexpr uint64_t kTaack = plain<wire::Atah>(wire::TaOpcode::kTaack);
  static constexpr uint64_t kOfTaack = wire::Atah::kNumbers;
  static constexpr uint64_t kResponse = plain<wire::Atah>(wire::TaOpcode::kReadResponse);
  static constexpr uint64_t kOfResponse = wire::Atah::kTransaction;

  // Is the channel open, and is nothing under way that its next packet could meet?
  bool is_quiet(const tp::Channel& ch) const {
    return ch.compact && ch.is_up() && ch.repeats == 0 && !ch.rol && ch.begun == tp::Begun::kNothing &&
           ch.open.receive == 0 && ch.ending.empty() && ch.ahead.empty() && !has_silent(s_, ch);
  }

  // Requests are admitted, answered and counted as PacketReceiver::on_compact() and RequestDelivery do it.
  bool take_write(uint32_t channel, uint64_t word, const std::byte* at, const std::byte* payload_end) {
    tp::Channel& ch = s_.channels[channel];
    if (ch.in_flight.size() >= s_.config.window_packets) [[unlikely]]
      return false;
    const bool token = (word & wire::Btah::kToken) != 0;
    const std::byte* const payload = at + wire::Maetah::kSize + (token ? wire::Tvetah::kSize : 0);
    const int64_t bytes = payload_end - payload;
    if (bytes <= 0 || bytes > ch.mtu) [[unlikely]]
      return false;
    const wire::Maetah ma = wire::Maetah::read(at);
    if (ma.length != static_cast<uint64_t>(bytes)) [[unlikely]]
      return false;
    const uint32_t value = token ? wire::Tvetah::read(at + wire::Maetah::kSize).token_value : 0;
    std::byte* const memory =
        remote_memory(s_, {ma.token_id, token, value, ma.address, ma.length, kAccessWrite}, nullptr);
    if (memory == nullptr) [[unlikely]]
      return false;
    const CopyTag tag = place_tag(ch.tpn, ch.message);
    if (place_piece(host_, {tag, ch.open.copies}, memory, payload, ma.length, true) != CopyResult::kDone) [[unlikely]]
      return false;
    wire::Btah request;
    request.opcode = wire::TaOpcode::kWrite;
    request.tassn = Tassn(static_cast<uint16_t>(word >> 32));
    request.rc_id = static_cast<uint32_t>(word) & 0xFFFFF;
    note_taken(channel);
    answer(s_, channel, request, wire::TaOpcode::kTaack, wire::kRspOk, 0);
    return true;
  }

  bool take_answer(uint32_t channel, const std::byte* ta) {
    wire::Atah answer;
    if (wire::Atah::read(ta, wire::Atah::kSize, answer) != wire::Drop::kNone) [[unlikely]]
      return false;
    note_taken(channel);
    on_answer(s_, channel, answer);
    return true;
  }

  // Its bytes are placed as ResponsePlacer does it.
  bool take_response(uint32_t channel, uint64_t word, const std::byte* payload, const std::byte* payload_end) {
    const int64_t bytes = payload_end - payload;
    const uint32_t queue = queue_of(s_, static_cast<uint32_t>(word) & 0xFFFFF);
    if (queue == 0 || bytes <= 0) [[unlikely]]
      return false;
    const Tassn tassn(static_cast<uint16_t>(word >> 32));
    const Wqe* const wqe = oldest_read(s_, channel, queue, tassn, static_cast<uint64_t>(bytes));
    if (wqe == nullptr) [[unlikely]]
      return false;
    SendQueue& q = s_.queues[queue];
    std::byte* const memory = local_memory(s_, q.owner, wqe->sge.segment, wqe->sge.address, wqe->length);
    if (memory == nullptr) [[unlikely]]
      return false;
    const CopyTag tag = response_tag(s_.channels[channel].tpn, queue, q.started_head);
    const Copies copies{tag, q.copies_pending};
    if (place_piece(host_, copies, memory, payload, wqe->length, true) != CopyResult::kDone) [[unlikely]]
      return false;
    note_taken(channel);
    s_.note(Stage::kRequestAnswered, queue, q.started_head, static_cast<uint32_t>(CrStatus::kSuccess));
    complete_oldest(s_, channel, queue, tassn, 1);
    go_on_behind_oldest(s_, queue, channel);
    return true;
  }

  // The packet is the next message of the channel, and has been delivered.
  void note_taken(uint32_t channel) {
    tp::Channel& ch = s_.channels[channel];
    note_step<Host>(s_, Stage::kCompactArrived, channel);
    note_step<Host>(s_, Stage::kMessageEnded, channel, ch.message.value());
    ch.heard_at = s_.now;
    ++ch.rx_packets;
    ch.message_start = ch.expected;
    ch.delivered = ++ch.expected;
    ++ch.message;
    s_.count(Counter::kCtpRx);
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
