// SPDX-License-Identifier: Apache-2.0
// transmitter.h - builds the packets of the RoCE engine straight into the host's frames: of a queue pair first the
// answers to READs and atomics, then the acknowledgement or refusal that it owes, then requests. Queue pairs take
// turns.
//
// No packet is stored: payload is gathered from the memory of its request, or of the READ that it answers, also when it
// goes again. Where memory may answer later, packets are built ahead of the one that leaves next, and their frames are
// held (held_packets.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/full_port.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/congestion.h"
#include "lib/transport/roce/frame_builder.h"
#include "lib/transport/roce/held_packets.h"
#include "lib/transport/roce/mad_sender.h"
#include "lib/transport/roce/packet_content.h"
#include "lib/transport/roce/posted.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/ta/payload.h"

namespace ub::roce {

template <class Host>
class Transmitter {
 public:
  Transmitter(CoreState& s, State& r, Host& host) : s_(s), r_(r), host_(host), frames_(s, host) {}

  /// At most `budget` frames; returns how many left.
  size_t send(size_t budget) {
    size_t sent = MadSender<Host>(s_, r_, host_).send(budget);
    IndexList without_room;
    const uint32_t last_one = r_.active.back();  // each has one turn
    if (last_one == 0) return sent;
    while (sent < budget) {
      const uint32_t index = r_.active.pop_front<&Qp::on_active_list>(r_.qps);
      if (r_.qps[index].in_use) sent += take_turn(index, budget - sent, &without_room);
      if (index == last_one) break;
    }
    if (!without_room.empty()) put_first<&Qp::on_active_list>(r_.qps, without_room, r_.active);
    return sent;
  }

 private:
  static constexpr size_t kPacketsPerTurn = 16;
  static constexpr uint32_t kPacketsPerAck = 16;

  enum class Sent : uint8_t {
    kYes,
    kNothing,
    kNoRoom,  // the port has no room
    kHeld,    // the packet was built and waits for memory
  };

  // ---- whose turn it is ------------------------------------------------------------------------------------------

  [[gnu::hot]] size_t take_turn(uint32_t index, size_t budget, IndexList* without_room) {
    size_t sent = 0;
    Sent last = Sent::kYes;
    while ((last == Sent::kYes || last == Sent::kHeld) && sent < budget && sent < kPacketsPerTurn) {
      last = send_next(index);
      sent += last == Sent::kYes;
    }
    if (last == Sent::kNothing || r_.qps[index].on_active_list) return sent;
    IndexList& line = last == Sent::kNoRoom && sent == 0 ? *without_room : r_.active;
    line.push_back<&Qp::on_active_list>(r_.qps, index);
    return sent;
  }

  Sent send_next(uint32_t index) {
    Qp& qp = r_.qps[index];
    if (flushes_sends(qp.state)) retire_requests(s_, r_, index);
    if (qp.owes_cnp) return send_cnp(qp);
    const bool may_send_data = cc::may_leave(qp.flow, s_.now) || qp.state == QpState::kError;
    if (may_send_data && held_count(qp) != 0) [[unlikely]] {
      const Sent sent = send_held(index);
      if (sent != Sent::kNothing) return sent;
    }
    if (qp.serving) {
      if (!may_send_data) return Sent::kNothing;
      const Sent sent = send_response(index);
      if (sent != Sent::kNothing) return sent;
    }
    // Nothing is acknowledged that is not in memory yet, and nothing before the answers that come first.
    if (qp.owed != Owed::kNothing && qp.copies_pending == 0 && !qp.serving) return send_reply(qp);
    return sends(qp.state) && may_send_data ? send_request(index) : Sent::kNothing;
  }

  Sent send_cnp(Qp& qp) {
    Packet packet = to_peer(qp, Opcode::kCnp, Psn());
    packet.bth.becn = true;
    Frame frame;
    if (!begin_frame(qp, packet, 0, wire::kEcnNotCapable, &frame)) return Sent::kNoRoom;
    commit(qp, frame.begin, frame.bytes);
    qp.owes_cnp = false;
    note_of<Host>(s_, Stage::kQpCnpSent, qp.qpn);
    s_.count(Counter::kRoceTxCnp);
    return Sent::kYes;
  }

  // ---- frames ----------------------------------------------------------------------------------------------------

  /// False: no room.
  bool begin_frame(const Qp& qp, Packet& packet, uint32_t payload_bytes, uint8_t ecn, Frame* out) {
    return frames_.begin(qp.path.link, qp.headers, packet, payload_bytes, ecn, out);
  }

  void commit(Qp& qp, std::byte* frame, uint32_t bytes) {
    frames_.commit(qp.path.link, qp.headers.v6(), frame, bytes);
    ++qp.tx_packets;
  }

  // ---- memory that answers later ---------------------------------------------------------------------------------

