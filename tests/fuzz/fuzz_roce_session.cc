// SPDX-License-Identifier: Apache-2.0
// fuzz_roce_session.cc - a peer without rules against a Core with queue pairs in every state, connections under way, a
// shared receive queue and memory that may answer later. The input says what the peer sends, mostly packets that are
// almost right, and what the application does in between.
//
// Whatever comes: no byte changes that an rkey did not open, what is posted completes as roce_app.h says, another
// application on the same Core is not seen, not touched and served, and in the end all tables are empty.
#include <sys/prctl.h>

#include <algorithm>

#include "lib/base/crc32.h"
#include "lib/transport/roce/wire/icrc.h"
#include "tests/bench/core_pair.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/roce_app.h"

namespace ub::roce {
namespace {

constexpr Opcode kOpcodes[] = {
#define X(id, code, name, shape) Opcode::k##id,
    UB_ROCE_OPCODES(X)
#undef X
};
constexpr uint32_t kKey = 0x5A5, kQkey = 0x1234;
constexpr uint16_t kListenPort = 7;
const Gid kSelf = wire::IpAddress::from_v4(0x0A000001), kPeer = wire::IpAddress::from_v4(0x0A000002),
          kStranger = wire::IpAddress::from_v4(0x0A000003);

CoreConfig config_of(bool dcqcn) {
  CoreConfig c;
  c.self = {{}, 1};
  c.max_queues = 16;
  c.max_channels = c.max_peers = c.max_links = c.max_targets = c.max_groups = c.read_jobs = 4;
  c.max_segments = 16;
  c.max_jfc = 4;
  c.kept_packets = 32;
  c.slow_memory = true;
  c.roce = {.max_qps = 10, .max_address_handles = 4, .max_listeners = 2, .max_connections = 8};
  c.roce.dcqcn = dcqcn;
  return c;
}

/// What a step to that state has to say.
uint32_t needed(QpType type, QpState to) {
  const bool rc = type == QpType::kRc;
  if (to == QpState::kInit) return kQpPkey | kQpPort | (rc ? kQpAccess : kQpQkey);
  if (to == QpState::kRtr && rc)
    return kQpPath | kQpMtu | kQpDestination | kQpReceivePsn | kQpReadsServed | kQpRnrTimer;
  if (to == QpState::kRts) return kQpSendPsn | (rc ? kQpTimeout | kQpRetries | kQpRnrRetries | kQpReadsInFlight : 0);
  return 0;
}

class World {
 public:
  World(uint32_t secret, bool dcqcn)
      : arena_(FuzzCore::arena_bytes(config_of(dcqcn))),
        core_(config_of(dcqcn), arena_.data(), host_),
        app_((add_links(), core_), 1, kKey, 32),
        other_(core_, 2, kKey, 64) {
    for (uint32_t i = 0; i < kSecretBytes; ++i) host_.secret[i] = static_cast<uint8_t>(secret >> (i % 4 * 8) ^ i * 37);
    std::memcpy(other_.memory.data() + Memory::kLocal, host_.secret, kSecretBytes);
    std::memcpy(other_.memory.data() + Memory::kOpen, host_.secret, kSecretBytes);
    other_.memory.accept_changes();
    qps_[1].shares = qps_[2].shares = true;
    qps_[4].type = QpType::kUd;
    for (QueuePair& q : qps_) app_.all.push_back(&q);
    for (QueuePair& q : pair_) other_.all.push_back(&q);
    for (QueuePair& q : qps_) app_.create(q);
    for (QueuePair& q : pair_) other_.create(q);
    for (QueuePair& q : pair_) bring_up(q, QpState::kRts, kLoopLink);
    bring_up(qps_[0], QpState::kRts, kPeerLink);
    bring_up(qps_[1], QpState::kRtr, kPeerLink);
    bring_up(qps_[2], QpState::kInit, kPeerLink);
    bring_up(qps_[3], QpState::kInit, kPeerLink);
    bring_up(qps_[4], QpState::kRts, kPeerLink);
    const AddressHandleConfig ah{{kPeerLink, kSelf, kPeer, 0}, 1};
    for (uint32_t& handle : handles_) UB_ASSERT(roce().create_ah(ah, &handle) == Status::kOk);
    UB_ASSERT(roce().listen({.port = kListenPort, .owner = 1}, &listener_) == Status::kOk);
    connect(qps_[2]);
  }

