// SPDX-License-Identifier: Apache-2.0
//
// What every packet of a channel needs, whatever it carries, straight in the host's frames: the transport header, the
// ICRC and the books; packets that carry no transaction (fake ones, acknowledgements); and frames that wait for memory.
// What lies behind the transport header is written by whoever sends it.
//
// Acknowledgements leave after the data of a drive, so that one covers many packets.
#pragma once

#include "lib/transport/held_frames.h"
#include "lib/transport/host.h"
#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/icrc.h"
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
    if (ch.tells_sent) [[unlikely]]
      tell_sent(s_, channel, now, psn, {frame, bytes}, again);
    seal(ch, frame, bytes);
    host_.tx_commit(ch.link, frame, bytes);
    ++ch.tx_packets;
    s_.count(Counter::kTxPackets);
    s_.count(Counter::kTxBytes, bytes);
    if (again) return resent(s_, ch, psn);
    s_.count(Counter::kTpTxData);
    packet_sent(s_, channel, m, now);
    if (last) message_sent(ch, m);
  }

  // ---- memory that answers later -----------------------------------------------------------------------------

  // A packet whose gathers are pending, or which is behind such packets: it leaves the port until its turn.
  void hold(uint32_t channel, Instant now, HeldPacket& h, std::byte* frame) {
    Channel& ch = s_.channels[channel];
    hold_frame(s_, host_, held_number(s_, h), ch.link, frame, h.bytes);
    append_held(s_, ch, h, now);
  }

  // The frame that is held leaves as a packet of this message; false: no room in the port.
  bool send_held(uint32_t channel, Instant now, TxMessage& m, const HeldPacket& h) {
    std::byte* frame = resume_frame(s_, host_, held_number(s_, h), s_.channels[channel].link, h.bytes);
    if (frame == nullptr) return false;
    send_frame(channel, now, m, frame, h.bytes, h.psn, h.again, h.last);
    return true;
  }

  // ---- acknowledgements --------------------------------------------------------------------------------------

  // Each channel on the list is looked at once; what stays back goes to its end. Returns how many left.
  size_t send_acks(Acks acks, Instant now) {
    size_t sent = 0;
    uint32_t last = s_.ack_tail;
    Instant due = Instant::never();
    while (s_.ack_head != 0) {
      uint32_t channel = s_.ack_head;
      Channel& ch = s_.channels[channel];
      bool waits = acks == Acks::kMayWait && ch.is_up() && ack_may_wait(ch, now);
      if (ch.is_up() && !waits) {
        if (!send_ack(ch)) {  // for want of room
          due = now + kAckDelay;
          break;
        }
        ++sent;
      }
      s_.ack_head = ch.next_ack;
      if (s_.ack_head == 0) s_.ack_tail = 0;
      ch.on_ack_list = false;
      if (waits) {
        owe_ack(s_, channel);
        due = earlier(due, ch.ack_due);
      }
      if (channel == last) break;
    }
    s_.acks_due = due;
    return sent;
  }

 private:
  bool send_ack(Channel& ch) {
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
    seal(ch, frame, bytes);
    host_.tx_commit(ch.link, frame, bytes);
    host_.tx_may_wait(ch.link);
    ack_sent(ch);
    s_.count(ack.selective ? Counter::kTpTxSack : Counter::kTpTxAck);
    s_.count(Counter::kTxPackets);
    s_.count(Counter::kTxBytes, bytes);
    return true;
  }

  static void seal(const Channel& ch, std::byte* frame, size_t bytes) {
    std::byte* end = frame + bytes - wire::kIcrcSize;
    if (!ch.icrc) return wire::icrc_store(end, 0);
    const std::byte* l3 = frame + wire::kEthSize;
    wire::icrc_store(end, wire::icrc_compute(l3, static_cast<size_t>(end - l3), ch.headers.v6()));
  }

  State& s_;
  Host& host_;
};

}  // namespace ub::tp
