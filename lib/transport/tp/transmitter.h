// SPDX-License-Identifier: Apache-2.0
//
// The Transmitter does what all packets of a channel have in common: it writes the transport header into the host's
// frame, seals the frame with the ICRC and records that the packet was sent. It builds the packets that carry no
// transaction (fakes, acknowledgements, CNPs) and holds frames that wait for memory. What lies behind the transport
// header of other packets is written by the caller (ta/packet_sender.h).
//
// Acknowledgements are sent after the data of a poll, so that one covers many packets. A CNP that is owed is sent
// before the acknowledgement.
#pragma once

#include "lib/transport/host.h"
#include "lib/transport/seal_and_commit.h"
#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/fused_ack.h"
#include "lib/transport/tp/gap_report.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/paths.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/sack.h"

namespace ub::tp {

template <class Host>
class Transmitter {
 public:
  Transmitter(State& s, Host& host) : s_(s), host_(host) {}

  // ---- data --------------------------------------------------------------------------------------------------

  // Sends a fake packet in place of a packet of this message, under its PSN; false: there is no room in the port.
  // `last`: no packet of the message was built behind it.
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

  // Writes the network and the transport header. `tp_bytes`: length from the transport header on, without the ICRC.
  void write_header(Channel& ch, wire::RtpHeader& rtp, std::byte* frame, size_t tp_bytes) {
    rtp.src_tpn = ch.tpn;
    rtp.dst_tpn = ch.peer_tpn;
    size_t at = ch.headers.write(frame, tp_bytes + wire::kIcrcSize, wire::kEcnNotCapable);
    rtp.write(frame + at);
  }

  // Seals the frame, gives it to the port and records that the packet was sent. `last`: it is the last one of its
  // message.
  void send_frame(uint32_t channel, Instant now, TxMessage& m, std::byte* frame, size_t bytes, Psn psn, bool again,
                  bool last) {
    Channel& ch = s_.channels[channel];
    if constexpr (Looks<Host>) {
      if (s_.looker.looks()) [[unlikely]]
        note_sent(channel, m, psn, again);
    }
    if (ch.tells_sent) [[unlikely]]
      tell_sent(s_, channel, now, m, psn, {frame, bytes}, again);
    commit(ch, frame, bytes);
    ++ch.tx_packets;
    note_step<Host>(s_, Stage::kPacketSealed, channel, psn.value());
    if (again) return resent(s_, ch, psn, now);
    s_.count(Counter::kTpTxData);
    packet_sent(s_, channel, m, now);
    if (last) message_sent(ch, m);
  }

  // ---- memory that answers later -----------------------------------------------------------------------------

  // Holds a packet whose gathers are pending, or which has to wait behind such packets: its frame goes back to the
  // port.
  void hold(uint32_t channel, Instant now, HeldFrame& h, std::byte* frame) {
    s_.held.hold(host_, h, frame);
    append_held(s_, channel, h, now);
  }

  // Sends a held frame as a packet of this message; false: there is no room in the port.
  bool send_held(uint32_t channel, Instant now, TxMessage& m, const HeldFrame& h) {
    std::byte* frame = s_.held.resume(host_, h);
    if (frame == nullptr) return false;
    send_frame(channel, now, m, frame, h.bytes, h.psn, h.again, h.last);
    return true;
  }

  // ---- acknowledgements --------------------------------------------------------------------------------------