  void run(Input& in) {
    while (!in.empty()) {
      step(in);
      turn();
    }
  }

  void check() {
    app_.memory.check(app_.is_open());
    check_other();
    for (Owner owner : {1, 2}) flush(owner == 1 ? app_ : other_);
    tear_down();
  }

 private:
  Engine<FuzzHost>& roce() { return *core_.roce(); }
  State& state() { return core_.roce()->state(); }
  const Qp& record(const QueuePair& q) { return state().qps[find_qp(core_.state(), q.qpn)]; }
  QueuePair& any_qp(Input& in) { return qps_[in.below(5)]; }

  void add_links() {
    UB_ASSERT(core_.add_link({.mtu = 4096}) == kPeerLink);
    UB_ASSERT(core_.add_link({.mtu = 4096}) == kLoopLink);
  }

  // ---- what the application does -----------------------------------------------------------------------------------

  QpAttributes usual(const QueuePair& q, QpState to, uint32_t link) {
    QpAttributes a;
    a.qp_state = to;
    a.qkey = kQkey;
    a.qp_access_flags = kAccessRead | kAccessWrite | kAccessAtomic;
    a.ah_attr = {link, kSelf, link == kLoopLink ? kSelf : kPeer, 0};
    a.dest_qp_num = &q == &pair_[0] ? pair_[1].qpn : &q == &pair_[1] ? pair_[0].qpn : 99;
    a.path_mtu = 1;
    a.rq_psn = a.sq_psn = 0xFFFFFC;  // soon to wrap
    a.max_rd_atomic = a.max_dest_rd_atomic = 2;
    a.min_rnr_timer = 1;
    a.timeout = 8;
    a.retry_cnt = a.rnr_retry = 7;
    return a;
  }
  void bring_up(QueuePair& q, QpState to, uint32_t link) {
    for (QpState s : {QpState::kInit, QpState::kRtr, QpState::kRts})
      if (s <= to) UB_ASSERT(roce().modify_qp(now_, q.qpn, usual(q, s, link), needed(q.type, s)) == Status::kOk);
  }

  void modify(Input& in) {
    QueuePair& q = any_qp(in);
    const auto to = static_cast<QpState>(in.below(kQpStates));
    QpAttributes a = usual(q, to, kPeerLink);
    uint32_t mask = needed(q.type, to);
    const uint32_t changes = in.take<uint8_t>();
    if ((changes & 1) != 0) a.path_mtu = static_cast<uint8_t>(in.below(8));
    if ((changes & 2) != 0) a.max_dest_rd_atomic = static_cast<uint8_t>(in.below(18));
    if ((changes & 4) != 0) a.max_rd_atomic = static_cast<uint8_t>(in.below(18));
    if ((changes & 8) != 0) a.timeout = a.min_rnr_timer = static_cast<uint8_t>(in.below(33));
    if ((changes & 16) != 0) a.retry_cnt = a.rnr_retry = static_cast<uint8_t>(in.below(9));
    if ((changes & 32) != 0) a.ah_attr.sgid = a.ah_attr.dgid = Gid{.bytes = {0xFE, 0x80, 1}};
    if ((changes & 64) != 0) mask = in.take<uint16_t>() & kAllQpAttributes;
    if ((changes & 128) != 0) a.qp_access_flags = static_cast<uint8_t>(in.below(16));
    app_.poll_all(now_);
    const bool was_used = record(q).state != QpState::kReset;
    const Status status = roce().modify_qp(now_, q.qpn, a, mask);
    if (status == Status::kOk && to == QpState::kReset && was_used) app_.forget(q);
  }

