// SPDX-License-Identifier: Apache-2.0
// ub_pair.h - two Cores that speak UB (core_pair.h), each with one application: a jetty with its rings, a queue for
// unreliable messages, and memory that the other may use.
#pragma once

#include <numeric>
#include <vector>

#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"
#include "lib/transport/wire/transaction_packet.h"
#include "tests/unit/transport/core_pair.h"

namespace ub {

struct UbOptions {
  CoreConfig core = quiet_config();
  LinkConfig link{.mtu = 1024, .lossless = true};
  uint8_t err_timeout = 17;
  bool rot = false;  // the jettys are of RC, and their targets keep their order
  bool rol = false;  // the jettys are of RC, and channels keep their order, if `core.rol` is on
  // How the second node differs.
  uint32_t mtu_of_b = 0;        // of its link; 0: as the first one's
  bool compact_at_b = true;     // false: it makes no channels of CTP
  bool rol_at_b = true;         // false: it makes no channels of ROL
  bool cna_at_b = true;         // false: its channels of RTP are of UBoE

  /// One lane, and numbers that are easy to read.
  static CoreConfig quiet_config() {
    CoreConfig c = CoreNode::small_config(0);
    c.lanes = 1;
    c.first_psn = 100;
    return c;
  }
};

class UbNode : public CoreNode {
 public:
  static constexpr uint32_t kSlots = 256, kDepth = 64;
  static constexpr uint32_t kMemory = 256 * 1024, kToken = 0x4321;

  UbNode(uint8_t address, const UbOptions& o)
      : CoreNode(config(address, o), link_of(address, o)),
        mode(o.rot || o.rol ? Mode::kRc : Mode::kRm),
        id(core->config().self),
        at{wire::IpAddress::from_v4(0x0A000000 | address), wire::kUbUdpPort},
        memory(kMemory) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(address + i * 7 + (i >> 8));
    JfcConfig completions;
    completions.slots = cqes_.data();
    completions.slot_count = completions.depth = kSlots;
    completions.indices = &cq;
    EXPECT_EQ(core->create_jfc(completions, &jfc), Status::kOk);
    jfr = make_jfr(mode);
    jetty = make_jetty(mode, jfr, sends, o);
    datagram_jfr = make_jfr(Mode::kUm);
    datagram_jetty = make_jetty(Mode::kUm, datagram_jfr, datagrams, o);
    register_memory();
  }

