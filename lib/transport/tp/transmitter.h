// SPDX-License-Identifier: Apache-2.0
//
// What every packet of a channel needs, whatever it carries, straight in the host's frames: the transport header, the
// ICRC and the books; packets that carry no transaction (fake ones, acknowledgements); and frames that wait for memory.
// What lies behind the transport header is written by whoever sends it.
//
// Acknowledgements leave after the data of a drive, so that one covers many packets. What is owed beside one leaves with it.
#pragma once

#include "lib/transport/held_frames.h"
#include "lib/transport/host.h"
#include "lib/transport/sealed_frame.h"
#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/sack.h"

namespace ub::tp {

template <class Host>
class Transmitter {
 public:
  Transmitter(State& s, Host& host) : s_(s), host_(host) {}

  // ---- data --------------------------------------------------------------------------------------------------

  // Under the number of a packet of this message, in its place; false: no room in the port. `last`: nothing of the message
  // was built behind it.
  bool send_fake(uint32_t channel, Instant now, TxMessage& m, Psn psn, bool again, bool last) {
    Channel& ch = s_.channels[channel];
    size_t bytes = ch.headers.size + wire::RtpHeader::kSize + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return false;
    wire::RtpHeader rtp;
    rtp.last = rtp.ack_req = rtp.fake = true;
    rtp.psn = psn;
    rtp.tpmsn = m.tpmsn;
    write_header(ch, rtp, frame, wire::RtpHeader::kSize);
    s_.count(Counter::kTpTxFake);
    note_of<Host>(s_, Stage::kPacketFake, channel, psn.value(), m.tpmsn.value());
    send_frame(channel, now, m, frame, bytes, psn, again, last);
    return true;
  }

  // Network and transport header; `tp_bytes` from the latter on, without the ICRC.
  void write_header(Channel& ch, wire::RtpHeader& rtp, std::byte* frame, size_t tp_bytes) {
    rtp.src_tpn = ch.tpn;
    rtp.dst_tpn = ch.peer_tpn;
    size_t at = ch.headers.write(frame, tp_bytes + wire::kIcrcSize, wire::kEcnNotCapable);
    rtp.write(frame + at);
  }

  // Seals and hands over; the channel's books say that the packet left. `last`: of its message.
  void send_frame(uint32_t channel, Instant now, TxMessage& m, std::byte* frame, size_t bytes, Psn psn, bool again,
                  bool last) {
    Channel& ch = s_.channels[channel];
    if constexpr (Looks<Host>) {
      if (s_.looker.looks()) [[unlikely]]
        note_sent(channel, m, psn, again);
    }
    if (ch.tells_sent) [[unlikely]]
      tell_sent(s_, channel, now, psn, {frame, bytes}, again);
    commit(ch, frame, bytes);
    ++ch.tx_packets;
    note_step<Host>(s_, Stage::kPacketSealed, channel, psn.value());
    if (again) return resent(s_, ch, psn);
    s_.count(Counter::kTpTxData);
    packet_sent(s_, channel, m, now);
    if (last) message_sent(ch, m);
  }

  // ---- memory that answers later -----------------------------------------------------------------------------

  // A packet whose gathers are pending, or which is behind such packets: it leaves the port until its turn.
  void hold(uint32_t channel, Instant now, HeldPacket& h, std::byte* frame) {
    Channel& ch = s_.channels[channel];
    hold_frame(s_, host_, held_place(s_, h), ch.link, frame, h.bytes);
    append_held(s_, ch, h, now);
  }

  // The frame that is held leaves as a packet of this message; false: no room in the port.
  bool send_held(uint32_t channel, Instant now, TxMessage& m, const HeldPacket& h) {
    std::byte* frame = resume_frame(s_, host_, held_place(s_, h), s_.channels[channel].link, h.bytes);
    if (frame == nullptr) return false;
    send_frame(channel, now, m, frame, h.bytes, h.psn, h.again, h.last);
    return true;
  }

  // ---- acknowledgements --------------------------------------------------------------------------------------