  void post(Input& in) {
    QueuePair& q = any_qp(in);
    Wqe e{};
    e.op = static_cast<WrOp>(in.below(15));
    const uint32_t how = in.take<uint8_t>(), length = in.take<uint16_t>() % 4200;
    e.flags = static_cast<uint8_t>(how & (kWrSignaled | kWrFence | kWrSolicited));
    const bool brings = e.op == WrOp::kRead || (e.op >= WrOp::kCompareSwap && e.op <= WrOp::kFetchXor);
    if ((how & kWrInline) != 0 && !brings) e.flags |= kWrInline;
    e.length = e.op != WrOp::kRead && brings ? 8 : (e.flags & kWrInline) != 0 ? length % 200 : length;
    e.sge_count = (e.flags & kWrInline) != 0 ? 0 : 1;
    if (e.sge_count != 0) e.sge = brings ? app_.landing(64, e.length) : app_.source(64, e.length);
    if ((how & 16) != 0) e.sge = app_.open_sge(64, e.length);
    if ((how & 32) != 0) ++e.sge.segment;
    e.target = handles_[how >> 6 & 1];
    e.token_id = q.type == QpType::kUd ? 99 : make_rkey(7, kKey);
    e.remote_address = Memory::kRemote;
    e.immediate = how;
    app_.post(now_, q, e, 5);
  }

  void post_receive(Input& in) {
    QueuePair& q = any_qp(in);
    const uint32_t how = in.take<uint8_t>();
    Sge sge = app_.landing(how * 8, how % 4 == 0 ? how : 16 * how);
    if ((how & 15) == 15) ++sge.segment;
    if ((how & 15) == 14) sge = app_.open_sge(0, 2000);
    app_.post_receive(app_.receives_of(q), sge);
    core_.on_posted(now_, q.qpn);
  }

  void renew(Input& in) {
    QueuePair& q = any_qp(in);
    app_.destroy(now_, q);
    // A record is not free before its copies are done.
    if (state().qps.in_use() == state().qps.capacity()) host_.finish_copies(core_, now_);
    app_.create(q);
    const QpState to[] = {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts};
    const QpState wanted = to[in.below(4)];
    if (wanted != QpState::kReset) bring_up(q, wanted, kPeerLink);
  }

  void change_memory(Input& in) {
    if (in.below(2) == 0 && app_.is_open()) {
      host_.lose_pending();
      app_.close_segment(now_);
    } else if (!app_.is_open()) {
      app_.open_segment();
    }
  }

  void change_host(Input& in) {
    const uint32_t how = in.take<uint8_t>();
    if (how % 8 == 0) host_.slow = !host_.slow;
    if (how % 8 == 1) host_.full = !host_.full;
    if (how % 8 == 2) host_.lost = !host_.lost;
    if (how % 8 == 3) host_.finish_copies(core_, now_);
    if (how % 8 > 3 && host_.pending_copies() != 0) host_.finish_copy(core_, now_, (how >> 3) % host_.pending_copies());
  }

  void change_handles(Input& in) {
    uint32_t& handle = handles_[in.below(2)];
    const Status status = roce().destroy_ah(handle);
    UB_ASSERT((status == Status::kOk) == (handle != 0));
    handle = 0;
    if (in.below(2) != 0) UB_ASSERT(roce().create_ah({{kPeerLink, kSelf, kStranger, 0}, 1}, &handle) == Status::kOk);
  }

  // ---- connections --------------------------------------------------------------------------------------------------

  void connect(const QueuePair& q) {
    ConnectConfig c;
    c.qpn = q.qpn;
    c.path = {kPeerLink, kSelf, kPeer, 0};
    c.local_port = 8;
    c.remote_port = 9;
    c.path_mtu = 1;
    uint32_t id;
    (void)roce().connect(now_, c, &id);
  }
  uint32_t connection_id(uint32_t index) { return state().connections[index].generation << 16 | index; }