  void register_memory() {
    SegmentConfig c;
    c.memory = memory.data();
    c.address = c.local_address = address();
    c.length = memory.size();
    c.token = {true, kToken};
    c.access = kAccessRead | kAccessWrite | kAccessAtomic;
    EXPECT_EQ(core->register_segment(c, &segment), Status::kOk);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory.data()); }

  uint32_t import(Instant now, const UbNode& peer) { return import(now, peer, mode); }
  uint32_t import(Instant now, const UbNode& peer, Mode its_mode) {
    TargetConfig c;
    c.instance = peer.id;
    c.id = its_mode == Mode::kUm ? peer.datagram_jetty : peer.jetty;
    c.mode = its_mode;
    c.path = {.link = link, .local = at, .remote = peer.at};
    uint32_t target = 0;
    EXPECT_EQ(core->add_target(now, c, &target), Status::kOk);
    return target;
  }

  /// A send ring and how far it was written.
  struct Ring {
    std::vector<Wqe> slots = std::vector<Wqe>(kSlots);
    QueueIndices indices{};
    std::unique_ptr<ZeroedMemory> work;
  };
  /// Makes a jetty whose send ring this is.
  uint32_t make_jetty(Mode its_mode, uint32_t its_jfr, Ring& ring, const UbOptions& o = {}) {
    ring.work = std::make_unique<ZeroedMemory>(Core<TestHost>::send_queue_work_bytes(kDepth));
    JettyConfig c;
    c.mode = its_mode;
    c.target_order = its_mode == Mode::kRc && o.rot;
    c.lower_layer_order = its_mode == Mode::kRc && o.rol;
    c.sq.slots = ring.slots.data();
    c.sq.slot_count = kSlots;
    c.sq.depth = kDepth;
    c.sq.indices = &ring.indices;
    c.sq.work = ring.work->get();
    c.sq.jfc = jfc;
    c.sq.err_timeout = o.err_timeout;
    c.jfr = its_jfr;
    uint32_t made = 0;
    EXPECT_EQ(core->create_jetty(c, &made), Status::kOk);
    return made;
  }
  /// Posts a request; who calls rings.
  Wqe& post(Ring& ring, WrOp op, uint32_t target, uint32_t length, uint32_t offset = 0) {
    const uint32_t slots = wqe_slots(op, 1, 0), at_slot = ring.indices.produced.load();
    UB_ASSERT(at_slot % kSlots + slots <= kSlots);
    Wqe& w = ring.slots[at_slot % kSlots];
    w = {};
    w.op = op;
    w.flags = kWrSignaled | kWrToken;
    w.slots = static_cast<uint8_t>(slots);
    w.sge_count = 1;
    w.user_ctx = ++posted_;
    w.length = length;
    w.target = target;
    w.sge = {address() + offset, length, segment.handle};
    ring.indices.produced.store(at_slot + slots);
    return w;
  }
  void post_receive(QueueIndices& indices, std::vector<Rqe>& slots, uint32_t offset, uint32_t length) {
    Rqe& r = slots[indices.produced.load() % kSlots];
    r = {};
    r.user_ctx = 1000 + offset;
    r.length = length;
    r.sge_count = r.slots = 1;
    r.sge[0] = {address() + offset, length, segment.handle};
    indices.produced.store(indices.produced.load() + 1);
  }
  std::vector<Cqe> poll() {
    std::vector<Cqe> all;
    for (; polled_ != cq.produced.load(); ++polled_) all.push_back(cqes_[polled_ % kSlots]);
    cq.consumed.store(polled_);
    return all;
  }

  const Mode mode;  // of `jetty`
  const InstanceId id;
  const wire::Endpoint at;
  std::vector<std::byte> memory;
  RegisteredSegment segment;
  uint32_t jfc = 0, jfr = 0, jetty = 0, datagram_jfr = 0, datagram_jetty = 0;
  Ring sends, datagrams;
  QueueIndices cq{}, receive_indices[2]{};
  std::vector<Rqe> receives[2] = {std::vector<Rqe>(kSlots), std::vector<Rqe>(kSlots)};

 private:
  static LinkConfig link_of(uint8_t address, const UbOptions& o) {
    LinkConfig wire = o.link;
    if (address == 2 && o.mtu_of_b != 0) wire.mtu = o.mtu_of_b;
    return wire;
  }
  static CoreConfig config(uint8_t address, const UbOptions& o) {
    CoreConfig c = o.core;
    if (address == 2) c.compact &= o.compact_at_b;
    if (address == 2) c.rol &= o.rol_at_b;
    if (address == 2) c.rtp_over_cna &= o.cna_at_b;
    c.seed = c.incarnation = address;
    c.self.uasid = address;
    c.self.eid.bytes[15] = address;
    return c;
  }
  uint32_t make_jfr(Mode its_mode) {
    const bool um = its_mode == Mode::kUm;
    JfrConfig c;
    c.slots = receives[um].data();
    c.slot_count = kSlots;
    c.indices = &receive_indices[um];
    c.mode = its_mode;
    c.jfc = jfc;
    uint32_t made = 0;
    EXPECT_EQ(core->create_jfr(c, &made), Status::kOk);
    return made;
  }

  std::vector<Cqe> cqes_ = std::vector<Cqe>(kSlots);
  uint64_t posted_ = 0;
  uint32_t polled_ = 0;
};

/// A packet of UB that left, decoded. Points into the frame, which stays where it is.
struct SeenPacket {
  wire::RtpHeader rtp;
  wire::TaPacket ta{};         // of data that is not fake
  wire::SackView sack{};       // of a selective acknowledgement
  size_t transport_bytes = 0;  // behind the transport header, without the ICRC
  bool sealed = false;         // the ICRC is right