  /// What is known of a packet when it leaves later than it was built.
  struct Built {
    uint32_t item;  ///< its request, or the slot that it answers
    Psn psn;
    bool first, last, asks;
  };

  bool has_room_to_hold(const Qp& qp) const { return !s_.config.slow_memory || s_.held.has_room(held_count(qp)); }

  /// Gathers the payload of a packet whose memory may answer later. kPending: the queue pair holds the frame, because
  /// memory has not answered, or because it holds packets that were built before.
  template <class Gather>
  [[gnu::noinline]] CopyResult gather_slowly(uint32_t index, HeldLine& line, const Frame& frame, const Built& built,
                                             Gather gather) {
    Qp& qp = r_.qps[index];
    HeldFrame& h = s_.held.take(home_of_qp(r_, index));
    const CopyResult copied = gather(ta::Copies{s_.held.tag_of(h), h.pending});
    if (copied == CopyResult::kFailed || (copied == CopyResult::kDone && line.empty())) {
      s_.held.free(h);
      return copied;
    }
    h.link = qp.path.link;
    h.v6 = qp.headers.v6();
    h.bytes = frame.bytes;
    h.item = built.item;
    h.psn = built.psn;
    h.first = built.first;
    h.last = built.last;
    h.asks = built.asks;
    s_.held.hold(host_, h, frame.begin);
    s_.held.append(line, h);
    note_of<Host>(s_, Stage::kQpPacketHeld, qp.qpn, built.psn.value());
    return CopyResult::kPending;
  }

  /// Gathers the payload of a packet. kPending: the queue pair holds its frame.
  template <class Gather>
  CopyResult gather_payload(uint32_t index, HeldLine& line, const Frame& frame, const Built& built, Gather gather) {
    if (s_.config.slow_memory) [[unlikely]]
      return gather_slowly(index, line, frame, built, gather);
    uint32_t pending = 0;  // stays 0: it is used only where memory answers at once
    return gather(ta::Copies{0, pending});
  }

  /// Held packets leave before others are built. kNothing: those that leave next wait for memory.
  [[gnu::noinline]] Sent send_held(uint32_t index) {
    Qp& qp = r_.qps[index];
    give_up_unwanted(s_, r_, qp);
    const auto is_ready = [&](const HeldLine& line) { return !line.empty() && s_.held.first(line).pending == 0; };
    if (is_ready(qp.held_responses)) return send_held_response(index);
    if (is_ready(qp.held_requests)) return send_held_request(index);
    return Sent::kNothing;
  }

  Sent send_held_response(uint32_t index) {
    Qp& qp = r_.qps[index];
    const HeldFrame h = s_.held.first(qp.held_responses);
    const AnswerPacket packet = next_answer(r_, qp);
    if (h.failed) return answer_failed(index, packet, NakCode::kRemoteOperation);
    if (!commit_held(qp, qp.held_responses)) return Sent::kNoRoom;
    answer_sent(index, packet, h.bytes);
    return Sent::kYes;
  }

  Sent send_held_request(uint32_t index) {
    Qp& qp = r_.qps[index];
    const HeldFrame h = s_.held.first(qp.held_requests);
    if (h.failed) {
      s_.held.give_up_all(qp.held_requests);
      return cannot_go_on(index, h.item);
    }
    NextPacket next;
    (void)next_packet(qp.req, ring_of(qp), s_.now, &next);  // it is this one, or it would have been given up
    if (!commit_held(qp, qp.held_requests)) return Sent::kNoRoom;
    request_sent(index, next, h.bytes);
    return Sent::kYes;
  }

  /// False: no room.
  bool commit_held(Qp& qp, HeldLine& line) {
    const HeldFrame& h = s_.held.first(line);
    std::byte* frame = s_.held.resume(host_, h);
    if (frame == nullptr) return false;
    frames_.commit(h.link, h.v6, frame, h.bytes);
    ++qp.tx_packets;
    s_.held.drop_first(line);
    return true;
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
    if (!begin_frame(qp, packet, 0, wire::kEcnNotCapable, &frame)) return Sent::kNoRoom;
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
    const AnswerPacket next = s_.config.slow_memory ? answer_ahead(s_, r_, qp) : next_answer(r_, qp);
    if (next.slot == nullptr) {
      qp.serving = !qp.held_responses.empty();
      return Sent::kNothing;
    }
    if (!has_room_to_hold(qp)) return Sent::kNothing;
    return next.slot->atomic ? send_original(index, next) : send_part(index, next);
  }