  void use_connections(Input& in) {
    const QueuePair& q = any_qp(in);
    const uint32_t id = connection_id(in.below(9)), what = in.below(7);
    AcceptConfig accept;
    ConnectionEvent events[8];
    switch (what) {
      case 0:
        return connect(q);
      case 1:
        accept.qpn = q.qpn;
        (void)roce().accept(now_, id, accept);
        return;
      case 2:
        (void)roce().reject(now_, id);
        return;
      case 3:
        (void)roce().disconnect(now_, id);
        return;
      case 4:
        if (roce().stop_listening(now_, listener_) == Status::kOk) listener_ = 0;
        return;
      case 5:
        if (listener_ == 0) (void)roce().listen({.port = kListenPort, .owner = 1}, &listener_);
        return;
      default:
        roce().poll_connection_events(events);
    }
  }

  // ---- what the peer sends ------------------------------------------------------------------------------------------

  struct Way {
    Gid from = kPeer;
    uint8_t ecn = wire::kEcnNotCapable;
    bool damaged = false;
  };

  void send(const std::vector<std::byte>& packet, const Way& way) {
    wire::NetTemplate headers;
    headers.init({}, {}, {way.from, 0xC001}, {kSelf, kUdpPort}, 0);
    std::vector<std::byte> frame(headers.size + packet.size() + wire::kIcrcSize);
    headers.write(frame.data(), packet.size() + wire::kIcrcSize, way.ecn);
    std::copy(packet.begin(), packet.end(), frame.begin() + headers.size);
    std::byte* end = frame.data() + frame.size() - wire::kIcrcSize;
    const std::byte* l3 = frame.data() + wire::kEthSize;
    if (packet.size() >= Bth::kSize) wire::icrc_store(end, icrc_compute(l3, static_cast<size_t>(end - l3), false));
    if (way.damaged) *end ^= std::byte{1};
    core_.on_packet(now_, kPeerLink, frame);
  }
  void send(Packet p, size_t payload_bytes, const Way& way) {
    p.bth.padding ^= -payload_bytes & 3;
    std::vector<std::byte> packet(kMaxHeaderSize);
    packet.resize(write_headers(p, packet.data()));
    for (size_t i = 0; i < payload_bytes; ++i) packet.push_back(static_cast<std::byte>(++sent_bytes_));
    packet.resize(packet.size() + (-payload_bytes & 3));
    send(packet, way);
  }

  /// As many bytes as a packet of this kind has to have now.
  uint32_t right_length(Input& in, const Packet& p, const Qp& qp) {
    if (!p.has(kShapePayload)) return 0;
    if (!p.has(kShapeRequest)) {
      if (qp.req.head == qp.req.tail) return qp.req.mtu;
      const SentRequest& r = qp.requests[qp.req.head & qp.work_mask];
      const uint32_t left = r.length - std::min(r.length, qp.req.oldest.distance(r.first_psn) * qp.req.mtu);
      return p.has(kShapeLast) ? left : qp.req.mtu;
    }
    if (!p.has(kShapeLast)) return qp.resp.mtu;
    if (p.has(kShapeWrite) && !p.has(kShapeFirst)) return std::min<uint32_t>(qp.resp.write_left, kMaxPathMtu);
    return in.take<uint8_t>();
  }