  uint32_t psn() const { return rtp.psn.value(); }
  bool data() const { return rtp.is_data(); }
};

class UbPair : public CorePair<UbNode> {
 protected:
  explicit UbPair(const UbOptions& options = {}) : CorePair(options) {}

  /// Both sides have an open channel.
  void connect() {
    to_b = a.import(now, b);
    if (a.mode == Mode::kRc) {
      ASSERT_EQ(a.core->bind(now, a.jetty, to_b), Status::kOk);
    }
    exchange();
    ASSERT_TRUE(channel(a).is_up());
    ASSERT_TRUE(channel(b).is_up());
  }
  const CoreState& state(const UbNode& n) const { return n.core->state(); }
  /// Its first one; there is no other with one lane.
  const tp::Channel& channel(const UbNode& n) const { return state(n).channels[1]; }

  /// Posts a request of a to b; the bytes go to or come from the second half of b's memory.
  Wqe& request(WrOp op, uint32_t length, uint32_t offset = 0) {
    Wqe& w = a.post(a.sends, op, to_b, length, offset);
    w.remote_address = b.address() + UbNode::kMemory / 2;
    w.token_id = b.segment.token_id;
    w.token_value = UbNode::kToken;
    a.core->on_posted(now, a.jetty);
    return w;
  }
  bool arrived(uint32_t length, uint32_t offset = 0) const {
    return std::equal(a.memory.begin() + offset, a.memory.begin() + offset + length,
                      b.memory.begin() + UbNode::kMemory / 2);
  }

  static SeenPacket parse(const Bytes& frame) {
    wire::NetHeader net;
    SeenPacket p;
    EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    EXPECT_EQ(wire::RtpHeader::read(net.tph, net.tp_size(), p.rtp), wire::Drop::kNone);
    p.sealed = wire::icrc_matches(net);
    const std::byte* rest = net.tph + wire::RtpHeader::kSize;
    p.transport_bytes = static_cast<size_t>(net.end - rest);
    if (p.rtp.opcode == wire::TpOpcode::kSack) {
      EXPECT_EQ(wire::SackView::read(rest, p.transport_bytes, p.sack), wire::Drop::kNone);
    }
    if (p.rtp.is_data() && !p.rtp.fake) {
      EXPECT_EQ(wire::parse_transaction(rest, net.end, p.rtp.padding, true, p.ta), wire::Drop::kNone);
    }
    return p;
  }
  /// What a node would send now, and has not; channels only. It stays in the host until it is delivered or cleared.
  std::vector<SeenPacket> sent_by(UbNode& node, Acks acks = Acks::kNow) {
    while (node.core->poll_packets(now, 64, acks) != 0) {
    }
    std::vector<SeenPacket> all;
    for (const Bytes& frame : node.host.frames) all.push_back(parse(frame));
    return all;
  }
  /// The same, and all of it is lost.
  std::vector<SeenPacket> lost_from(UbNode& node) {
    std::vector<SeenPacket> all = sent_by(node);
    lost_.insert(lost_.end(), std::make_move_iterator(node.host.frames.begin()),
                 std::make_move_iterator(node.host.frames.end()));
    node.host.frames.clear();
    return all;
  }
  static std::vector<uint32_t> psns(const std::vector<SeenPacket>& packets) {
    std::vector<uint32_t> all;
    for (const SeenPacket& p : packets) all.push_back(p.psn());
    return all;
  }
  /// Lets time pass up to the next deadline of this node, and no packet.
  void wake(UbNode& node) {
    now = later(now, node.core->next_deadline());
    node.core->on_timer(now);
  }
  /// Until its retransmission timeout.
  void retransmission_timeout(UbNode& node) {
    ASSERT_FALSE(channel(node).rto_at.is_never());
    const uint64_t before = count(node, Counter::kTpTimeout);
    while (count(node, Counter::kTpTimeout) == before) wake(node);
  }

  uint32_t to_b = 0;  // a's target

 private:
  std::vector<Bytes> lost_;  // what was decoded points here
};

}  // namespace ub
