// SPDX-License-Identifier: Apache-2.0
// transmitter.h - builds the packets of the RoCE engine straight into the host's frames: of a queue pair first the
// answers to READs and atomics, then the acknowledgement or refusal that it owes, then requests. Queue pairs take turns.
//
// No packet is stored: payload is gathered from the memory of its request, or of the READ that it answers, also when it
// goes again. Memory may answer later: a queue pair sends nothing else until it has.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/held_frames.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/congestion.h"
#include "lib/transport/roce/copy_tag.h"
#include "lib/transport/roce/packet_content.h"
#include "lib/transport/roce/posted.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/roce/wire/icrc.h"
#include "lib/transport/sealed_frame.h"
#include "lib/transport/ta/payload.h"

namespace ub::roce {

template <class Host>
class Transmitter {
 public:
  Transmitter(CoreState& s, State& r, Host& host) : s_(s), r_(r), host_(host) {}

  /// At most `budget` frames; returns how many left.
  size_t send(size_t budget) {
    size_t sent = send_mads(budget);
    const uint32_t last_one = r_.active.back();  // each has one turn
    if (last_one == 0) return sent;
    while (sent < budget) {
      const uint32_t index = r_.active.pop_front<&Qp::on_active_list>(r_.qps);
      if (r_.qps[index].in_use) sent += take_turn(index, budget - sent);
      if (index == last_one) break;
    }
    return sent;
  }

  void on_gather_done(uint32_t index, uint32_t sequence, bool ok) {
    Qp& qp = r_.qps[index];
    if (qp.gathering == Gathering::kNothing || qp.gather_sequence != sequence) return;  // given up meanwhile
    qp.gather_failed |= !ok;
    if (--qp.gather_pending != 0) return;
    note_of<Host>(s_, Stage::kQpPacketReady, qp.qpn);
    activate(r_, index);
  }

 private:
  static constexpr size_t kPacketsPerTurn = 16;
  static constexpr uint32_t kPacketsPerAck = 16;

  enum class Sent : uint8_t { kYes, kNothing, kNoRoom, kPending };

  /// A frame with its headers, and where its payload goes.
  struct Frame {
    std::byte* begin;
    std::byte* payload;
    uint32_t bytes;
  };

  // ---- whose turn it is ------------------------------------------------------------------------------------------

  size_t take_turn(uint32_t index, size_t budget) {
    size_t sent = 0;
    Sent last = Sent::kYes;
    while (last == Sent::kYes && sent < budget && sent < kPacketsPerTurn) {
      last = send_next(index);
      sent += last == Sent::kYes;
    }
    if (last == Sent::kYes || last == Sent::kNoRoom) activate(r_, index);
    return sent;
  }

  Sent send_next(uint32_t index) {
    Qp& qp = r_.qps[index];
    if (qp.gathering != Gathering::kNothing) return qp.gather_pending != 0 ? Sent::kPending : send_held(index);
    if (flushes_sends(qp.state)) retire_requests(s_, r_, index);
    if (qp.owes_cnp) return send_cnp(qp);
    const bool may_send_data = cc::may_leave(qp.flow, s_.now) || qp.state == QpState::kError;
    if (qp.serving) {
      const Sent sent = may_send_data ? send_response(index) : Sent::kPending;
      if (sent != Sent::kNothing) return sent;
    }
    // Nothing is acknowledged that is not in memory yet.
    if (qp.owed != Owed::kNothing && qp.copies_pending == 0) return send_reply(qp);
    return sends(qp.state) && may_send_data ? send_request(index) : Sent::kNothing;
  }

  Sent send_cnp(Qp& qp) {
    Packet packet = to_peer(qp, Opcode::kCnp, Psn());
    packet.bth.becn = true;
    Frame frame;
    if (!begin_frame(qp.path.link, qp.headers, packet, 0, wire::kEcnNotCapable, &frame)) return Sent::kNoRoom;
    commit(qp, frame.begin, frame.bytes);
    qp.owes_cnp = false;
    note_of<Host>(s_, Stage::kQpCnpSent, qp.qpn);
    s_.count(Counter::kRoceTxCnp);
    return Sent::kYes;
  }