  void packet(Input& in) {
    const QueuePair& q = any_qp(in);
    const Qp& qp = record(q);
    Packet p{};
    p.bth.opcode = kOpcodes[in.below(std::size(kOpcodes))];
    p.shape = packet_shape(p.bth.opcode);
    p.bth.dest_qp = q.qpn;
    p.bth.ack_req = true;
    p.bth.psn = p.has(kShapeRequest) ? qp.resp.expected : qp.req.oldest;
    uint32_t payload = right_length(in, p, qp);
    p.reth = {Memory::kRemote + Memory::kOpen, app_.rkey(0), payload};
    if (p.has(kShapeWrite) && !p.has(kShapeLast)) p.reth.length += 1 + in.take<uint16_t>() % 1000;
    if (p.bth.opcode == Opcode::kRcReadRequest) p.reth.length = in.take<uint16_t>() % (Memory::kOpenBytes + 8);
    p.atomic = {p.reth.address, p.reth.rkey, 1, 0};
    p.deth = {kQkey, 99};
    p.aeth = {Syndrome::ack(), qp.req.last_ssn};
    p.invalidated_rkey = make_rkey(1, kKey + 1);
    Way way;
    const uint32_t changes = in.take<uint8_t>();
    if ((changes & 1) != 0) p.bth.psn += in.take<int8_t>();
    if ((changes & 2) != 0) change_flags(in, p, way);
    if ((changes & 4) != 0) p.reth.rkey = p.atomic.rkey = p.invalidated_rkey = any_rkey(in);
    if ((changes & 8) != 0) p.reth.address = p.atomic.address = any_address(in);
    if ((changes & 16) != 0) p.reth.length = in.below(4) == 0 ? in.take<uint32_t>() : in.take<uint16_t>();
    if ((changes & 32) != 0) p.aeth = {{in.take<uint8_t>()}, p.aeth.msn + in.take<int8_t>()};
    if ((changes & 64) != 0) payload = in.take<uint16_t>() % 4200;
    if ((changes & 128) != 0) p.bth.dest_qp = in.below(2) == 0 ? pair_[0].qpn : in.take<uint16_t>();
    send(p, payload, way);
  }
  void change_flags(Input& in, Packet& p, Way& way) {
    const uint32_t flags = in.take<uint8_t>();
    p.bth.ack_req = (flags & 1) != 0;
    p.bth.solicited = (flags & 2) != 0;
    if ((flags & 4) != 0) p.bth.padding = 3;
    if ((flags & 8) != 0) p.bth.pkey = 1;
    if ((flags & 16) != 0) way.ecn = wire::kEcnCe;
    if ((flags & 32) != 0) way.from = kStranger;
    if ((flags & 64) != 0) way.damaged = true;
    if ((flags & 128) != 0) p.deth.qkey = 1;
  }
  uint32_t any_rkey(Input& in) {
    const uint32_t which = in.below(8);
    if (which < 3) return app_.rkey(which);
    return which < 6 ? other_.rkey(which - 3) : in.take<uint32_t>();
  }
  uint64_t any_address(Input& in) {
    const uint64_t near[] = {Memory::kOpen, Memory::kOpen + Memory::kOpenBytes, Memory::kReadOnly,
                             Memory::kReadOnly + Memory::kReadable, Memory::kLocal};
    const uint32_t which = in.below(std::size(near) + 1);
    if (which == std::size(near)) return in.take<uint64_t>();
    return Memory::kRemote + near[which] + static_cast<uint64_t>(int64_t{in.take<int16_t>()});
  }

  void raw_packet(Input& in) {
    std::vector<std::byte> bytes(1 + in.take<uint8_t>());
    in.take(bytes.data(), bytes.size());
    send(bytes, {});
  }

  void management(Input& in) {
    std::byte mad[kMadSize] = {};
    write_management(in, std::span<std::byte, kMadSize>(mad));
    for (uint32_t n = in.below(4); n != 0; --n) mad[in.take<uint8_t>()] ^= in.take<std::byte>();
    Packet p{};
    p.bth.opcode = Opcode::kUdSendOnly;
    p.bth.dest_qp = kGsiQp;
    p.deth = {kGsiQkey, kGsiQp};
    std::vector<std::byte> packet(kMaxHeaderSize);
    packet.resize(write_headers(p, packet.data()));
    packet.insert(packet.end(), mad, mad + sizeof mad);
    send(packet, {});
  }
  void write_management(Input& in, std::span<std::byte, kMadSize> mad) {
    const uint32_t index = in.below(9), id = 1 + in.below(8), what = in.below(7);
    const Connection& c = state().connections[index];
    const uint32_t ours = connection_id(index), theirs = c.cm.remote_comm_id != 0 ? c.cm.remote_comm_id : id;
    const uint64_t transaction = c.cm.transaction_id;
    switch (what) {
      case 0:
        return write_request(in, id, mad);
      case 1: {
        CmRep rep;
        rep.local_comm_id = theirs;
        rep.remote_comm_id = ours;
        rep.qpn = 99;
        rep.responder_resources = rep.initiator_depth = 4;
        return write_cm({CmType::kRep, transaction}, rep, mad);
      }
      case 2:
        return write_cm({CmType::kRtu, transaction}, CmRtu{theirs, ours, {}}, mad);
      case 3: {
        CmRej rej;
        rej.local_comm_id = theirs;
        rej.remote_comm_id = ours;
        rej.about = static_cast<CmAbout>(in.below(3));
        return write_cm({CmType::kRej, transaction}, rej, mad);
      }
      case 4:
        return write_cm({CmType::kMra, transaction}, CmMra{theirs, ours, CmAbout::kReq, 20, {}}, mad);
      case 5:
        return write_cm({CmType::kDreq, transaction}, CmDreq{theirs, ours, c.qpn, {}}, mad);
      default:
        return write_cm({CmType::kDrep, transaction}, CmDrep{theirs, ours, {}}, mad);
    }
  }
  static void write_request(Input& in, uint32_t id, std::span<std::byte, kMadSize> mad) {
    std::byte data[CmReq::kPrivateDataSize] = {};
    CmIpHeader{{kPeer, 40000}, kSelf}.write(data);
    CmReq req;
    req.local_comm_id = id;
    req.service_id = service_id_of_port(in.below(8) == 0 ? 8 : kListenPort);
    req.qpn = 99;
    req.responder_resources = req.initiator_depth = 4;
    req.starting_psn = Psn(0xFFFFFC);
    req.path_mtu_code = static_cast<uint8_t>(1 + in.below(5));
    req.ack_timeout = 8;
    req.private_data = data;
    write_cm({CmType::kReq, id}, req, mad);
  }

