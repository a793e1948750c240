// SPDX-License-Identifier: Apache-2.0
//
// Sends the requests of UM queues: a UTP packet each, at once, never again (UB Base Specification Rev 2.0, 6.2.1, 7.3).
// Queues of one link take turns by message; a port without room holds up its own queues alone.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/held_frames.h"
#include "lib/transport/host.h"
#include "lib/transport/sealed_frame.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/datagram_queue.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/segmentation.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub::ta {

template <class Host>
class DatagramSender {
 public:
  DatagramSender(CoreState& s, Host& host) : s_(s), host_(host) {}

  // At most `budget` messages; returns how many were dealt with.
  size_t send(size_t budget) {
    size_t sent = 0;
    const uint32_t last_one = s_.active_links.back();  // each has one turn
    for (uint32_t link = 0; link != last_one && sent < budget;) {
      link = s_.active_links.pop_front<&LinkRecord::on_active_list>(s_.links);
      Sent last = Sent::kYes;
      while (sent < budget && last == Sent::kYes) {
        last = send_next(link);
        sent += last == Sent::kYes;
      }
      if (last != Sent::kNothing) activate_link(s_, link);
    }
    return sent;
  }

  void on_gather_done(const DatagramCopy& copy, bool ok) {
    GatheringDatagram& d = s_.gathering[copy.record];
    if (!d.in_use || d.generation != copy.generation) return;  // given up meanwhile
    d.failed |= !ok;
    if (--d.pending != 0) return;
    const uint32_t queue = d.queue;
    if (d.failed) finish(copy.record, CrStatus::kLocAccess);
    schedule_datagrams(s_, queue);
  }

 private:
  enum class Sent : uint8_t { kYes, kNothing, kNoRoom };

  // The oldest waiting queue's next message; the queue goes to the end.
  Sent send_next(uint32_t link) {
    const IndexList& queues = s_.links[link].queues;
    while (!queues.empty()) {
      const uint32_t queue = queues.front<&SendQueue::in_line>(s_.queues);
      SendQueue& q = s_.queues[queue];
      const uint32_t started = q.started_tail;
      const bool here = next_datagram(s_, q) == link;
      const bool left = here && send_front(queue, link);
      if (q.started_tail != started) retire_requests(s_, queue);
      if (here && !left) return Sent::kNoRoom;
      leave_list(s_, queue);
      schedule_datagrams(s_, queue);
      if (here) return Sent::kYes;
    }
    return Sent::kNothing;
  }

  // False: no room now.
  bool send_front(uint32_t queue, uint32_t link) {
    SendQueue& q = s_.queues[queue];
    if (q.gathering != 0) return send_held(q);
    const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
    const Target& target = s_.targets[wqe.target];
    const PeerAddress& path = s_.peers[target.peer].path;
    wire::NetTemplate headers;
    headers.init({}, {}, path.local, path.remote, 0);
    const wire::TaPacket ta = describe(q, wqe, target);
    const uint8_t padding = wire::padding_for(wqe.length);
    const size_t tp_bytes = wire::UtpHeader::kSize +
                            wire::request_header_size(ta.req.opcode, {.ud = true, .tv = ta.tv}) + wqe.length + padding +
                            wire::kIcrcSize;
    const auto bytes = static_cast<uint32_t>(headers.size + tp_bytes);
    std::byte* frame = host_.tx_begin(link, bytes);
    if (frame == nullptr) {
      if (!given_up(q)) return false;
      start_datagram(s_, q).done = true;
      return true;
    }
    std::byte* at = frame + headers.write(frame, tp_bytes, wire::kEcnNotCapable);
    wire::UtpHeader{padding, wire::kNlpTransaction}.write(at);
    at += wire::UtpHeader::kSize;
    at += wire::write_transaction_headers(ta, at);
    std::memset(at + wqe.length, 0, padding);
    const uint32_t record = take_record(queue, link, bytes, headers.v6());
    gather(record, wqe, frame, at);
    return true;
  }