  Sent send_original(uint32_t index, AnswerPacket next) {
    Qp& qp = r_.qps[index];
    Packet packet = to_peer(qp, Opcode::kRcAtomicAck, next.slot->first_psn);
    packet.aeth = ack_of(qp).aeth;
    packet.original = next.slot->original;
    Frame frame;
    if (!begin_frame(qp, packet, 0, wire::kEcnNotCapable, &frame)) return Sent::kNoRoom;
    const CopyResult copied = gather_payload(index, qp.held_responses, frame, built_answer(qp, next),
                                             [](const ta::Copies&) { return CopyResult::kDone; });
    if (copied == CopyResult::kPending) return Sent::kHeld;
    commit(qp, frame.begin, frame.bytes);
    answer_sent(index, next, frame.bytes);
    return Sent::kYes;
  }

  Sent send_part(uint32_t index, AnswerPacket next) {
    Qp& qp = r_.qps[index];
    const ReadSlot& slot = *next.slot;
    const uint32_t mtu = qp.resp.mtu, done = next.before * mtu;
    const uint32_t left = slot.part.asked - done;
    const uint32_t bytes = left < mtu ? left : mtu;
    Packet packet = to_peer(qp, response_opcode(next.before == 0, left <= mtu), psn_of(next));
    packet.aeth = ack_of(qp).aeth;
    const uint64_t address = slot.address + uint64_t{slot.part.skipped} * mtu + done;
    const std::byte* memory = nullptr;
    if (bytes != 0) {
      memory = remote_memory_of(s_, qp.owner,
                                {token_id_of(slot.rkey), true, key_of(slot.rkey), address, bytes, kAccessRead});
      if (memory == nullptr) return cannot_answer(index, next, NakCode::kRemoteAccess);
    }
    Frame frame;
    if (!begin_frame(qp, packet, bytes, qp.flow.ecn, &frame)) return Sent::kNoRoom;
    const CopyResult copied =
        gather_payload(index, qp.held_responses, frame, built_answer(qp, next), [&](const ta::Copies& copies) {
          return bytes == 0 ? CopyResult::kDone : ta::gather_piece(host_, copies, frame.payload, memory, bytes);
        });
    if (copied == CopyResult::kPending) return Sent::kHeld;
    if (copied == CopyResult::kFailed) {
      host_.tx_abort(qp.path.link, frame.begin);
      return cannot_answer(index, next, NakCode::kRemoteOperation);
    }
    commit(qp, frame.begin, frame.bytes);
    answer_sent(index, next, frame.bytes);
    return Sent::kYes;
  }

  Built built_answer(const Qp& qp, AnswerPacket p) {
    return {slot_number(qp, *p.slot), psn_of(p), p.before == 0, is_last(p, qp.resp.mtu), false};
  }

  uint32_t slot_number(const Qp& qp, const ReadSlot& slot) {
    return static_cast<uint32_t>(&slot - r_.read_slots.at(qp.read_block));
  }

  /// A packet of an answer has left, in a frame of so many bytes.
  void answer_sent(uint32_t index, AnswerPacket packet, uint32_t bytes) {
    Qp& qp = r_.qps[index];
    if (has_flow(qp) && !packet.slot->atomic) tell_answered(s_, r_, index, bytes);
    s_.count(Counter::kRoceTxResponse);
    note_of<Host>(s_, Stage::kQpResponseSent, qp.qpn, psn_of(packet).value());
    if (is_last(packet, qp.resp.mtu)) {
      packet.slot->serving = false;
      qp.served = 0;
    } else {
      qp.serving_slot = static_cast<uint8_t>(slot_number(qp, *packet.slot));
      qp.served = packet.before + 1;
    }
  }

  /// The next packet cannot be built: its memory is gone since the READ was accepted. The peer hears of that when the
  /// packets that were built before have left.
  Sent cannot_answer(uint32_t index, AnswerPacket packet, NakCode why) {
    return r_.qps[index].held_responses.empty() ? answer_failed(index, packet, why) : Sent::kNothing;
  }

  /// The packet that would leave next cannot.
  Sent answer_failed(uint32_t index, AnswerPacket packet, NakCode why) {
    Qp& qp = r_.qps[index];
    const Psn psn = psn_of(packet);
    s_.held.give_up_all(qp.held_responses);
    packet.slot->serving = false;
    qp.serving = false;
    if (qp.state != QpState::kError) refuse_and_fail(s_, r_, index, why, &psn);
    return Sent::kYes;
  }

  // ---- requests --------------------------------------------------------------------------------------------------

  Sent send_request(uint32_t index) {
    Qp& qp = r_.qps[index];
    if (s_.config.slow_memory) [[unlikely]]
      return build_ahead(index);
    NextPacket next;
    if (!next_packet(qp.req, ring_of(qp), s_.now, &next)) {
      if (!start_next(s_, r_, index, qp.req) || !next_packet(qp.req, ring_of(qp), s_.now, &next)) return Sent::kNothing;
    }
    return build_request(index, qp.req, next);
  }