  // ---- time --------------------------------------------------------------------------------------------------------

  void turn() {
    while (core_.poll_packets(now_, 64) != 0) {
    }
    while (!host_.frames.empty()) {
      const std::vector<std::byte> frame = std::move(host_.frames.front());
      host_.frames.pop_front();
      core_.on_packet(now_, kLoopLink, frame);
    }
    Event events[16];
    while (core_.poll_events(events) != 0) {
    }
  }
  void wait(Duration time) {
    now_ += time;
    if (core_.next_deadline() <= now_) core_.on_timer(now_);
  }
  void pass_time(Input& in) {
    const uint32_t how = in.take<uint8_t>();
    if (how < 200) return wait(microseconds(how));
    if (how < 240) return wait(milliseconds(how - 200));
    if (how < 250) return wait(seconds(how - 240));
    wait_for_deadline();
  }
  void wait_for_deadline() {
    const Instant next = core_.next_deadline();
    if (!next.is_never()) wait(later(next, now_) - now_);
  }

  void step(Input& in) {
    switch (in.below(22)) {
      case 0:
        return raw_packet(in);
      case 1:
      case 2:
        return management(in);
      case 3:
        return pass_time(in);
      case 4:
      case 5:
        return post(in);
      case 6:
        return post_receive(in);
      case 7:
        return modify(in);
      case 8:
        return renew(in);
      case 9:
        return change_memory(in);
      case 10:
      case 11:
        return change_host(in);
      case 12:
        return change_handles(in);
      case 13:
        return use_connections(in);
      case 14:
        app_.poll(now_, in.below(16));
        return;
      default:
        return packet(in);
    }
  }

  // ---- in the end ---------------------------------------------------------------------------------------------------

  /// Two queue pairs of another application do what they always could, though memory of the first has not answered.
  void check_other() {
    other_.memory.check(false);
    host_.full = host_.lost = false;
    const size_t theirs = host_.pending_copies();
    QueuePair &x = pair_[0], &y = pair_[1];
    other_.post_receive(*y.own, other_.landing(0, 2000));
    Wqe e{};
    e.flags = kWrSignaled;
    e.sge_count = 1;
    e.length = 1000;
    e.token_id = other_.rkey(0);
    e.remote_address = Memory::kRemote + Memory::kOpen;
    e.op = WrOp::kSend;
    e.sge = other_.source(0, 1000);
    other_.post(now_, x, e, 0);
    e.op = WrOp::kWrite;
    other_.post(now_, x, e, 0);
    e.op = WrOp::kRead;
    e.sge = other_.landing(4000, 1000);
    other_.post(now_, x, e, 0);
    for (uint32_t i = 0; i < 2000 && !x.posted.empty(); ++i) {
      turn();
      while (host_.pending_copies() > theirs) host_.finish_copy(core_, now_, theirs);
      turn();
      other_.poll_all(now_);
      wait(microseconds(10));
    }
    UB_ASSERT(x.posted.empty() && !x.failed && y.own->posted.empty());
    const std::byte* memory = other_.memory.data();
    for (uint32_t at : {Memory::kOpen, Memory::kLanding, Memory::kLanding + 4000})
      UB_ASSERT(std::memcmp(memory + at, memory + Memory::kLocal, 1000) == 0);
    other_.memory.check(true);
    UB_ASSERT(memmem(app_.memory.data(), Memory::kBytes, host_.secret, kSecretBytes) == nullptr);
  }