  // ---- frames ----------------------------------------------------------------------------------------------------

  /// False: no room.
  bool begin_frame(uint32_t link, const wire::NetTemplate& headers, Packet& packet, uint32_t payload_bytes, uint8_t ecn,
                   Frame* out) {
    packet.bth.padding = static_cast<uint8_t>(-payload_bytes & 3);
    const size_t udp_bytes = header_size(packet.bth.opcode) + payload_bytes + packet.bth.padding + wire::kIcrcSize;
    out->bytes = static_cast<uint32_t>(headers.size + udp_bytes);
    out->begin = host_.tx_begin(link, out->bytes);
    if (out->begin == nullptr) return false;
    std::byte* at = out->begin + headers.write(out->begin, udp_bytes, ecn);
    out->payload = at + write_headers(packet, at);
    std::memset(out->payload + payload_bytes, 0, packet.bth.padding);
    return true;
  }

  void commit(uint32_t link, bool v6, std::byte* frame, uint32_t bytes) {
    seal_and_commit(s_, host_, link, frame, bytes,
                    [=](const std::byte* l3, size_t covered) { return icrc_compute(l3, covered, v6); });
  }

  void commit(Qp& qp, std::byte* frame, uint32_t bytes) {
    commit(qp.path.link, qp.headers.v6(), frame, bytes);
    ++qp.tx_packets;
  }

  /// The frame waits for its payload, in nobody's way.
  void hold(uint32_t index, Gathering what, const Frame& frame, Psn psn) {
    Qp& qp = r_.qps[index];
    hold_frame(s_, host_, held_of_qp(r_, index), qp.path.link, frame.begin, frame.bytes);
    qp.gathering = what;
    qp.gather_bytes = frame.bytes;
    note_of<Host>(s_, Stage::kQpPacketHeld, qp.qpn, psn.value());
    qp.gather_psn = psn;
    qp.gather_failed = false;
  }

  /// Its payload has come: it leaves, or is not the next one any more.
  Sent send_held(uint32_t index) {
    Qp& qp = r_.qps[index];
    const bool request = qp.gathering == Gathering::kRequest;
    NextPacket next;
    if (!(request ? wants_request(qp, &next) : wants_response(qp))) {
      release_held(qp);
      return Sent::kYes;
    }
    if (qp.gather_failed) {
      release_held(qp);
      return request ? cannot_go_on(index, next.request) : response_failed(index);
    }
    std::byte* frame = resume_frame(s_, host_, held_of_qp(r_, index), qp.path.link, qp.gather_bytes);
    if (frame == nullptr) return Sent::kNoRoom;
    release_held(qp);
    if (request) {
      send_built(index, next, frame, qp.gather_bytes);
    } else {
      commit(qp, frame, qp.gather_bytes);
      part_sent(index, *slot_being_served(qp), qp.gather_bytes);
    }
    return Sent::kYes;
  }

  static void release_held(Qp& qp) {
    qp.gathering = Gathering::kNothing;
    ++qp.gather_sequence;
  }

  ta::Copies gather_copies(uint32_t index) {
    Qp& qp = r_.qps[index];
    qp.gather_pending = 0;
    return {copy_tag(r_.copy_prefix, {CopyFor::kGather, index, qp.gather_sequence}), qp.gather_pending};
  }

  /// Pieces that are still pending finish into nowhere.
  void abort_frame(Qp& qp, std::byte* frame) {
    host_.tx_abort(qp.path.link, frame);
    ++qp.gather_sequence;
  }

  // ---- acknowledgements ------------------------------------------------------------------------------------------

  /// Everything so far, with as many credits as there are now.
  Reply ack_of(Qp& qp) {
    qp.resp.credits = kNoCredits;
    if (!qp.srq) {
      const Jfr& jfr = s_.jfrs[qp.jfr];
      const uint32_t slots = jfr.indices->produced.load(std::memory_order_relaxed) - jfr.consumed;
      qp.resp.credits = credit_code(slots / jfr.receive_slots);
    }
    return acknowledge(qp.resp);
  }

