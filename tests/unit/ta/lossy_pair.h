// SPDX-License-Identifier: Apache-2.0
//
// Two instances that speak CTP over a wire that says that it may lose packets.
#pragma once

#include <cstring>
#include <vector>

#include "lib/transport/ta/repeated_requests.h"
#include "tests/unit/ta/compact_pair.h"

namespace ub {

class RepeatsTest : public CompactPair {
 protected:
  explicit RepeatsTest(const UbOptions& o = on_lossy_wire()) : CompactPair(o) {}

  static UbOptions on_lossy_wire() {
    UbOptions o = options();
    o.link.lossless = false;
    o.core.max_queues = 64;
    return o;
  }

  const ta::Repeats& repeats(const UbNode& n) const { return state(n).repeats[channel(n).repeats]; }
  uint64_t word() const {
    uint64_t w;
    std::memcpy(&w, b.memory.data() + UbNode::kMemory / 2, sizeof w);
    return w;
  }
  void add(uint64_t what) { request(WrOp::kFetchAdd, 8).immediate = what; }
  /// What a node would send now; it is lost.
  std::vector<SeenCompact> lose(UbNode& node) {
    std::vector<SeenCompact> all = compact_from(node);
    node.host.frames.clear();
    return all;
  }
  /// Until a node sends something by itself.
  void wait_for_frames(UbNode& node) {
    while (node.host.frames.empty()) {
      wake(node);
      drain(node);
    }
  }
  /// a's packet of the last request, as it left. It is not delivered.
  Bytes frame_of_last() {
    drain(a);
    EXPECT_EQ(a.host.frames.size(), 1u);
    Bytes frame = a.host.frames.back();
    a.host.frames.clear();
    return frame;
  }
  void arrive(const Bytes& frame) { b.core->on_packet(now, b.link, frame); }
  /// A packet of a peer with an initiator of its own.
  Bytes frame_of(const wire::TaPacket& ta, const std::vector<std::byte>& payload) const {
    return frame_between(a, b, ta, payload);
  }
  Bytes frame_between(const UbNode& from, const UbNode& to, const wire::TaPacket& ta,
                      const std::vector<std::byte>& payload) const {
    Bytes f(2048);
    size_t size = wire::CompactTemplate::kSize;
    size += wire::write_transaction_headers(ta, f.data() + size);
    std::copy(payload.begin(), payload.end(), f.data() + size);
    const uint8_t padding = wire::compact_padding_for(size - wire::CompactTemplate::kSize + payload.size());
    wire::CompactTemplate(from.at, to.at, channel(from).tpn, channel(to).tpn).write(f.data(), padding);
    f.resize(size + payload.size() + padding + wire::kIcrcSize);
    seal(f);
    return f;
  }
  Bytes send_frame(uint32_t tassn, bool retry) const {
    wire::TaPacket ta{};
    ta.req.opcode = wire::TaOpcode::kSend;
    ta.req.tassn = Tassn(tassn);
    ta.req.rc_id = 77;
    ta.req.retry = retry;
    ta.has_mt = ta.has_ofst = true;
    ta.mt = {0, wire::kTcTypeQueue, b.jetty};
    return frame_of(ta, {8, std::byte{1}});
  }
  Bytes write_frame(uint32_t rcid, uint32_t tassn, std::byte what, bool retry = false) const {
    wire::TaPacket ta{};
    ta.req.opcode = wire::TaOpcode::kWrite;
    ta.req.tassn = Tassn(tassn);
    ta.req.rc_id = rcid;
    ta.req.retry = retry;
    ta.has_ma = ta.tv = true;
    ta.ma = {b.address() + UbNode::kMemory / 2, b.segment.token_id, 8};
    ta.token_value = UbNode::kToken;
    return frame_of(ta, {8, what});
  }
  Bytes read_frame(uint32_t rcid, uint32_t tassn) const {
    wire::TaPacket ta{};
    ta.req.opcode = wire::TaOpcode::kRead;
    ta.req.tassn = Tassn(tassn);
    ta.req.rc_id = rcid;
    ta.has_ma = ta.tv = true;
    ta.ma = {b.address(), b.segment.token_id, 8};
    ta.token_value = UbNode::kToken;
    return frame_of(ta, {});
  }
  /// RTP carries as many messages of a's queue. Each takes one TASSN.
  void send_elsewhere(uint32_t messages) {
    for (uint32_t left = messages; left != 0;) {
      const uint32_t some = std::min(left, 32u);
      for (uint32_t i = 0; i < some; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 0, 64);
      for (uint32_t i = 0; i < some; ++i) request(WrOp::kSend, 8);
      exchange();
      EXPECT_EQ(a.poll().size(), some);
      b.poll();
      left -= some;
    }
  }
  /// A second queue of a, with its ring.
  uint32_t another_queue(UbNode::Ring& ring) { return a.make_jetty(Mode::kRm, a.jfr, ring); }
  void write_from(UbNode::Ring& ring, uint32_t jetty) {
    Wqe& w = a.post(ring, WrOp::kWrite, to_b, 8);
    w.remote_address = b.address() + UbNode::kMemory / 2;
    w.token_id = b.segment.token_id;
    w.token_value = UbNode::kToken;
    a.core->on_posted(now, jetty);
  }
  /// b answers a WRITE of this queue.
  void answer(uint32_t rcid, Tassn tassn, uint8_t rspst = wire::kRspOk) {
    wire::TaPacket ta{};
    ta.is_response = true;
    ta.rsp.opcode = wire::TaOpcode::kTaack;
    ta.rsp.rspst = rspst;
    ta.rsp.rc_id = rcid;
    ta.rsp.tassn = tassn;
    a.core->on_packet(now, a.link, frame_between(b, a, ta, {}));
  }
  std::byte first_byte() const { return b.memory[UbNode::kMemory / 2]; }
  /// The status in the only answer of b to this packet.
  uint8_t answer_to(const Bytes& frame) {
    arrive(frame);
    const std::vector<SeenCompact> out = lose(b);
    EXPECT_EQ(out.size(), 1u);
    return out.size() == 1 ? out[0].ta.rsp.rspst : uint8_t{UINT8_MAX};
  }
};

}  // namespace ub