  // Its payload came from memory that answered later.
  bool send_held(SendQueue& q) {
    const uint32_t record = q.gathering;
    const GatheringDatagram& d = s_.gathering[record];
    std::byte* frame = resume_frame(s_, host_, s_.held_of_datagram(record), d.link, d.bytes);
    if (frame == nullptr && !given_up(q)) return false;
    if (frame != nullptr) commit(d, frame);
    q.deadline = Instant::never();
    finish(record, CrStatus::kSuccess);
    return true;
  }

  // Nobody takes anything out of the port any more: waiting is over, the message is lost.
  bool given_up(const SendQueue& q) {
    if (s_.now < q.deadline) return false;
    s_.count(Counter::kUmTxNoRoom);
    return true;
  }

  wire::TaPacket describe(const SendQueue& q, const Wqe& wqe, const Target& target) {
    wire::TaPacket ta{};
    ta.req.opcode = wire_opcode(wqe.op);
    ta.req.tassn = q.next_tassn;
    ta.req.rc_id = q.rcid;
    ta.req.fce = (wqe.flags & kWrSolicited) != 0;
    ta.has_ud = ta.has_mt = ta.has_ofst = true;
    ta.ud = s_.config.self.uasid;
    ta.mt = {wqe.hint, target.kind == ObjectKind::kGroup ? wire::kTcTypeGroup : wire::kTcTypeQueue, target.id};
    ta.has_imm = wqe.op == WrOp::kSendImm;
    ta.imm.immediate = wqe.immediate;
    ta.tv = target.token.required;
    ta.token_value = target.token.value;
    return ta;
  }

  uint32_t take_record(uint32_t queue, uint32_t link, uint32_t bytes, bool v6) {
    const uint32_t record = s_.gathering.alloc();
    GatheringDatagram& d = s_.gathering[record];
    s_.queues[queue].gathering = record;
    ++s_.gathering_of[s_.queues[queue].owner];
    d = {.bytes = bytes,
         .link = link,
         .queue = queue,
         .pending = 0,
         .generation = d.generation + 1,
         .owner = s_.queues[queue].owner,
         .v6 = v6,
         .failed = false,
         .in_use = true};
    return record;
  }

  void finish(uint32_t record, CrStatus status) {
    const uint32_t queue = s_.gathering[record].queue;
    release_gathering(s_, record);
    finish_datagram(s_, queue, status);
  }

  // The message starts here. Memory at hand: it leaves at once.
  void gather(uint32_t record, const Wqe& wqe, std::byte* frame, std::byte* payload) {
    GatheringDatagram& d = s_.gathering[record];
    SendQueue& q = s_.queues[d.queue];
    const Copies copies{datagram_tag({false, record, d.generation}), d.pending};
    const CopyResult copied =
        wqe.length == 0 ? CopyResult::kDone : gather_request(s_, host_, copies, wqe, q.owner, 0, wqe.length, payload);
    WrState& wr = start_datagram(s_, q);
    q.deadline = Instant::never();
    if (copied == CopyResult::kPending) {
      note_of<Host>(s_, Stage::kDatagramHeld, d.link, d.queue);
      return hold_frame(s_, host_, s_.held_of_datagram(record), d.link, frame, d.bytes);
    }
    wr.done = true;
    if (copied == CopyResult::kFailed) {
      wr.status = CrStatus::kLocAccess;
      host_.tx_abort(d.link, frame);
    } else {
      commit(d, frame);
    }
    release_gathering(s_, record);
  }

  void commit(const GatheringDatagram& d, std::byte* frame) {
    seal_and_commit(s_, host_, d.link, frame, d.bytes, UbIcrc{d.v6});
    s_.count(Counter::kUmTx);
    note_of<Host>(s_, Stage::kDatagramSent, d.link, d.queue);
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
