// SPDX-License-Identifier: Apache-2.0
// engine_pair.h - two Cores with queue pairs (core_pair.h).
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "tests/unit/roce/roce_test_util.h"
#include "tests/unit/transport/core_pair.h"

namespace ub::roce {

/// A Core with RoCE.
struct TestNode : CoreNode {
  explicit TestNode(uint8_t address, const RoceConfig& roce = {.max_qps = 8}, uint32_t kept_packets = 8,
                    bool listen_to_network = false, uint64_t line_bytes_per_second = 12'500'000'000)
      : CoreNode(config(address, roce, kept_packets, listen_to_network, line_bytes_per_second)),
        gid(wire::IpAddress::from_v4(0x0A000000 | address)) {}
  Engine<TestHost>& roce() { return *core->roce(); }

  Gid gid;

 private:
  static CoreConfig config(uint8_t address, const RoceConfig& roce, uint32_t kept_packets, bool listen_to_network,
                           uint64_t line_bytes_per_second) {
    CoreConfig c = small_config(address);
    c.listen_to_network = listen_to_network;
    c.line_bytes_per_second = line_bytes_per_second;
    c.kept_packets = kept_packets;
    c.roce = roce;
    return c;
  }
};

/// A queue pair with rings, completion queue and memory of its own.
struct TestQp {
  static constexpr uint32_t kSlots = 64, kDepth = 16;

  struct Options {
    uint32_t cq_depth = 64;
    QpType type = QpType::kRc;
    uint32_t shared_jfr = 0, shared_jfc = 0;
    uint8_t receive_slots = 1;
    size_t memory_bytes = 1 << 16;
    OwnerLimits* limits = nullptr;
  };

  explicit TestQp(TestNode& n) : TestQp(n, Options()) {}
  TestQp(TestNode& n, const Options& o) : node(n), type(o.type), memory(o.memory_bytes) {
    jfc = o.shared_jfc;
    const JfcConfig completions{.slots = cqes, .slot_count = kSlots, .depth = o.cq_depth, .indices = &cq};
    if (jfc == 0) {
      EXPECT_EQ(node.core->create_jfc(completions, &jfc), Status::kOk);
    }
    jfr = o.shared_jfr;
    if (jfr == 0) {
      JfrConfig c;
      c.slots = rqes;
      c.slot_count = kSlots;
      c.indices = &rq;
      c.jfc = jfc;
      c.user_data = 77;
      c.receive_slots = o.receive_slots;
      EXPECT_EQ(node.core->create_jfr(c, &jfr), Status::kOk);
    }
    work.resize(Engine<TestHost>::work_bytes(kDepth) / 64);
    QpConfig c;
    c.type = o.type;
    c.sq = {.slots = wqes,
            .slot_count = kSlots,
            .depth = kDepth,
            .indices = &sq,
            .work = reinterpret_cast<std::byte*>(work.data()),
            .jfc = jfc,
            .limits = o.limits};
    c.jfr = jfr;
    c.srq = o.shared_jfr != 0;
    c.recv_jfc = jfc;
    c.user_data = 99;
    EXPECT_EQ(node.roce().create_qp(c, &qpn), Status::kOk);
    RegisteredSegment registered;
    SegmentConfig mine;
    mine.memory = memory.data();
    mine.address = kAddress;
    mine.local_address = reinterpret_cast<uint64_t>(memory.data());
    mine.length = memory.size();
    mine.token = {true, kKey};
    mine.access = kAccessRead | kAccessWrite | kAccessAtomic;
    EXPECT_EQ(node.core->register_segment(mine, &registered), Status::kOk);
    segment = registered.handle;
    rkey = make_rkey(registered.token_id, kKey);
  }

  static constexpr uint32_t kKey = 0x5A5;
  static constexpr uint64_t kAddress = 0x10000;

  Sge sge(uint32_t offset, uint32_t length) {
    return {reinterpret_cast<uint64_t>(memory.data()) + offset, length, segment};
  }

  Wqe& post(WrOp op, uint32_t offset, uint32_t length, uint32_t remote_rkey = 0, uint64_t remote = kAddress) {
    const uint32_t slots = wqe_slots(op, 1, 0);
    uint32_t at = sq.produced.load();
    if (at % kSlots + slots > kSlots) {
      Wqe& skip = wqes[at % kSlots];
      skip = {};
      skip.op = WrOp::kSkip;
      skip.slots = static_cast<uint8_t>(kSlots - at % kSlots);
      at += skip.slots;
    }
    Wqe& w = wqes[at % kSlots];
    w = {};
    w.op = op;
    w.flags = kWrSignaled;
    w.slots = static_cast<uint8_t>(slots);
    w.sge_count = 1;
    w.user_ctx = ++posted;
    w.length = length;
    w.sge = sge(offset, length);
    w.token_id = remote_rkey;
    w.remote_address = remote;
    sq.produced.store(at + slots);
    return w;
  }
  void ring(Instant now) { node.core->on_posted(now, qpn); }