  Sent send_reply(Qp& qp) {
    const Reply reply = qp.owed == Owed::kAck ? ack_of(qp) : qp.reply;
    Packet packet = to_peer(qp, Opcode::kRcAck, reply.psn);
    packet.aeth = reply.aeth;
    Frame frame;
    if (!begin_frame(qp.path.link, qp.headers, packet, 0, wire::kEcnNotCapable, &frame)) return Sent::kNoRoom;
    commit(qp, frame.begin, frame.bytes);
    qp.owed = Owed::kNothing;
    const Syndrome s = reply.aeth.syndrome;
    note_of<Host>(s_, Stage::kQpReplySent, qp.qpn, reply.psn.value(), s.code);
    s_.count(s.kind() == AckKind::kAck               ? Counter::kRoceTxAck
             : s.kind() == AckKind::kRnr             ? Counter::kRoceTxRnr
             : s.nak_code() == NakCode::kPsnSequence ? Counter::kRoceTxNakSequence
                                                     : Counter::kRoceTxNakError);
    return Sent::kYes;
  }

  // ---- answers to READs and atomics ------------------------------------------------------------------------------

  Sent send_response(uint32_t index) {
    Qp& qp = r_.qps[index];
    const std::span<ReadSlot> slots{r_.read_slots.at(qp.read_block), qp.reads.slots};
    ReadSlot* slot = next_to_serve(slots, qp.reads);
    if (slot == nullptr) {
      qp.serving = false;
      return Sent::kNothing;
    }
    const auto place = static_cast<uint8_t>(slot - slots.data());
    if (place != qp.serving_slot) qp.served = 0;
    qp.serving_slot = place;
    return slot->atomic ? send_original(qp, *slot) : send_part(index, *slot);
  }

  Sent send_original(Qp& qp, ReadSlot& slot) {
    Packet packet = to_peer(qp, Opcode::kRcAtomicAck, slot.first_psn);
    packet.aeth = ack_of(qp).aeth;
    packet.original = slot.original;
    Frame frame;
    if (!begin_frame(qp.path.link, qp.headers, packet, 0, wire::kEcnNotCapable, &frame)) return Sent::kNoRoom;
    commit(qp, frame.begin, frame.bytes);
    s_.count(Counter::kRoceTxResponse);
    note_of<Host>(s_, Stage::kQpResponseSent, qp.qpn, slot.first_psn.value());
    slot.serving = false;
    return Sent::kYes;
  }

  Sent send_part(uint32_t index, ReadSlot& slot) {
    Qp& qp = r_.qps[index];
    const uint32_t mtu = qp.resp.mtu, done = qp.served * mtu;
    const uint32_t left = slot.part.asked - done;
    const uint32_t bytes = left < mtu ? left : mtu;
    const Psn psn = slot.first_psn + slot.part.skipped + qp.served;
    Packet packet = to_peer(qp, response_opcode(qp.served == 0, left <= mtu), psn);
    packet.aeth = ack_of(qp).aeth;
    const uint64_t address = slot.address + uint64_t{slot.part.skipped} * mtu + done;
    const std::byte* memory = nullptr;
    if (bytes != 0) {
      memory = remote_memory_of(s_, qp.owner,
                                {token_id_of(slot.rkey), true, key_of(slot.rkey), address, bytes, kAccessRead});
      if (memory == nullptr) return answer_failed(index, slot, psn, NakCode::kRemoteAccess);
    }
    Frame frame;
    if (!begin_frame(qp.path.link, qp.headers, packet, bytes, qp.flow.ecn, &frame)) return Sent::kNoRoom;
    const ta::Copies copies = gather_copies(index);
    const CopyResult copied =
        bytes == 0 ? CopyResult::kDone : ta::gather_piece(host_, copies, frame.payload, memory, bytes);
    if (copied == CopyResult::kFailed) {
      abort_frame(qp, frame.begin);
      return answer_failed(index, slot, psn, NakCode::kRemoteOperation);
    }
    if (copied == CopyResult::kPending) {
      hold(index, Gathering::kResponse, frame, psn);
      return Sent::kPending;
    }
    commit(qp, frame.begin, frame.bytes);
    part_sent(index, slot, frame.bytes);
    return Sent::kYes;
  }