  // Each channel on the list is looked at once; what stays back goes to its end. Returns how many left.
  size_t send_acks(Acks acks, Instant now) {
    size_t sent = 0;
    const uint32_t last = s_.owing_acks.back();
    Instant due = Instant::never();
    for (uint32_t channel = 0; channel != last;) {
      channel = s_.owing_acks.pop_front<&Channel::on_ack_list>(s_.channels);
      Channel& ch = s_.channels[channel];
      if (!ch.is_up()) continue;
      if (acks == Acks::kMayWait && ack_may_wait(ch, now)) {
        owe_ack(s_, channel);
        due = earlier(due, ch.ack_due);
      } else if (send_ack(channel)) {
        ++sent;
      } else {  // for want of room
        s_.owing_acks.push_front<&Channel::on_ack_list>(s_.channels, channel);
        due = now + kAckDelay;
        break;
      }
    }
    s_.acks_due = due;
    return sent;
  }

 private:
  // One branch for all that begins with a packet: it costs live traffic nothing more.
  [[gnu::noinline, gnu::cold]] void note_sent(uint32_t channel, const TxMessage& m, Psn psn, bool again) {
    const bool begins = m.kind == MessageKind::kRequest && m.segment == 0 && psn == m.first_psn && !again;
    if (begins) s_.note(Stage::kRequestBegan, m.source, m.work_request, psn.value(), channel);
    s_.note(again ? Stage::kPacketSentAgain : Stage::kPacketSent, channel, psn.value(), m.tpmsn.value());
  }

  // What the network said of the peer's packets (6.2.2). False: no room in the port.
  [[gnu::cold]] bool send_cnp(Channel& ch) {
    constexpr size_t kTpBytes = wire::RtpHeader::kSize + wire::CetphCnp::kSize;
    const size_t bytes = ch.headers.size + kTpBytes + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return false;
    wire::RtpHeader rtp;
    rtp.opcode = wire::TpOpcode::kCnp;
    rtp.psn = ch.expected - 1;
    rtp.tpmsn = ch.message - 1;
    write_header(ch, rtp, frame, kTpBytes);
    wire::CetphCnp{.ecn = ch.owed_cnp}.write(frame + ch.headers.size + wire::RtpHeader::kSize);
    commit(ch, frame, bytes);
    ch.owed_cnp = 0;
    s_.count(Counter::kTpTxCnp);
    return true;
  }

  bool send_ack(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    if (ch.owed_cnp != 0 && !send_cnp(ch)) [[unlikely]]
      return false;
    AckContent ack = make_ack(s_, ch);
    size_t tp_bytes = wire::RtpHeader::kSize + (ack.selective ? wire::sack_size(ack.size_code) : 0);
    size_t bytes = ch.headers.size + tp_bytes + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return false;
    wire::RtpHeader rtp;
    rtp.opcode = ack.selective ? wire::TpOpcode::kSack : wire::TpOpcode::kAck;
    rtp.psn = ack.cumulative;
    rtp.tpmsn = ch.message - 1;
    write_header(ch, rtp, frame, tp_bytes);
    if (ack.selective) {
      wire::write_sack(frame + ch.headers.size + wire::RtpHeader::kSize, ack.size_code, ack.highest, ack.bitmap);
    }
    commit(ch, frame, bytes);
    host_.tx_may_wait(ch.link);
    ack_sent(ch);
    note_of<Host>(s_, ack.selective ? Stage::kSackSent : Stage::kAckSent, channel, ack.cumulative.value(),
                  ack.highest.value());
    s_.count(ack.selective ? Counter::kTpTxSack : Counter::kTpTxAck);
    return true;
  }

  // Where both ends agreed that the wire cannot corrupt there is a zero instead of the sum.
  void commit(const Channel& ch, std::byte* frame, size_t bytes) {
    seal_and_commit(s_, host_, ch.link, frame, bytes, [&](const std::byte* l3, size_t covered) {
      return ch.icrc ? UbIcrc{ch.headers.v6()}(l3, covered) : 0;
    });
  }

  State& s_;
  Host& host_;
};

}  // namespace ub::tp