  void post_receive(uint32_t offset, uint32_t length) {
    Rqe& r = rqes[rq.produced.load() % kSlots];
    r = {};
    r.user_ctx = 1000 + offset;
    r.length = length;
    r.sge_count = 1;
    r.slots = 1;
    r.sge[0] = sge(offset, length);
    rq.produced.store(rq.produced.load() + 1);
  }

  std::vector<Cqe> poll() {
    std::vector<Cqe> all;
    for (; polled != cq.produced.load(); ++polled) all.push_back(cqes[polled % kSlots]);
    cq.consumed.store(polled);
    return all;
  }

  TestNode& node;
  const QpType type;
  Bytes memory;
  Wqe wqes[kSlots];
  Rqe rqes[kSlots];
  Cqe cqes[kSlots];
  QueueIndices sq{}, rq{}, cq{};
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> work;
  uint32_t jfc = 0, jfr = 0, qpn = 0, segment = 0, rkey = 0;
  uint64_t posted = 0;
  uint32_t polled = 0;
};

inline constexpr uint32_t kToInit = kQpPkey | kQpPort | kQpAccess;
inline constexpr uint32_t kToRtr = kQpPath | kQpMtu | kQpDestination | kQpReceivePsn | kQpReadsServed | kQpRnrTimer;
inline constexpr uint32_t kToRts = kQpSendPsn | kQpTimeout | kQpRetries | kQpRnrRetries | kQpReadsInFlight;

inline constexpr uint32_t kUcToRtr = kQpPath | kQpMtu | kQpDestination | kQpReceivePsn, kUcToRts = kQpSendPsn;

class EnginePair : public CorePair<TestNode> {
 protected:
  QpAttributes usual(QpState state, const TestQp& self, const TestQp& peer) {
    QpAttributes to;
    to.qp_state = state;
    to.path_mtu = 3;
    to.dest_qp_num = peer.qpn;
    to.rq_psn = 0xFFFFF0 + (peer.qpn & 7);  // soon to wrap
    to.sq_psn = 0xFFFFF0 + (self.qpn & 7);
    to.qp_access_flags = kAccessRead | kAccessWrite | kAccessAtomic;
    to.ah_attr = {self.node.link, self.node.gid, peer.node.gid, 0};
    to.max_rd_atomic = to.max_dest_rd_atomic = 4;
    to.min_rnr_timer = 1;
    to.timeout = 8;  // about 1 ms
    to.retry_cnt = retries;
    to.rnr_retry = 3;
    return to;
  }
  void to_rts(TestQp& self, const TestQp& peer, uint8_t mtu = 3) {
    QpAttributes to = usual(QpState::kInit, self, peer);
    to.path_mtu = mtu;
    Engine<TestHost>& roce = self.node.roce();
    ASSERT_EQ(roce.modify_qp(now, self.qpn, to, kToInit), Status::kOk);
    to.qp_state = QpState::kRtr;
    ASSERT_EQ(roce.modify_qp(now, self.qpn, to, self.type == QpType::kUc ? kUcToRtr : kToRtr), Status::kOk);
    to.qp_state = QpState::kRts;
    ASSERT_EQ(roce.modify_qp(now, self.qpn, to, self.type == QpType::kUc ? kUcToRts : kToRts), Status::kOk);
  }
  void connect(TestQp& x, TestQp& y, uint8_t mtu = 3) {
    to_rts(x, y, mtu);
    to_rts(y, x, mtu);
  }
  QpState state_of(TestQp& q) {
    QpAttributes now_it_has;
    EXPECT_EQ(q.node.roce().query_qp(q.qpn, &now_it_has), Status::kOk);
    return now_it_has.qp_state;
  }

  static Packet parse(const Bytes& frame) {
    wire::NetHeader net;
    EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    Packet packet{};
    EXPECT_TRUE(icrc_fits(net));
    EXPECT_EQ(parse_packet(net.tph, net.end, packet), Drop::kNone);
    return packet;
  }
  static uint16_t source_port(const Bytes& frame) {
    wire::NetHeader net;
    EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    return net.src.port;
  }
  /// The packets that a node would send now, and has not.
  std::vector<Packet> sent_by(TestNode& node) {
    drain(node);
    std::vector<Packet> all;
    for (const Bytes& frame : node.host.frames) all.push_back(parse(frame));
    return all;
  }

  uint8_t retries = 3;
};

inline void fill(TestQp& q, uint8_t seed) {
  for (size_t i = 0; i < q.memory.size(); ++i) q.memory[i] = static_cast<std::byte>(seed + i * 7 + (i >> 8));
}
inline bool same(const TestQp& x, size_t at, const TestQp& y, size_t from, size_t bytes) {
  return std::equal(x.memory.begin() + static_cast<ptrdiff_t>(at),
                    x.memory.begin() + static_cast<ptrdiff_t>(at + bytes),
                    y.memory.begin() + static_cast<ptrdiff_t>(from));
}

}  // namespace ub::roce
