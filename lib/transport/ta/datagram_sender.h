// SPDX-License-Identifier: Apache-2.0
//
// Sends the requests of UM queues (UB Base Specification Rev 2.0, 6.2.1, 7.3). Each request is one UTP packet, which is
// sent once. The queues of one link take turns after each message. A port without room holds up only the queues of its
// link. If the memory of a datagram answers later, its queue holds the frame and sends nothing else until then
// (held_frames.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/seal_and_commit.h"
#include "lib/transport/ta/completion.h"
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

  // Sends at most `budget` messages; returns how many ended or were held.
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

  // The gathers of a held datagram are done.
  void on_gathered(const HeldFrame& h) {
    const uint32_t queue = h.item;
    if (h.failed) finish_held(queue, CrStatus::kLocAccess);
    schedule_datagrams(s_, queue);
  }

 private:
  enum class Sent : uint8_t { kYes, kNothing, kNoRoom };

  // A frame with its headers, and where its payload goes.
  struct Frame {
    uint32_t link;
    bool v6;
    uint32_t bytes;
    std::byte* begin;
    std::byte* payload;
  };

  // Sends the next message of the queue that has waited longest. The queue goes to the end of the list.
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

  // Sends or starts the next message of the queue. False: the port has no room now.
  bool send_front(uint32_t queue, uint32_t link) {
    SendQueue& q = s_.queues[queue];
    if (q.held != 0) return send_held(queue);
    const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
    const Target& target = s_.targets[wqe.target];
    const PeerAddress& path = s_.peers[target.peer].path;
    wire::NetTemplate headers;
    headers.init({}, {}, path.local, path.remote, s_.config.dscp);
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
    start(queue, wqe, {link, headers.v6(), bytes, frame, at});
    return true;
  }

  // Starts the message, and ends it unless its memory answers later.
  void start(uint32_t queue, const Wqe& wqe, const Frame& frame) {
    SendQueue& q = s_.queues[queue];
    WrState& wr = start_datagram(s_, q);
    q.deadline = Instant::never();
    uint32_t pending = 0;  // stays 0: it is used only where memory answers at once
    const CopyResult copied =
        s_.config.slow_memory ? gather_slowly(queue, wqe, frame) : gather(wqe, q.owner, {0, pending}, frame.payload);
    if (copied == CopyResult::kPending) return;
    wr.done = true;
    if (copied == CopyResult::kFailed) {
      wr.status = CrStatus::kLocAccess;
      host_.tx_abort(frame.link, frame.begin);
    } else {
      commit(queue, frame.link, frame.begin, frame.bytes, frame.v6);
    }
  }

  // Gathers the payload of the message.
  CopyResult gather(const Wqe& wqe, Owner owner, const Copies& copies, std::byte* payload) {
    if (wqe.length == 0) return CopyResult::kDone;
    return gather_request(s_, host_, copies, wqe, owner, 0, wqe.length, payload);
  }

  // The same where memory may answer later. kPending: the queue holds the frame.
  CopyResult gather_slowly(uint32_t queue, const Wqe& wqe, const Frame& frame) {
    HeldFrame& h = take_held_datagram(s_, queue);
    h.link = frame.link;
    h.bytes = frame.bytes;
    h.v6 = frame.v6;
    const CopyResult copied = gather(wqe, s_.queues[queue].owner, {s_.held.tag_of(h), h.pending}, frame.payload);
    if (copied != CopyResult::kPending) {
      release_held_datagram(s_, queue);
      return copied;
    }
    note_of<Host>(s_, Stage::kDatagramHeld, frame.link, queue);
    s_.held.hold(host_, h, frame.begin);
    return copied;
  }

  // Sends the datagram that the queue holds; its memory has answered. False: the port has no room now.
  bool send_held(uint32_t queue) {
    SendQueue& q = s_.queues[queue];
    const HeldFrame& h = s_.held[q.held];
    std::byte* frame = s_.held.resume(host_, h);
    if (frame == nullptr && !given_up(q)) return false;
    if (frame != nullptr) commit(queue, h.link, frame, h.bytes, h.v6);
    q.deadline = Instant::never();
    finish_held(queue, CrStatus::kSuccess);
    return true;
  }

  void finish_held(uint32_t queue, CrStatus status) {
    release_held_datagram(s_, queue);
    finish_datagram(s_, queue, status);
  }

  // Has the queue waited for room until its deadline? Then nobody takes anything out of the port any more, and the
  // message is lost.
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

  void commit(uint32_t queue, uint32_t link, std::byte* frame, uint32_t bytes, bool v6) {
    seal_and_commit(s_, host_, link, frame, bytes, UbIcrc{v6 ? wire::NetForm::kIpv6 : wire::NetForm::kIpv4});
    s_.count(Counter::kUmTx);
    note_of<Host>(s_, Stage::kDatagramSent, link, queue);
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
