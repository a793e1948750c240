// SPDX-License-Identifier: Apache-2.0
// unreliable.h - carries out what arrives for queue pairs of unreliable connections. InfiniBand Architecture
// Specification volume 1, 9.8.2. Nothing is answered, so nothing comes again. A message that cannot be carried out, or
// of which a packet is missing, is dropped and counted. Its receive is used for the next message, and the queue pair
// goes on.
//
// Memory may answer later. A message begins when no copy is pending, its last packet is placed when all packets before
// it are placed, and the message counts when that packet is placed, too. What comes meanwhile is kept, or lost if there
// is no room.
#pragma once

#include <utility>

#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/kept_packets.h"
#include "lib/transport/roce/placement.h"

namespace ub::roce {

template <class Host>
class Unreliable {
 public:
  Unreliable(CoreState& s, State& r, Host& host) : s_(s), r_(r), host_(host) {}

  /// A packet arrived. `raw`: its bytes from BTH to the ICRC.
  void on_request(uint32_t index, const Packet& packet, std::span<const std::byte> raw) {
    Qp& qp = r_.qps[index];
    if (qp.kept_list.empty() && process(index, packet)) return;
    note_of<Host>(s_, Stage::kQpPacketKept, qp.qpn, packet.bth.psn.value());
    if (!keep_packet(s_, r_, qp, raw)) s_.drop(Counter::kRoceRxDropNoKept);
  }

  /// No copy is pending any more.
  void resume(uint32_t index) {
    Qp& qp = r_.qps[index];
    if (qp.executed != kNotExecuted) {
      finish(qp);
    } else if (qp.resp.open == OpenMessage::kNone) {
      release(qp);
    }
    while (!qp.kept_list.empty()) {
      Packet packet;
      if (parse_oldest_kept(s_, r_, qp, &packet) == Drop::kNone && !process(index, packet)) return;
      drop_oldest_kept(r_, qp);
    }
  }

 private:
  /// Carries a packet out. False: it waits for copies, and nothing has changed.
  bool process(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    const UnreliableArrival arrival = judge_unreliable(qp.resp, packet);
    if (arrival == UnreliableArrival::kLate) {
      s_.count(Counter::kRoceRxDuplicate);
      note_of<Host>(s_, Stage::kQpPacketDuplicate, qp.qpn, packet.bth.psn.value());
      return true;
    }
    if (must_wait(qp, arrival, packet)) return false;
    if (packet.bth.psn != qp.resp.expected) s_.count(Counter::kRoceRxOutOfSequence);
    if (arrival != UnreliableArrival::kGoesOn && qp.resp.open != OpenMessage::kNone) {
      s_.drop(Counter::kRoceRxDropIncomplete);
      give_up(qp);
    }
    qp.resp.expected = packet.bth.psn;
    if (arrival != UnreliableArrival::kLost) {
      execute(index, packet);
    } else {
      s_.drop(Counter::kRoceRxDropRefused);
      ++qp.resp.expected;
    }
    return true;
  }

  static bool must_wait(const Qp& qp, UnreliableArrival arrival, const Packet& packet) {
    if (arrival == UnreliableArrival::kLost) return false;
    const bool at_an_end = packet.has(kShapeFirst) || packet.has(kShapeLast);
    return qp.copies_pending >= (at_an_end ? 1 : kCopiesAhead);
  }

  void execute(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    const Verdict verdict = Placement<Host>(s_, r_, host_).place(index, packet);
    if (verdict != Verdict::kDone) {
      ++qp.resp.expected;
      return turn_down(qp, packet.has(kShapeSend), verdict);
    }
    accept(qp.resp, packet);
    note_step<Host>(s_, Stage::kQpPacketTaken, qp.qpn, packet.bth.psn.value());
    s_.count(Counter::kRoceRxRequest);
    if (!packet.has(kShapeLast)) return;
    r_.arriving[qp.arriving] = message_completion(qp, packet);
    qp.executed = packet.bth.opcode;
    if (qp.copies_pending == 0) finish(qp);
  }

  /// All of a message is in memory, or a copy failed.
  void finish(Qp& qp) {
    const bool send = (packet_shape(std::exchange(qp.executed, kNotExecuted)) & kShapeSend) != 0;
    if (qp.copy_failed) return turn_down(qp, send, Verdict::kOperation);
    if (qp.receive != 0) complete_receive(s_, qp, CrStatus::kSuccess, r_.arriving[qp.arriving]);
  }

  void turn_down(Qp& qp, bool send, Verdict verdict) {
    s_.drop(verdict == Verdict::kNotReady ? Counter::kRoceRxDropNoReceive
            : send                        ? Counter::kRoceRxDropNoFit
                                          : Counter::kRoceRxDropBadAccess);
    // A receive that names no memory would be in the way for ever. A receive that is too short may fit the next
    // message.
    qp.receive_status = send && verdict == Verdict::kOperation ? CrStatus::kLocAccess : CrStatus::kSuccess;
    give_up(qp);
  }

  void give_up(Qp& qp) {
    qp.resp.open = OpenMessage::kNone;
    if (qp.copies_pending == 0) release(qp);
  }

  /// The receive of a message that was given up is used for the next one, as soon as no copy into it is pending.
  void release(Qp& qp) {
    qp.copy_failed = false;
    if (qp.receive == 0) return;
    if (qp.receive_status == CrStatus::kSuccess) return return_receive(s_, std::exchange(qp.receive, 0));
    Cqe cqe{};
    cqe.opcode = CrOpcode::kNone;
    complete_receive(s_, qp, qp.receive_status, cqe);
  }

  CoreState& s_;
  State& r_;
  Host& host_;
};

}  // namespace ub::roce