  /// `bytes`: of the frame.
  void part_sent(uint32_t index, ReadSlot& slot, uint32_t bytes) {
    Qp& qp = r_.qps[index];
    if (has_flow(qp)) tell_answered(s_, r_, index, bytes);
    s_.count(Counter::kRoceTxResponse);
    note_of<Host>(s_, Stage::kQpResponseSent, qp.qpn, (slot.first_psn + slot.part.skipped + qp.served).value());
    ++qp.served;
    if (uint64_t{qp.served} * qp.resp.mtu < slot.part.asked) return;
    slot.serving = false;
    qp.served = 0;
  }

  /// The memory is gone since the READ was accepted.
  Sent answer_failed(uint32_t index, ReadSlot& slot, Psn psn, NakCode why) {
    slot.serving = false;
    r_.qps[index].serving = false;
    if (r_.qps[index].state != QpState::kError) refuse_and_fail(s_, r_, index, why, &psn);
    return Sent::kYes;
  }

  ReadSlot* slot_being_served(Qp& qp) {
    const std::span<ReadSlot> slots{r_.read_slots.at(qp.read_block), qp.reads.slots};
    ReadSlot* slot = qp.serving ? next_to_serve(slots, qp.reads) : nullptr;
    return slot != nullptr && slot - slots.data() == qp.serving_slot ? slot : nullptr;
  }

  /// It may have been asked for from another place meanwhile.
  bool wants_response(Qp& qp) {
    const ReadSlot* slot = slot_being_served(qp);
    return slot != nullptr && !slot->atomic && slot->first_psn + slot->part.skipped + qp.served == qp.gather_psn;
  }

  Sent response_failed(uint32_t index) {
    Qp& qp = r_.qps[index];
    return answer_failed(index, *slot_being_served(qp), qp.gather_psn, NakCode::kRemoteOperation);
  }

  // ---- requests --------------------------------------------------------------------------------------------------

  Sent send_request(uint32_t index) {
    Qp& qp = r_.qps[index];
    NextPacket next;
    if (!next_packet(qp.req, ring_of(qp), s_.now, &next)) {
      if (!start_next(s_, r_, index) || !next_packet(qp.req, ring_of(qp), s_.now, &next)) return Sent::kNothing;
    }
    const SentRequest& request = qp.requests[next.request & qp.work_mask];
    const Wqe& wqe = wqe_of(qp, next.request);
    if (qp.type == QpType::kUd && !aim(qp, wqe)) return cannot_go_on(index, next.request);
    const uint32_t offset = next.skipped * qp.req.mtu;
    const uint32_t left = has_response(request.kind) ? 0 : request.length - offset;
    const uint32_t bytes = left < qp.req.mtu ? left : qp.req.mtu;
    Packet packet = describe_request(qp, wqe, request, next, offset);
    packet.bth.ack_req = asks(qp, next);
    Frame frame;
    if (!begin_frame(qp.path.link, qp.headers, packet, bytes, qp.flow.ecn, &frame)) return Sent::kNoRoom;
    note_step<Host>(s_, Stage::kQpPacketBuilt, qp.qpn, packet.bth.psn.value());
    const ta::Copies copies = gather_copies(index);
    const CopyResult copied = bytes == 0
                                  ? CopyResult::kDone
                                  : ta::gather_request(s_, host_, copies, wqe, qp.owner, offset, bytes, frame.payload);
    if (copied == CopyResult::kFailed) {
      abort_frame(qp, frame.begin);
      return cannot_go_on(index, next.request);
    }
    if (copied == CopyResult::kPending) {
      hold(index, Gathering::kRequest, frame, packet.bth.psn);
      return Sent::kPending;
    }
    send_built(index, next, frame.begin, frame.bytes);
    return Sent::kYes;
  }

  /// A datagram goes where its address handle says. False: that is gone.
  bool aim(Qp& qp, const Wqe& wqe) {
    const AddressHandle& ah = r_.address_handles[wqe.target];
    if (!ah.in_use || ah.owner != qp.owner || !s_.links[ah.attributes.link].up) return false;
    qp.path = ah.attributes;
    qp.headers = ah.headers;
    return true;
  }

  static const Wqe& wqe_of(const Qp& qp, uint32_t request) {
    return qp.ring.slots[qp.started[request & qp.work_mask].slot & qp.ring.slot_mask];
  }

