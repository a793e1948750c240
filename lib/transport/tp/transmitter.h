// SPDX-License-Identifier: Apache-2.0
//
// Builds the packets of a channel straight into the host's frames: what is to be sent again first, then the message
// that was begun, then answers, then requests. Acknowledgements leave after the data of a drive, so that one covers
// many packets.
//
// A packet's payload is gathered from the memory of its work request or READ job, also when it goes again: no
// packet is stored. Where that memory is gone, a fake packet takes its place under the same PSN.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/held_frames.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/datagram_sender.h"
#include "lib/transport/ta/initiator.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/tp/copy_tag.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub::tp {

template <class Host>
class Transmitter {
 public:
  Transmitter(CoreState& s, Host& host, ta::DatagramSender<Host>& datagrams)
      : s_(s), host_(host), datagrams_(datagrams) {}

  // Sends what there is, at most `budget` frames; returns how many left.
  size_t poll(size_t budget, Acks acks) {
    if (s_.blocked_head != 0) ta::resume_next_jfc(s_);
    size_t sent = send_records(budget);
    sent += send_payload(budget - sent);
    sent += send_acks(acks);
    return sent;
  }

  // A gather that was pending is done.
  void on_gather_done(uint32_t channel, bool ok) {
    Channel& ch = s_.channels[channel];
    if (ch.gathers_pending == 0) return;
    ch.gather_failed |= !ok;
    if (--ch.gathers_pending != 0) return;
    if (!ch.gather_held) ch.gather_failed = false;
    waited_for_memory(ch, s_.now);
    activate(s_, channel);
  }

  void release_orphans() { ub::release_orphans(s_, host_); }

 private:
  enum class Sent : uint8_t { kYes, kNothing, kNoRoom, kPending };

  // Where the payload of a packet comes from.
  struct Payload {
    const Wqe* wqe = nullptr;           // a work request: its ranges or inline bytes
    uint64_t offset = 0;                // in the request
    const std::byte* memory = nullptr;  // READ response
    uint32_t bytes = 0;
    Owner owner = 0;  // of the request
    bool atomic_operands = false;
    bool atomic_value = false;
    bool gone = false;  // what it needs was removed, and perhaps made anew by another application
  };

  // ---- which packet ------------------------------------------------------------------------------------------

  // Channels and datagrams go first in turn, so that neither can use up the budget every time.
  size_t send_payload(size_t budget) {
    if (s_.active_link_head == 0) return send_data(budget);
    s_.datagrams_first = !s_.datagrams_first;
    if (s_.datagrams_first) {
      size_t sent = datagrams_.send(budget);
      return sent + send_data(budget - sent);
    }
    size_t sent = send_data(budget);
    return sent + datagrams_.send(budget - sent);
  }

  // One function with all that it calls: calls would cost as much as the work.
  [[gnu::flatten]] size_t send_data(size_t budget) {
    size_t sent = 0;
    uint32_t turns = s_.active_count;
    while (turns-- > 0 && sent < budget) {
      UB_DCHECK(s_.active_head != 0);  // so many are on the list as are counted
      uint32_t channel = s_.active_head;
      Channel& ch = s_.channels[channel];
      s_.active_head = ch.next_active;
      if (s_.active_head == 0) s_.active_tail = 0;
      --s_.active_count;
      ch.on_active_list = false;
      if (!ch.is_up()) continue;
      Sent last = Sent::kYes;
      while (sent < budget && last == Sent::kYes) {
        last = send_next(channel);
        sent += last == Sent::kYes;
      }
      if (last == Sent::kYes || last == Sent::kNoRoom) activate(s_, channel);
      const bool work_left = ch.mid_message || !ch.answers.empty() || ch.queue_head != 0;
      set_held_back(s_, &ch.held_back, last == Sent::kNothing && work_left);
    }
    return sent;
  }