  /// Builds the packet behind those that are held.
  [[gnu::noinline]] Sent build_ahead(uint32_t index) {
    Qp& qp = r_.qps[index];
    if (!has_room_to_hold(qp)) return Sent::kNothing;
    RequesterState ahead = requester_ahead(s_, qp);
    NextPacket next;
    if (!next_packet(ahead, ring_of(qp), s_.now, &next)) {
      if (!start_next(s_, r_, index, ahead)) return Sent::kNothing;
      ahead = requester_ahead(s_, qp);
      if (!next_packet(ahead, ring_of(qp), s_.now, &next)) return Sent::kNothing;
    }
    return build_request(index, ahead, next);
  }

  /// `req`: the requester when all packets before this one have left.
  Sent build_request(uint32_t index, const RequesterState& req, const NextPacket& next) {
    Qp& qp = r_.qps[index];
    const SentRequest& request = qp.requests[next.request & qp.work_mask];
    const Wqe& wqe = wqe_of(qp, next.request);
    if (qp.type == QpType::kUd && !aim(qp, wqe)) return cannot_go_on(index, next.request);
    const uint32_t offset = next.skipped * qp.req.mtu;
    const uint32_t left = has_response(request.kind) ? 0 : request.length - offset;
    const uint32_t bytes = left < qp.req.mtu ? left : qp.req.mtu;
    Packet packet = describe_request(qp, wqe, request, next, offset);
    packet.bth.ack_req = asks(qp, req, next);
    Frame frame;
    if (!begin_frame(qp, packet, bytes, qp.flow.ecn, &frame)) return Sent::kNoRoom;
    note_step<Host>(s_, Stage::kQpPacketBuilt, qp.qpn, packet.bth.psn.value());
    const Built built{next.request, packet.bth.psn, next.skipped == 0, next.last, packet.bth.ack_req};
    const CopyResult copied = gather_payload(index, qp.held_requests, frame, built, [&](const ta::Copies& copies) {
      return bytes == 0 ? CopyResult::kDone
                        : ta::gather_request(s_, host_, copies, wqe, qp.owner, offset, bytes, frame.payload);
    });
    if (copied == CopyResult::kPending) return Sent::kHeld;
    if (copied == CopyResult::kFailed) {
      host_.tx_abort(qp.path.link, frame.begin);
      return cannot_go_on(index, next.request);
    }
    commit(qp, frame.begin, frame.bytes);
    request_sent(index, next, frame.bytes);
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
  bool asks(Qp& qp, const RequesterState& req, const NextPacket& next) {
    if (qp.type != QpType::kRc) return false;
    if (next.must_ask || qp.ask_always || (next.last && s_.config.roce.ack_every_message)) return true;
    if (req.cursor.value() % kPacketsPerAck == kPacketsPerAck - 1) return true;
    RequesterState after = req;
    sent(after, ring_of(qp), s_.now, next);
    return !more_to_send(s_, r_, qp, after);
  }

  /// Its frame, of so many bytes, has left.
  void request_sent(uint32_t index, const NextPacket& next, uint32_t bytes) {
    Qp& qp = r_.qps[index];
    const bool again = qp.req.cursor != qp.req.sent_end;
    s_.count(qp.type == QpType::kUd ? Counter::kRoceTxDatagram
             : again                ? Counter::kRoceTxRetransmit
                                    : Counter::kRoceTxRequest);
    note_of<Host>(s_, again ? Stage::kQpPacketSentAgain : Stage::kQpPacketSent, qp.qpn, qp.req.cursor.value(),
                  next.request);
    if (has_flow(qp)) tell_sent(s_, r_, index, qp.req.cursor, bytes, again);
    sent(qp.req, ring_of(qp), s_.now, next);
    if (qp.type == QpType::kRc) return arm_timer(s_, r_, index);
    // Nobody acknowledges it: its request is complete when the last packet has left.
    (void)on_ack(qp.req, ring_of(qp), s_.now, qp.req.sent_end - 1, Aeth{});
    retire_requests(s_, r_, index);
  }

  /// Memory of a request is gone. It fails when all before it are complete. So that these are acknowledged, they go
  /// again and ask for it; those that nobody acknowledges are complete when what is held of them has left.
  Sent cannot_go_on(uint32_t index, uint32_t request) {
    Qp& qp = r_.qps[index];
    if (request == qp.req.head) {
      fail_requests(s_, r_, index, request, CrStatus::kLocAccess);
      return Sent::kNothing;
    }
    if (qp.ask_always || qp.type != QpType::kRc) return Sent::kNothing;
    qp.ask_always = true;
    s_.held.give_up_all(qp.held_requests);
    rewind(qp.req);
    return Sent::kYes;
  }

  CoreState& s_;
  State& r_;
  Host& host_;
  FrameBuilder<Host> frames_;
};

}  // namespace ub::roce