  /// Is an acknowledgement asked for: because nothing more can go now, or it is time?
  bool asks(Qp& qp, const NextPacket& next) {
    if (qp.type != QpType::kRc) return false;
    if (next.must_ask || qp.ask_always || (next.last && s_.config.roce.ack_every_message)) return true;
    if (qp.req.cursor.value() % kPacketsPerAck == kPacketsPerAck - 1) return true;
    RequesterState after = qp.req;
    sent(after, ring_of(qp), s_.now, next);
    return !more_to_send(s_, r_, qp, after);
  }

  void send_built(uint32_t index, const NextPacket& next, std::byte* frame, uint32_t bytes) {
    Qp& qp = r_.qps[index];
    const bool again = qp.req.cursor != qp.req.sent_end;
    s_.count(qp.type == QpType::kUd ? Counter::kRoceTxDatagram
             : again                ? Counter::kRoceTxRetransmit
                                    : Counter::kRoceTxRequest);
    commit(qp, frame, bytes);
    note_of<Host>(s_, again ? Stage::kQpPacketSentAgain : Stage::kQpPacketSent, qp.qpn, qp.req.cursor.value(),
                  next.request);
    if (has_flow(qp)) tell_sent(s_, r_, index, qp.req.cursor, bytes, again);
    sent(qp.req, ring_of(qp), s_.now, next);
    if (qp.type == QpType::kRc) return arm_timer(s_, r_, index);
    // Nobody acknowledges it: its request is complete when the last packet has left.
    (void)on_ack(qp.req, ring_of(qp), s_.now, qp.req.sent_end - 1, Aeth{});
    retire_requests(s_, r_, index);
  }

  bool wants_request(Qp& qp, NextPacket* next) {
    return sends(qp.state) && next_packet(qp.req, ring_of(qp), s_.now, next) && qp.req.cursor == qp.gather_psn;
  }

  /// Memory of a request is gone. It fails when all before it are complete; so that these are acknowledged, they go
  /// again and ask for it.
  Sent cannot_go_on(uint32_t index, uint32_t request) {
    Qp& qp = r_.qps[index];
    if (request == qp.req.head) {
      fail_requests(s_, r_, index, request, CrStatus::kLocAccess);
      return Sent::kNothing;
    }
    if (!qp.ask_always) {
      qp.ask_always = true;
      qp.req.cursor = qp.req.oldest;
      qp.req.cursor_request = qp.req.head;
      return Sent::kYes;
    }
    return Sent::kNothing;
  }

  // ---- management datagrams --------------------------------------------------------------------------------------

  size_t send_mads(size_t budget) {
    size_t n = 0;
    for (; n < budget && r_.mad_head != r_.mad_tail; ++n, ++r_.mad_head) {
      if (!send_mad(r_.mads[r_.mad_head % kMadRing])) break;
    }
    return n;
  }

  bool send_mad(const OutgoingMad& out) {
    if (!s_.links[out.path.link].up) return true;  // nobody is there any more
    wire::NetTemplate headers;
    const uint16_t fixed = s_.links[out.path.link].config.roce_port;
    headers.init({}, {}, {out.path.sgid, fixed != 0 ? fixed : kMadSourcePort}, {out.path.dgid, kUdpPort}, 0);
    Packet packet{};
    packet.bth.opcode = Opcode::kUdSendOnly;
    packet.bth.dest_qp = kGsiQp;
    packet.bth.psn = Psn(r_.gsi_psn);
    packet.deth = {kGsiQkey, kGsiQp};
    Frame frame;
    if (!begin_frame(out.path.link, headers, packet, kMadSize, wire::kEcnNotCapable, &frame)) return false;
    std::memcpy(frame.payload, out.mad.data(), kMadSize);
    commit(out.path.link, headers.v6(), frame.begin, frame.bytes);
    ++r_.gsi_psn;
    s_.count(Counter::kRoceTxDatagram);
    note_of<Host>(s_, Stage::kMadSent, out.path.link);
    return true;
  }

  static constexpr uint16_t kMadSourcePort = 0xC001;

  CoreState& s_;
  State& r_;
  Host& host_;
};

}  // namespace ub::roce