  /// In ERROR all that is posted comes back.
  void flush(App& app) {
    host_.finish_copies(core_, now_);
    host_.slow = false;
    for (QueuePair* q : app.all) {
      if (record(*q).state == QpState::kReset) continue;
      UB_ASSERT(roce().modify_qp(now_, q->qpn, usual(*q, QpState::kError, kPeerLink), 0) == Status::kOk);
    }
    for (uint32_t i = 0; i < 100; ++i) {
      turn();
      app.poll_all(now_);
      wait(microseconds(1));
    }
    for (QueuePair* q : app.all) {
      if (record(*q).state == QpState::kReset) continue;
      UB_ASSERT(q->indices->retired.load() == q->posted_ever);
      for (const QueuePair::Posted& p : q->posted) UB_ASSERT(!p.signaled);
      if (q->own) UB_ASSERT(q->own->posted.empty());
    }
  }

  void tear_down() {
    for (QueuePair* q : app_.all) app_.destroy(now_, *q);
    for (QueuePair* q : other_.all) other_.destroy(now_, *q);
    app_.destroy_rest(now_);
    other_.destroy_rest(now_);
    for (uint32_t handle : handles_)
      if (handle != 0) UB_ASSERT(roce().destroy_ah(handle) == Status::kOk);
    if (listener_ != 0) UB_ASSERT(roce().stop_listening(now_, listener_) == Status::kOk);
    for (uint32_t i = 1; i <= state().connections.high_water(); ++i) (void)roce().disconnect(now_, connection_id(i));
    for (uint32_t i = 0; i < 1000 && !core_.next_deadline().is_never(); ++i) {
      turn();
      wait_for_deadline();
    }
    turn();
    const CoreState& s = core_.state();
    UB_ASSERT(core_.next_deadline().is_never() && !core_.has_packets() && s.held.orphan_count() == 0);
    UB_ASSERT(s.jfcs.in_use() == 0 && s.jfrs.in_use() == 0 && s.segments.in_use() == 0 && s.receives.in_use() == 0);
    UB_ASSERT(s.kept.in_use() == 0 && state().kept.in_use() == 0 && host_.open_frames() == 0);
    const State& r = state();
    UB_ASSERT(r.qps.in_use() == 0 && r.arriving.in_use() == 0 && r.address_handles.in_use() == 0);
    UB_ASSERT(r.connections.in_use() == 0 && r.listeners.in_use() == 0);
    for (uint32_t i = 0; i < kRequesterBuckets; ++i) UB_ASSERT(r.requesters[i] == 0);
  }

  Instant now_{1'000'000};
  FuzzHost host_;
  bench::Pages arena_;
  FuzzCore core_;
  App app_, other_;
  QueuePair qps_[5], pair_[2];
  uint32_t handles_[2] = {}, listener_ = 0;
  uint8_t sent_bytes_ = 0;
};

}  // namespace
}  // namespace ub::roce

// Huge pages would be cleared for every input, for the sake of a few touched lines.
extern "C" int LLVMFuzzerInitialize(int*, char***) { return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ub;
  const uint32_t secret = crc32_final(crc32_update(crc32_init(), reinterpret_cast<const std::byte*>(data), size));
  Input in(data, size);
  roce::World world(secret, in.below(2) != 0);
  world.run(in);
  world.check();
  return 0;
}
