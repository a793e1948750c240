// SPDX-License-Identifier: Apache-2.0
// delivery.h - the receiving side of the transaction layer in the hands of a test, which writes the packets of the
// peer: one channel, memory that the peer may use, and the jetty of requests.h, which asks and is asked.
#pragma once

#include "lib/transport/ta/packet_receiver.h"
#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/test_host.h"

namespace ub::ta {

constexpr uint32_t kPeerRcid = 4000, kToken = 0x4321;

struct Delivery : Requests {
  explicit Delivery(const Options& o = {}) : Requests(o), shared(256 * 1024 + 64) {
    SegmentConfig c;
    c.memory = shared.data() + (64 - reinterpret_cast<uintptr_t>(shared.data()) % 64) % 64;
    base = c.memory;
    c.address = c.local_address = reinterpret_cast<uint64_t>(base);
    c.length = 256 * 1024;
    c.token = {true, kToken};
    c.access = kAccessRead | kAccessWrite | kAccessAtomic;
    c.owner = 5;
    EXPECT_EQ(register_segment(*s, c, &target_memory), Status::kOk);
    tp::Channel& c_ = ch();
    c_.highest_seen = c_.expected - 1;
    c_.read_meta = true;
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 8) + 1);
  }

  // ---- packets of the peer ----
  wire::TaPacket of(wire::TaOpcode op) const {
    wire::TaPacket p{};
    p.req.opcode = op;
    p.req.rc_id = kPeerRcid;
    p.req.tassn = Tassn(tassn);
    p.tv = true;
    p.token_value = kToken;
    return p;
  }
  /// `length`: of all that is written, read or operated on.
  wire::TaPacket on_memory(wire::TaOpcode op, uint32_t length, uint64_t offset = 0) const {
    wire::TaPacket p = of(op);
    p.has_ma = true;
    p.ma = {reinterpret_cast<uint64_t>(base) + offset, target_memory.token_id, length};
    p.has_taid = p.has_ofst = op == wire::TaOpcode::kRead;
    p.taid = 0;
    p.ofst.offset_kib = 0;
    return p;
  }
  wire::TaPacket send(uint32_t offset_kib = 0, wire::TaOpcode op = wire::TaOpcode::kSend) const {
    wire::TaPacket p = of(op);
    p.has_mt = p.has_ofst = true;
    p.mt = {0, wire::kTcTypeQueue, id};
    p.ofst.offset_kib = offset_kib;
    return p;
  }
  wire::TaPacket response(wire::TaOpcode op, uint32_t to, uint32_t offset_kib = 0) const {
    wire::TaPacket p{};
    p.is_response = true;
    p.rsp.opcode = op;
    p.rsp.rc_id = id;
    p.rsp.tassn = Tassn(to);
    p.has_taid = p.has_ofst = op == wire::TaOpcode::kReadResponse;
    p.taid = 0;
    p.ofst.offset_kib = offset_kib;
    return p;
  }
  /// Gives it to the receiver under a PSN; the payload is `bytes` from `from` on.
  void give(uint32_t at_psn, const wire::TaPacket& p, uint32_t payload, bool last, uint32_t message,
            uint32_t from = 0) {
    std::vector<std::byte> rest(wire::kMaxTransactionHeaderSize + payload + 3);
    const size_t headers = wire::write_transaction_headers(p, rest.data());
    std::memcpy(rest.data() + headers, bytes + from, payload);
    wire::RtpHeader rtp;
    rtp.psn = Psn(at_psn);
    rtp.tpmsn = Tpmsn(message);
    rtp.last = last;
    rtp.padding = wire::padding_for(payload);
    rest.resize(headers + payload + rtp.padding);
    receiver.on_data(channel, rtp, rest);
  }
  /// In order.
  void give(const wire::TaPacket& p, uint32_t payload, bool last = true, uint32_t from = 0) {
    give(psn++, p, payload, last, tpmsn, from);
    if (last) ++tpmsn, ++tassn;
  }
  void give_fake(uint32_t message) {
    wire::RtpHeader rtp;
    rtp.psn = Psn(psn++);
    rtp.tpmsn = Tpmsn(message);
    rtp.last = rtp.fake = true;
    receiver.on_data(channel, rtp, {});
  }

  // ---- what came of it ----
  std::vector<tp::TxMessage> answers() {
    std::vector<tp::TxMessage> all;
    for (; !ch().answers.empty(); ch().answers.pop(s->answers)) all.push_back(ch().answers.front(s->answers));
    return all;
  }
  /// The only answer, as RSPST and RSPINFO; 255, 255: there is another number of them.
  std::pair<int, int> verdict() {
    const std::vector<tp::TxMessage> all = answers();
    return all.size() == 1 ? std::pair<int, int>(all[0].rspst, all[0].rspinfo) : std::pair(255, 255);
  }
  bool holds(uint32_t length, uint64_t offset = 0, uint32_t from = 0) const {
    return std::memcmp(base + offset, bytes + from, length) == 0;
  }
  void post_receive(uint32_t length, uint32_t offset = 0) {
    ReceiveRing& r = receive_rings[0];
    Rqe& e = r.slots[r.indices.produced.load() % r.slots.size()];
    e = {};
    e.user_ctx = 1000 + offset;
    e.length = length;
    e.sge_count = e.slots = 1;
    e.sge[0] = {address() + offset, length, segment.handle};
    r.indices.produced.store(r.indices.produced.load() + 1);
  }
  /// The contexts of receives that completed with success.
  std::vector<uint64_t> receive_completions() {
    std::vector<uint64_t> all;
    for (const Cqe& c : completions()) {
      if ((c.flags & kCqeReceive) != 0 && c.status == CrStatus::kSuccess) all.push_back(c.user_ctx);
    }
    return all;
  }
  // The channel has no record for a message whose end waits.
  void park_nothing() {
    while (s->parked.alloc() != 0) {
    }
  }
  Jfr& the_jfr() { return s->jfrs[jetty(id).jfr]; }

  /// From now on no packet can be kept.
  void use_up_kept_places() {
    for (tp::KeptCount others; s->kept.keep({}, {}, others) != 0; others = {}) {
    }
  }
  /// The timer of the channel fires, which is armed no more then.
  void channel_timer() {
    s->timers.cancel(s->timer_of_channel(channel));
    receiver.on_timer(channel);
  }

  // For TestHost::finish_copy.
  void on_copy_done(Instant, CopyTag tag, bool ok) { receiver.on_placed(ta::purpose_of(tag), ok); }
  void finish_copy(size_t which = 0) { host.finish_copy(*this, s->now, which); }
  void finish_copies() { host.finish_copies(*this, s->now); }

  std::vector<std::byte> shared;
  std::byte* base;
  RegisteredSegment target_memory;
  std::byte bytes[16 * 1024];
  TestHost host;
  PacketReceiver<TestHost> receiver{*s, host};
  uint32_t psn = 0, tpmsn = 0, tassn = 0;
};

/// Memory that answers when the test says so.
struct Slow : Delivery {
  explicit Slow(bool completes_early = false)
      : Delivery({.slow_memory = true, .completes_early = completes_early}) {
    host.slow = true;
  }
};

const std::pair<int, int> kFine{wire::kRspOk, 0}, kAborted{wire::kRspError, wire::kErrRemoteAbort},
    kNotSupported{wire::kRspError, wire::kErrUnsupportedRequest};

}  // namespace ub::ta