  Sent send_next(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    if (!ch.is_up()) return Sent::kNothing;
    if (ch.gathers_pending != 0) return Sent::kPending;
    if (ch.gather_held) return finish_gather(channel);
    Psn psn;
    if (ch.recovery != 0 && next_resend(s_, ch, &psn)) return send_again(channel, psn);
    if (ch.mid_message) return continue_message(channel);
    return begin_next_message(channel) ? send_first(channel) : Sent::kNothing;
  }

  // Makes the next message the newest one in flight.
  bool begin_next_message(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    if (ch.unanswered == 0) ch.give_up_after = s_.config.channel_timeout;  // nobody's longer deadline is left
    if (ch.keepalive_due) {
      ch.keepalive_due = false;
      if (ch.outstanding() == 0) return begin_keepalive(ch);
    }
    if (!window_open(ch)) return false;
    if (!ch.answers.empty()) {
      if (begin_message(s_, ch, ch.answers.front(s_.messages)) == nullptr) return false;
      ch.answers.pop(s_.messages);
    } else {
      if (ch.queue_head == 0) return false;
      TxMessage next{};
      if (!ta::start_next_segment(s_, channel, &next)) return false;
      const TxMessage* m = begin_message(s_, ch, next);
      UB_ASSERT(m != nullptr);  // the pool holds a full window for every channel
    }
    ch.mid_message = true;
    return true;
  }

  bool begin_keepalive(Channel& ch) {
    TxMessage* m = begin_message(s_, ch);
    if (m == nullptr) return false;
    m->kind = MessageKind::kFake;
    m->tpmsn = ch.next_tpmsn - 1;  // the newest one sent; before the first: 0xFFFFFF
    ch.mid_message = true;
    s_.count(Counter::kTpTxKeepalive);
    return true;
  }

  // Of a message begun just now: the window is open and a request is alive, but a READ job may have ended while its
  // answer waited.
  Sent send_first(uint32_t channel) {
    TxMessage& m = s_.channels[channel].in_flight.back(s_.messages);
    const bool fake = m.kind == MessageKind::kFake || (m.kind == MessageKind::kReadResponse && !source_alive(m));
    return send_new(channel, m, fake);
  }

  Sent continue_message(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    TxMessage& m = ch.in_flight.back(s_.messages);
    const bool fake = !source_alive(m);
    if (!fake && !window_open(ch)) return Sent::kNothing;
    return send_new(channel, m, fake);
  }

  Sent send_new(uint32_t channel, TxMessage& m, bool fake) {
    return fake ? send_fake(channel, m, s_.channels[channel].next_psn, false)
                : send_packet(channel, m, m.packets, false);
  }

  Sent send_again(uint32_t channel, Psn psn) {
    Channel& ch = s_.channels[channel];
    TxMessage* m = message_at(s_, ch, psn);
    UB_ASSERT(m != nullptr);  // only what is in flight goes again
    uint32_t index = psn.distance(m->first_psn);
    bool fake = !source_alive(*m);
    return fake ? send_fake(channel, *m, psn, true) : send_packet(channel, *m, index, true);
  }

  // A fake message has no source.
  bool has_source(const TxMessage& m) {
    switch (m.kind) {
      case MessageKind::kRequest:
        return ta::request_of(s_, m) != nullptr;
      case MessageKind::kReadResponse:
        return ta::job_of(s_, m) != nullptr;
      default:
        return m.kind == MessageKind::kAnswer;
    }
  }
  bool source_alive(TxMessage& m) {
    if (!m.vanished) m.vanished = !has_source(m);
    return !m.vanished;
  }

  // ---- building ----------------------------------------------------------------------------------------------