  // Visits each channel on the list once. Those whose acknowledgement is delayed go to the end of the list. Returns how
  // many acknowledgements were sent.
  size_t send_acks(Acks acks, Instant now) {
    size_t sent = 0;
    s_.acks_found_no_room = false;
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
      } else {  // there is no room in the port
        s_.owing_acks.push_front<&Channel::on_ack_list>(s_.channels, channel);
        s_.acks_found_no_room = true;
        due = now + kAckDelay;
        break;
      }
    }
    s_.acks_due = due;
    return sent;
  }

 private:
  // All notes about a packet that is sent are behind one branch, which is all that they cost live traffic.
  [[gnu::noinline, gnu::cold]] void note_sent(uint32_t channel, const TxMessage& m, Psn psn, bool again) {
    const bool begins = m.kind == MessageKind::kRequest && m.segment == 0 && psn == m.first_psn && !again;
    if (begins) s_.note(Stage::kRequestBegan, m.source, m.work_request, psn.value(), channel);
    s_.note(again ? Stage::kPacketSentAgain : Stage::kPacketSent, channel, psn.value(), m.tpmsn.value());
  }

  // Tells the peer of congestion that its packets met (6.2.2). False: there is no room in the port.
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
    if (ch.several_paths) turn_to(path_at(s_, ch, block_of(s_, ch).cnp_path), frame, bytes);
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
    if (ch.rol || ch.go_back_n || ch.feeds_back || ch.several_paths) [[unlikely]]
      return send_other_ack(channel);
    if (!send_ack_packet<0>(channel, make_ack(s_, ch), status_of(ch), false)) return false;
    host_.tx_may_wait(ch.link);
    return true;
  }
  static MessageStatus status_of(const Channel& ch) { return {{}, ch.message - 1, 0, 0}; }

  // send_ack() for ROL, Go-Back-N and several paths, and with a report of what the network said. If a failure that the
  // peer reported is to be confirmed, the confirmation leaves first.
  [[gnu::cold]] bool send_other_ack(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    if (ch.fused.confirm_owed) {
      if (!send_confirmation(channel)) return false;
      if (!is_owed(ch)) return true;
    }
    FusedAck ack = ch.rol ? make_fused_ack(s_, ch) : FusedAck{make_ack(s_, ch), status_of(ch)};
    const bool gap = report_gap(ch, &ack);
    constexpr size_t kReport = wire::CetphCaqm::kSize;
    Path* const path = ch.several_paths ? &path_at(s_, ch, path_of_ack(s_, ch)) : nullptr;
    const bool sent = ch.feeds_back ? send_ack_packet<kReport>(channel, ack.content, ack.status, gap, path)
                                    : send_ack_packet<0>(channel, ack.content, ack.status, gap, path);
    if (!sent) return false;
    gap_report_sent(ch, gap);
    host_.tx_may_wait(ch.link);
    return true;
  }

  bool send_confirmation(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    const MessageStatus& confirmed = ch.fused.confirmed;
    const size_t bytes = ch.headers.size + wire::RtpHeader::kSize + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return false;
    wire::RtpHeader rtp;
    rtp.last = rtp.ack_req = rtp.fake = true;
    rtp.psn = confirmed.last;
    set_status(rtp, confirmed);
    write_header(ch, rtp, frame, wire::RtpHeader::kSize);
    if (ch.several_paths) turn_to(path_at(s_, ch, path_of_ack(s_, ch)), frame, bytes);
    commit(ch, frame, bytes);
    ch.fused.confirm_owed = false;
    s_.count(Counter::kTpTxFake);
    note_of<Host>(s_, Stage::kPacketFake, channel, confirmed.last.value(), confirmed.message.value());
    return true;
  }

  // The CETPH of an acknowledgement (6.2.2).
  static void write_report(const Channel& ch, cc::Heard& heard, std::byte* p) {
    if (ch.feedback == wire::CcAlgorithm::kLdcp) return heard.ldcp().write(p);
    heard.caqm().write(p);
    heard.caqm_said();
  }
  // The frame leaves on this path.
  static void turn_to(const Path& path, std::byte* frame, size_t bytes) {
    path.headers.write(frame, bytes - path.headers.size, wire::kEcnNotCapable);
  }

  static void set_status(wire::RtpHeader& rtp, const MessageStatus& status) {
    rtp.tpmsn = status.message;
    rtp.rspst = status.rspst;
    rtp.rspinfo = status.rspinfo;
  }

  // `gap`: it is a TPNAK. `report_bytes`: of the CETPH. `path`: that it takes; null: the only one.
  template <size_t report_bytes>
  bool send_ack_packet(uint32_t channel, const AckContent& ack, const MessageStatus& status, bool gap,
                       Path* path = nullptr) {
    Channel& ch = s_.channels[channel];
    constexpr size_t kAt = wire::RtpHeader::kSize + report_bytes;
    size_t tp_bytes = kAt + (ack.selective ? wire::sack_size(ack.size_code) : 0);
    size_t bytes = ch.headers.size + tp_bytes + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return false;
    wire::RtpHeader rtp;
    if constexpr (report_bytes != 0) {
      rtp.opcode = ack.selective ? wire::TpOpcode::kSackCc : wire::TpOpcode::kAckCc;
      write_report(ch, path == nullptr ? ch.heard : path->heard, frame + ch.headers.size + wire::RtpHeader::kSize);
    } else {
      rtp.opcode = ack.selective ? wire::TpOpcode::kSack : wire::TpOpcode::kAck;
    }
    rtp.psn = ack.cumulative;
    set_status(rtp, status);
    write_header(ch, rtp, frame, tp_bytes);
    if (path != nullptr) {
      turn_to(*path, frame, bytes);
      ack_left(s_, ch, *path);
    }
    if (ack.selective) {
      wire::write_sack(frame + ch.headers.size + kAt, ack.size_code, ack.highest, ack.bitmap);
    }
    commit(ch, frame, bytes);
    ack_sent(ch);
    note_of<Host>(s_, gap ? Stage::kNakSent : ack.selective ? Stage::kSackSent : Stage::kAckSent, channel,
                  ack.cumulative.value(), ack.highest.value());
    s_.count(gap ? Counter::kTpTxNak : ack.selective ? Counter::kTpTxSack : Counter::kTpTxAck);
    return true;
  }

  // If both ends agreed to leave the ICRC out, a zero takes its place.
  void commit(const Channel& ch, std::byte* frame, size_t bytes) {
    seal_and_commit(s_, host_, ch.link, frame, bytes, [&](const std::byte* l3, size_t covered) {
      return ch.icrc ? UbIcrc{ch.headers.form}(l3, covered) : 0;
    });
  }

  State& s_;
  Host& host_;
};

}  // namespace ub::tp