  Sent send_fake(uint32_t channel, TxMessage& m, Psn psn, bool again) {
    Channel& ch = s_.channels[channel];
    size_t bytes = ch.headers.size + wire::RtpHeader::kSize + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, bytes);
    if (frame == nullptr) return Sent::kNoRoom;
    wire::RtpHeader rtp;
    rtp.last = rtp.ack_req = rtp.fake = true;
    rtp.psn = psn;
    rtp.tpmsn = m.tpmsn;
    write_rtp(ch, rtp, frame, wire::RtpHeader::kSize);
    s_.count(Counter::kTpTxFake);
    send_frame(channel, frame, bytes, psn, again, true);
    return Sent::kYes;
  }

  Sent send_packet(uint32_t channel, TxMessage& m, uint32_t index, bool again) {
    Channel& ch = s_.channels[channel];
    wire::TaPacket ta;
    Payload payload;
    bool last = describe(ch, m, index, &ta, &payload);
    uint8_t padding = wire::padding_for(payload.bytes);
    wire::RtpHeader rtp;
    rtp.last = last;
    rtp.padding = padding;
    rtp.psn = again ? m.first_psn + index : ch.next_psn;
    rtp.tpmsn = m.tpmsn;
    rtp.ack_req = asks_for_ack(ch, again);

    size_t most = ch.headers.size + wire::RtpHeader::kSize + wire::kMaxTransactionHeaderSize + payload.bytes + padding +
                  wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(ch.link, most);
    if (frame == nullptr) return Sent::kNoRoom;
    std::byte* at = frame + ch.headers.size + wire::RtpHeader::kSize;
    at += wire::write_transaction_headers(ta, at);
    std::byte* end = at + payload.bytes;
    std::memset(end, 0, padding);
    end += padding;
    write_rtp(ch, rtp, frame, static_cast<size_t>(end - frame) - ch.headers.size);

    CopyResult copied = gather(channel, payload, at);
    if (ch.gathers_pending != 0) ch.gather_since = s_.now;
    size_t bytes = static_cast<size_t>(end - frame) + wire::kIcrcSize;
    if (copied == CopyResult::kFailed) {
      host_.tx_abort(ch.link, frame);
      payload_vanished(m);
      return Sent::kYes;  // the next turn sends the fake packet
    }
    if (copied == CopyResult::kPending) {
      hold_frame(s_, host_, s_.held_of_channel(channel), ch.link, frame, bytes);
      UB_DCHECK(!ch.gather_held);
      ch.gather_held = true;
      ch.gather_bytes = static_cast<uint32_t>(bytes);
      ch.gather_psn = rtp.psn;
      ch.gather_retransmit = again;
      return Sent::kPending;
    }
    const bool may_wait = m.kind == MessageKind::kAnswer && payload.bytes == 0 && !again;
    send_frame(channel, frame, bytes, rtp.psn, again, last);
    if (may_wait) host_.tx_may_wait(ch.link);
    return Sent::kYes;
  }

  // Memory that answers later has answered: the packet leaves, unless what it was part of is gone by now.
  Sent finish_gather(uint32_t channel) {
    Channel& ch = s_.channels[channel];
    TxMessage* m = nullptr;
    if (!ch.gather_retransmit) {
      if (ch.mid_message) m = &ch.in_flight.back(s_.messages);
    } else if (ch.recovery != 0 &&
               test_bit(s_.recovery[ch.recovery].resend, ch.gather_psn.value() & (kMaxWindow - 1))) {
      m = message_at(s_, ch, ch.gather_psn);
    }
    bool alive = m != nullptr && source_alive(*m);
    if (alive && !ch.gather_failed) {
      std::byte* frame = resume_frame(s_, host_, s_.held_of_channel(channel), ch.link, ch.gather_bytes);
      if (frame == nullptr) return Sent::kNoRoom;
      wire::RtpHeader rtp;
      bool last =
          wire::RtpHeader::read(frame + ch.headers.size, wire::RtpHeader::kSize, rtp) == wire::Drop::kNone && rtp.last;
      send_frame(channel, frame, ch.gather_bytes, ch.gather_psn, ch.gather_retransmit, last);
    } else if (alive) {
      payload_vanished(*m);
    }
    ch.gather_held = ch.gather_failed = false;
    return Sent::kYes;
  }

  // Local memory of a request is not there (any more).
  void payload_vanished(TxMessage& m) {
    if (m.kind == MessageKind::kRequest) {
      uint32_t queue = m.source;
      uint32_t number = m.work_request;
      ta::give_up(s_, queue, number, CrStatus::kLocAccess);
      ta::retire_requests(s_, queue);
      ta::schedule_queue(s_, queue);
    } else {
      ta::abort_job(s_, m.source);
    }
  }

  void write_rtp(Channel& ch, wire::RtpHeader& rtp, std::byte* frame, size_t tp_bytes) {
    rtp.src_tpn = ch.tpn;
    rtp.dst_tpn = ch.peer_tpn;
    size_t at = ch.headers.write(frame, tp_bytes + wire::kIcrcSize, wire::kEcnNotCapable);
    rtp.write(frame + at);
  }

  // Seals and hands over; the channel's books say that the packet left.
  void send_frame(uint32_t channel, std::byte* frame, size_t bytes, Psn psn, bool again, bool last) {
    Channel& ch = s_.channels[channel];
    seal(ch, frame, bytes);
    host_.tx_commit(ch.link, frame, bytes);
    ++ch.tx_packets;
    s_.count(Counter::kTxPackets);
    s_.count(Counter::kTxBytes, bytes);
    if (again) return resent(s_, ch, psn);
    s_.count(Counter::kTpTxData);
    packet_sent(s_, channel);
    if (!last) return;
    TxMessage& m = ch.in_flight.back(s_.messages);
    m.complete = true;
    ch.mid_message = false;
    if (m.tpmsn == ch.next_tpmsn) ++ch.next_tpmsn;
  }

  static void seal(const Channel& ch, std::byte* frame, size_t bytes) {
    std::byte* end = frame + bytes - wire::kIcrcSize;
    if (!ch.icrc) return wire::icrc_store(end, 0);
    const std::byte* l3 = frame + wire::kEthSize;
    wire::icrc_store(end, wire::icrc_compute(l3, static_cast<size_t>(end - l3), ch.headers.v6()));
  }

  // Headers and payload of packet `index` of a message; true: it is the last.
  bool describe(const Channel& ch, const TxMessage& m, uint32_t index, wire::TaPacket* ta, Payload* payload) {
    if (m.kind == MessageKind::kRequest) return describe_request(ch, m, index, ta, payload);
    ta->is_response = true;
    ta->rsp.rc_id = m.source;
    ta->rsp.tassn = m.tassn;
    if (m.kind == MessageKind::kAnswer) {
      ta->rsp.opcode = m.opcode;
      ta->rsp.rspst = m.rspst;
      ta->rsp.rspinfo = m.rspinfo;
      if (m.opcode == wire::TaOpcode::kReadResponse && ch.read_meta) {
        ta->has_taid = ta->has_ofst = true;
        ta->taid = 0;
        ta->ofst.offset_kib = 0;
      }
      payload->atomic_value = true;
      payload->bytes = m.value_bytes;
      answer_value_ = make_uint128(m.value, m.value_high);
      return true;
    }
    const ReadJob& job = s_.jobs[m.source];
    uint32_t packets = ta::packets_of(job.length, ch.mtu);
    uint32_t offset = index * ch.mtu;
    ta->rsp.opcode = wire::TaOpcode::kReadResponse;
    ta->rsp.rc_id = job.rc_id;
    ta->rsp.tassn = job.tassn;
    if (ch.read_meta) {
      ta->has_taid = ta->has_ofst = true;
      ta->taid = job.taid;
      ta->ofst.offset_kib = job.offset_kib + offset / 1024;
    }
    payload->memory = job.memory + offset;
    payload->bytes = job.length - offset < ch.mtu ? job.length - offset : ch.mtu;
    return index + 1 == packets;
  }

  bool describe_request(const Channel& ch, const TxMessage& m, uint32_t index, wire::TaPacket* ta, Payload* payload) {
    const SendQueue& q = s_.queues[m.source];
    const WrState& wr = q.work[m.work_request & q.work_mask];
    const Wqe& wqe = ta::wqe_of(q, wr);
    const Target& target = s_.targets[wqe.target];
    ta::SegmentShape shape = ta::shape_of(wqe.op, wqe.length, ch.mtu, s_.config.segment_bytes, m.segment);
    bool last = index + 1 == shape.packets;
    uint32_t in_segment = index * ch.mtu;
    bool send = ta::is_send(wqe.op);

    wire::Btah& btah = ta->req;
    btah.opcode = ta::wire_opcode(shape.op);
    if (!last && send) btah.opcode = wire::TaOpcode::kSend;
    btah.tassn = m.tassn;
    btah.rc_id = q.rcid;
    btah.odr =
        static_cast<uint8_t>((wqe.place_order & 3) | ((wqe.flags & kWrCompOrder) != 0 ? wire::kOdrCompletion : 0));
    btah.fce = (wqe.flags & kWrSolicited) != 0;
    btah.retry = m.retry;
    bool memory_token = (wqe.flags & kWrToken) != 0;
    ta->tv = send ? target.token.required : memory_token;
    ta->token_value = send ? target.token.value : wqe.token_value;
    if (send || shape.op == WrOp::kWriteImm) {
      payload->gone = target.owner != q.owner;
      ta->has_mt = true;
      ta->mt = {wqe.hint, target.kind == ObjectKind::kGroup ? wire::kTcTypeGroup : wire::kTcTypeQueue, target.id};
    }
    if (send) {
      ta->has_ofst = true;
      ta->ofst.offset_kib = in_segment / 1024;
    } else {
      ta->has_ma = true;
      bool read = shape.op == WrOp::kRead;
      ta->ma = {wqe.remote_address + shape.offset + (read ? 0 : in_segment), wqe.token_id, shape.bytes};
      if (read && ch.read_meta) {
        ta->has_taid = ta->has_ofst = true;
        ta->taid = 0;
        ta->ofst.offset_kib = static_cast<uint32_t>(shape.offset / 1024);
      }
    }
    if (last && (wqe.op == WrOp::kSendImm || wqe.op == WrOp::kSendInvalidate || shape.op == WrOp::kWriteImm)) {
      ta->has_imm = true;
      bool write = shape.op == WrOp::kWriteImm;
      uint64_t immediate =
          wqe.op == WrOp::kSendInvalidate ? uint64_t{wqe.token_id} << 32 | wqe.token_value : wqe.immediate;
      ta->imm = {immediate, write ? target.token.value : 0, write ? wqe.length : 0};
    }
    if (shape.op == WrOp::kWriteNotify) {
      const WqeExtra& extra = extra_of(wqe);
      ta->has_ntf = true;
      ta->ntf = {extra.notify_address, extra.notify_token_id, extra.notify_token_value, wqe.immediate};
    }
    if (shape.op == WrOp::kRead) return true;
    payload->wqe = &wqe;
    payload->owner = q.owner;
    payload->atomic_operands = ta::is_atomic(wqe.op);
    payload->offset = shape.offset + in_segment;
    uint32_t left = shape.bytes - in_segment;
    payload->bytes = payload->atomic_operands ? 2 * wqe.length : (left < ch.mtu ? left : ch.mtu);
    return last;
  }

  CopyResult gather(uint32_t channel, const Payload& p, std::byte* dst) {
    if (p.gone) return CopyResult::kFailed;
    if (p.bytes == 0) return CopyResult::kDone;
    if (p.atomic_value) {
      store_operand_be(dst, answer_value_, p.bytes);
      return CopyResult::kDone;
    }
    if (p.atomic_operands) {
      // Operand 1 is the swap value or operand, operand 2 what is compared; both always travel, little-endian.
      const uint128 operand = operand_of(*p.wqe), compare = compare_of(*p.wqe);
      const uint32_t each = p.bytes / 2;
      std::memcpy(dst, &operand, each);
      std::memcpy(dst + each, &compare, each);
      return CopyResult::kDone;
    }
    Channel& ch = s_.channels[channel];
    const ta::Copies copies{gather_tag(ch.tpn), ch.gathers_pending};
    if (p.memory != nullptr) return ta::gather_piece(host_, copies, dst, p.memory, p.bytes);
    return ta::gather_request(s_, host_, copies, *p.wqe, p.owner, p.offset, p.bytes, dst);
  }

  static void store_operand_be(std::byte* dst, uint128 value, uint32_t bytes) {
    switch (bytes) {
      case 16:
        return store_be128(dst, value);
      case 8:
        return store_be64(dst, low_half(value));
      default:
        return store_be32(dst, static_cast<uint32_t>(value));
    }
  }

  // ---- acknowledgements and records --------------------------------------------------------------------------

  // Each channel on the list is looked at once; what stays back goes to its end.
  size_t send_acks(Acks acks) {
    size_t sent = 0;
    uint32_t last = s_.ack_tail;
    Instant due = Instant::never();
    while (s_.ack_head != 0) {
      uint32_t channel = s_.ack_head;
      Channel& ch = s_.channels[channel];
      bool waits = acks == Acks::kMayWait && ch.is_up() && ack_may_wait(ch, s_.now);
      if (ch.is_up() && !waits) {
        if (!send_ack(ch)) {  // for want of room
          due = s_.now + kAckDelay;
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
    write_rtp(ch, rtp, frame, tp_bytes);
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

  size_t send_records(size_t budget) {
    size_t sent = 0;
    while (s_.outbox_head != s_.outbox_tail && sent < budget) {
      const OutRecord& out = s_.outbox[s_.outbox_head % kOutboxRing];
      if (out.link != 0 && s_.links[out.link].up && !send_record(out)) break;
      ++s_.outbox_head;
      ++sent;
    }
    return sent;
  }

  bool send_record(const OutRecord& out) {
    wire::NetTemplate headers;
    headers.init({}, {}, out.local, out.remote, 0);
    wire::TaPacket ta;
    ta.has_mt = ta.has_ofst = true;
    ta.mt = {0, wire::kTcTypeQueue, 0};
    ta.ofst.offset_kib = 0;
    // As long as the largest packet that the MTU allows: UDETAH, IMMETAH and token on top of a full payload.
    constexpr size_t kLargestRequest = wire::Btah::kSize + 4 + 16 + 24 + 4;
    size_t headers_bytes = wire::request_header_size(wire::TaOpcode::kSend, {});
    const size_t record_bytes = wire::control_record_size(out.record);
    size_t payload = record_bytes;
    if (out.pad_to_mtu != 0) payload = out.pad_to_mtu + kLargestRequest - headers_bytes;
    size_t tp_bytes = wire::UtpHeader::kSize + headers_bytes + payload;
    size_t bytes = headers.size + tp_bytes + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(out.link, bytes);
    if (frame == nullptr) return false;
    std::byte* at = frame + headers.write(frame, tp_bytes + wire::kIcrcSize, wire::kEcnNotCapable);
    wire::UtpHeader{}.write(at);
    at += wire::UtpHeader::kSize;
    at += wire::write_transaction_headers(ta, at);
    wire::write_control_record(out.record, at);
    std::memset(at + record_bytes, 0, payload - record_bytes);
    at += payload;
    const std::byte* l3 = frame + wire::kEthSize;
    wire::icrc_store(at, wire::icrc_compute(l3, static_cast<size_t>(at - l3), headers.v6()));
    host_.tx_commit(out.link, frame, bytes);
    s_.count(Counter::kTxPackets);
    s_.count(Counter::kTxBytes, bytes);
    s_.count(Counter::kTpTxRecord);
    return true;
  }

  CoreState& s_;
  Host& host_;
  ta::DatagramSender<Host>& datagrams_;
  uint128 answer_value_ = 0;
};

}  // namespace ub::tp
