// SPDX-License-Identifier: Apache-2.0
// UD queue pairs and connections by management datagrams, between two Cores.
#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

constexpr uint32_t kQkey = 0x11111111;

class DatagramTest : public EnginePair {
 protected:
  std::vector<CrStatus> statuses(TestQp& q) {
    std::vector<CrStatus> all;
    for (const Cqe& c : q.poll()) all.push_back(c.status);
    return all;
  }
  void ready(TestQp& q) {
    QpAttributes to;
    to.qp_state = QpState::kInit;
    to.qkey = kQkey;
    ASSERT_EQ(q.node.roce().modify_qp(now, q.qpn, to, kQpPkey | kQpPort | kQpQkey), Status::kOk);
    to.qp_state = QpState::kRtr;
    ASSERT_EQ(q.node.roce().modify_qp(now, q.qpn, to, 0), Status::kOk);
    to.qp_state = QpState::kRts;
    ASSERT_EQ(q.node.roce().modify_qp(now, q.qpn, to, kQpSendPsn), Status::kOk);
  }
  uint32_t handle(TestNode& from, TestNode& to) {
    uint32_t ah = 0;
    AddressHandleConfig config;
    config.attributes = {from.link, from.gid, to.gid, 0};
    EXPECT_EQ(from.roce().create_ah(config, &ah), Status::kOk);
    return ah;
  }
  Wqe& post(TestQp& x, uint32_t bytes, uint32_t ah, uint32_t qpn, uint32_t qkey = kQkey) {
    Wqe& w = x.post(WrOp::kSendImm, 0, bytes);
    w.target = ah;
    w.token_id = qpn;
    w.token_value = qkey;
    w.immediate = 0x12345678;
    return w;
  }
};

TEST_F(DatagramTest, arrives_behind_forty_bytes) {
  for (bool slow : {false, true}) {
    a.host.slow = b.host.slow = slow;
    TestQp x(a, {.type = QpType::kUd}), y(b, {.type = QpType::kUd});
    ready(x);
    ready(y);
    fill(x, 1);
    y.post_receive(1000, 3000);
    post(x, 2001, handle(a, b), y.qpn);
    x.ring(now);
    exchange();
    const auto sent = x.poll(), received = y.poll();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].status, CrStatus::kSuccess);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].status, CrStatus::kSuccess);
    EXPECT_EQ(received[0].opcode, CrOpcode::kSendImm);
    EXPECT_EQ(received[0].immediate, 0x12345678u);
    EXPECT_EQ(received[0].length, 2041u);
    EXPECT_EQ(received[0].remote_id, x.qpn);
    EXPECT_EQ(std::memcmp(received[0].remote_eid, a.gid.bytes.data(), 16), 0);
    EXPECT_TRUE(same(y, 1040, x, 0, 2001));
    EXPECT_EQ(y.memory[1020], std::byte{0x45});  // the IPv4 header, in the second half of the area
    EXPECT_EQ(y.memory[1039], a.gid.is_v4() ? std::byte{2} : std::byte{0});
  }
}

TEST_F(DatagramTest, link_of_sockets_has_one_source_port) {
  a.link = a.core->add_link({.mtu = 4096, .roce_port = kUdpPort});
  TestQp x(a, {.type = QpType::kUd});
  ready(x);
  post(x, 100, handle(a, b), 5);
  x.ring(now);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 1u);
  EXPECT_EQ(source_port(a.host.frames[0]), kUdpPort);
}

TEST_F(DatagramTest, drops_what_does_not_fit) {
  TestQp x(a, {.type = QpType::kUd}), y(b, {.type = QpType::kUd});
  ready(x);
  ready(y);
  const uint32_t ah = handle(a, b);
  post(x, 10, ah, y.qpn);
  x.ring(now);
  exchange();
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoReceive), 1u);
  y.post_receive(0, 100);
  post(x, 61, ah, y.qpn);
  post(x, 10, ah, y.qpn, kQkey + 1);
  x.ring(now);
  exchange();
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoFit), 1u);
  EXPECT_EQ(count(b, Counter::kRoceRxDropBadQkey), 1u);
  post(x, 60, ah, y.qpn);
  x.ring(now);
  exchange();
  EXPECT_EQ(x.poll().size(), 4u);
  EXPECT_EQ(y.poll().size(), 1u);
}

TEST_F(DatagramTest, an_element_that_cannot_be) {
  TestQp x(a, {.type = QpType::kUd}), y(b, {.type = QpType::kUd});
  ready(x);
  post(x, 4097, handle(a, b), y.qpn);
  x.ring(now);
  exchange();
  EXPECT_EQ(x.poll().at(0).status, CrStatus::kLocLen);
  TestQp z(a, {.type = QpType::kUd});
  ready(z);
  post(z, 10, 77, y.qpn);
  z.ring(now);
  exchange();
  EXPECT_EQ(z.poll().at(0).status, CrStatus::kLocOperation);
  EXPECT_EQ(a.roce().destroy_ah(77), Status::kInvalid);
}

// 10.3.1.7: what fails here ends sending, and all that is posted comes back, until it is told to go on.
TEST_F(DatagramTest, receives_although_a_send_failed) {
  for (bool slow : {false, true}) {
    a.host.slow = b.host.slow = slow;
    TestQp x(a, {.type = QpType::kUd}), y(b, {.type = QpType::kUd});
    ready(x);
    ready(y);
    const uint32_t there = handle(a, b), back = handle(b, a);
    post(x, 10, there, y.qpn);
    post(x, 4097, there, y.qpn);
    post(x, 10, there, y.qpn);
    x.ring(now);
    y.post_receive(0, 100);
    exchange();
    EXPECT_EQ(statuses(x), (std::vector{CrStatus::kSuccess, CrStatus::kLocLen, CrStatus::kWrFlush}));
    EXPECT_EQ(state_of(x), QpState::kSqe);
    EXPECT_EQ(y.poll().size(), 1u);
    post(x, 10, there, y.qpn);
    x.ring(now);
    exchange();
    EXPECT_EQ(statuses(x), std::vector{CrStatus::kWrFlush});

    x.post_receive(0, 100);
    post(y, 10, back, x.qpn);
    y.ring(now);
    exchange();
    EXPECT_EQ(x.poll().at(0).status, CrStatus::kSuccess);
    EXPECT_EQ(y.poll().at(0).status, CrStatus::kSuccess);

    QpAttributes to;
    to.qp_state = QpState::kRts;
    ASSERT_EQ(a.roce().modify_qp(now, x.qpn, to, 0), Status::kOk);
    y.post_receive(0, 100);
    post(x, 10, there, y.qpn);
    x.ring(now);
    exchange();
    EXPECT_EQ(statuses(x), std::vector{CrStatus::kSuccess});
    EXPECT_EQ(y.poll().at(0).status, CrStatus::kSuccess);
  }
}

TEST_F(DatagramTest, sending_goes_on_only_when_all_has_come_back) {
  TestQp x(a, {.type = QpType::kUd}), y(b, {.type = QpType::kUd});
  ready(x);
  post(x, 4097, handle(a, b), y.qpn);
  x.ring(now);
  exchange();
  post(x, 10, handle(a, b), y.qpn);  // not rung for
  QpAttributes to;
  to.qp_state = QpState::kRts;
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, 0), Status::kBusy);
  x.ring(now);
  exchange();
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, 0), Status::kOk);
  to.qp_state = QpState::kError;
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, 0), Status::kOk);
  EXPECT_EQ(statuses(x), (std::vector{CrStatus::kLocLen, CrStatus::kWrFlush}));
}

// ---- connections ---------------------------------------------------------------------------------------------------

class ConnectionTest : public EnginePair {
 protected:
  void init(TestQp& q) {
    ASSERT_EQ(q.node.roce().modify_qp(now, q.qpn, usual(QpState::kInit, q, q), kToInit), Status::kOk);
  }
  ConnectConfig to_b(TestQp& x) {
    ConnectConfig c;
    c.qpn = x.qpn;
    c.path = {a.link, a.gid, b.gid, class_of_traffic};
    c.local_port = 40000;
    c.remote_port = 7174;
    c.timeout = 8;
    c.cookie = 11;
    c.private_data = hello;
    return c;
  }
  std::vector<ConnectionEvent> events(TestNode& n) {
    std::vector<ConnectionEvent> all(8);
    all.resize(n.roce().poll_connection_events(all));
    return all;
  }
  ConnectionEvent only(TestNode& n, ConnectionEventKind kind) {
    const auto all = events(n);
    EXPECT_EQ(all.size(), 1u);
    if (all.empty()) return {};
    EXPECT_EQ(all[0].kind, kind);
    return all[0];
  }
  void listen() {
    ListenConfig c;
    c.port = 7174;
    c.cookie = 5;
    ASSERT_EQ(b.roce().listen(c, &listener), Status::kOk);
    EXPECT_EQ(b.roce().listen(c, &listener), Status::kExists);
  }
  /// The frame of a REQ of node a to the port that listen() has.
  Bytes request_to(const TestNode& to, uint32_t id) {
    Packet p{};
    p.bth.opcode = Opcode::kUdSendOnly;
    p.bth.dest_qp = kGsiQp;
    p.deth = {kGsiQkey, kGsiQp};
    Bytes addresses(CmReq::kPrivateDataSize), mad(kMadSize);
    CmIpHeader{{a.gid, 40001}, to.gid}.write(addresses.data());
    CmReq req;
    req.local_comm_id = id;
    req.service_id = service_id_of_port(7174);
    req.private_data = addresses;
    write_cm({CmType::kReq, id}, req, std::span<std::byte, kMadSize>(mad));
    return frame_of(packet_bytes(p, mad));
  }
  void establish(TestQp& x, TestQp& y) {
    listen();
    init(x);
    init(y);
    ASSERT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
    settle(milliseconds(900));
    const ConnectionEvent request = only(b, ConnectionEventKind::kConnectRequest);
    EXPECT_EQ(request.cookie, 5u);
    EXPECT_EQ(request.remote_qpn, x.qpn);
    EXPECT_EQ(request.remote_port, 40000);
    EXPECT_EQ(request.private_data[0], hello[0]);
    AcceptConfig accept;
    accept.qpn = y.qpn;
    accept.responder_resources = accept.initiator_depth = 9;
    accept.cookie = 12;
    at_b = request.connection;
    ASSERT_EQ(b.roce().accept(now, at_b, accept), Status::kOk);
    EXPECT_EQ(b.roce().accept(now, at_b, accept), Status::kInvalid);
    settle(milliseconds(900));
    EXPECT_EQ(only(a, ConnectionEventKind::kEstablished).cookie, 11u);
  }

  const Bytes hello{std::byte{0x68}, std::byte{0x69}};
  uint32_t listener = 0, at_a = 0, at_b = 0;
  uint8_t class_of_traffic = 0;
};

TEST_F(ConnectionTest, made_used_and_parted) {
  TestQp x(a), y(b);
  establish(x, y);
  EXPECT_EQ(only(b, ConnectionEventKind::kEstablished).cookie, 12u);
  EXPECT_EQ(state_of(x), QpState::kRts);
  EXPECT_EQ(state_of(y), QpState::kRts);
  QpAttributes agreed;
  EXPECT_EQ(b.roce().query_qp(y.qpn, &agreed), Status::kOk);
  EXPECT_EQ(agreed.max_rd_atomic, 1);  // what the other end serves
  fill(x, 4);
  y.post_receive(0, 100);
  x.post(WrOp::kSend, 0, 100);
  x.post(WrOp::kRead, 500, 100, y.rkey);
  x.ring(now);
  exchange();
  EXPECT_EQ(x.poll().size(), 2u);
  EXPECT_TRUE(same(y, 0, x, 0, 100));
  EXPECT_EQ(b.roce().disconnect(now, at_b), Status::kOk);
  settle();
  only(a, ConnectionEventKind::kDisconnected);
  only(b, ConnectionEventKind::kDisconnected);
  EXPECT_EQ(state_of(x), QpState::kError);
  EXPECT_EQ(state_of(y), QpState::kError);
  EXPECT_EQ(a.roce().disconnect(now, at_a), Status::kInvalid);  // gone, after its time of rest
}

// 12.7.31: who asks, and who replies, says with which PSN the other one shall begin.
TEST_F(ConnectionTest, starting_psn_is_that_of_the_receiver) {
  Psn for_b, for_a;
  filter = [&](TestNode&, Bytes& frame) {
    const Packet packet = parse(frame);
    CmHead head;
    if (packet.bth.dest_qp != 1 || CmHead::read({packet.payload, packet.payload_bytes}, head) != Drop::kNone)
      return true;
    const std::byte* body = packet.payload + kMadHeadSize;
    if (head.type == CmType::kReq) for_b = CmReq::read(body).starting_psn;
    if (head.type == CmType::kRep) for_a = CmRep::read(body).starting_psn;
    return true;
  };
  TestQp x(a), y(b);
  establish(x, y);
  QpAttributes at_x, at_y;
  EXPECT_EQ(a.roce().query_qp(x.qpn, &at_x), Status::kOk);
  EXPECT_EQ(b.roce().query_qp(y.qpn, &at_y), Status::kOk);
  EXPECT_EQ(Psn(at_x.sq_psn), for_a);
  EXPECT_EQ(Psn(at_x.rq_psn), for_b);
  EXPECT_EQ(Psn(at_y.sq_psn), for_b);
  EXPECT_EQ(Psn(at_y.rq_psn), for_a);
}

TEST_F(ConnectionTest, traffic_class_is_that_of_the_requester) {
  TestQp x(a), y(b);
  class_of_traffic = 0x68;
  establish(x, y);
  for (TestQp* q : {&x, &y}) {
    QpAttributes has;
    ASSERT_EQ(q->node.roce().query_qp(q->qpn, &has), Status::kOk);
    EXPECT_EQ(has.ah_attr.traffic_class, 0x68);
  }
}

TEST(TrafficClass, has_the_code_point_and_a_path_without_one_that_of_all_else) {
  CoreConfig config;
  config.dscp = 46;
  config.bulk_dscp = 8;
  EXPECT_EQ(dscp_of(config, {.traffic_class = 0}), 46);
  EXPECT_EQ(dscp_of(config, {.traffic_class = 3}), 46) << "these bits are not of DSCP";
  EXPECT_EQ(dscp_of(config, {.traffic_class = 0x68}), 0x68 >> 2);
}

TEST_F(ConnectionTest, made_despite_loss) {
  uint32_t n = 0;
  filter = [&](TestNode&, Bytes&) { return ++n % 2 == 0; };
  TestQp x(a), y(b);
  establish(x, y);
  settle(seconds(60));
  EXPECT_EQ(events(b).size(), 1u);
}

TEST_F(ConnectionTest, data_speaks_for_a_lost_rtu) {
  TestQp x(a), y(b);
  filter = [&](TestNode&, Bytes& frame) {
    const Packet p = parse(frame);
    return !p.has(kShapeDeth) || load_be16(p.payload + 16) != static_cast<uint16_t>(CmType::kRtu);
  };
  establish(x, y);
  EXPECT_TRUE(events(b).empty());
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  exchange();
  only(b, ConnectionEventKind::kEstablished);
}

TEST_F(ConnectionTest, refused) {
  TestQp x(a), y(b);
  init(x);
  ASSERT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
  exchange();
  EXPECT_EQ(only(a, ConnectionEventKind::kRejected).reason, RejReason::kInvalidServiceId);
  listen();
  ASSERT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
  exchange();
  EXPECT_EQ(b.roce().reject(now, only(b, ConnectionEventKind::kConnectRequest).connection, hello), Status::kOk);
  exchange();
  const ConnectionEvent no = only(a, ConnectionEventKind::kRejected);
  EXPECT_EQ(no.reason, RejReason::kConsumer);
  EXPECT_EQ(no.private_data[1], hello[1]);
  ASSERT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
  exchange();
  EXPECT_EQ(b.roce().stop_listening(now, listener), Status::kOk);
  exchange();
  only(a, ConnectionEventKind::kRejected);
}

TEST_F(ConnectionTest, nobody_there) {
  TestQp x(a);
  init(x);
  filter = [](TestNode&, Bytes&) { return false; };
  ASSERT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
  settle(seconds(120));
  only(a, ConnectionEventKind::kUnreachable);
  ConnectConfig bad = to_b(x);
  bad.qpn = 4711;
  EXPECT_EQ(a.roce().connect(now, bad, &at_a), Status::kInvalid);
}

TEST_F(ConnectionTest, destroyed_queue_pair_says_goodbye) {
  TestQp x(a), y(b);
  establish(x, y);
  events(b);
  EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
  settle();
  only(b, ConnectionEventKind::kDisconnected);
  EXPECT_EQ(state_of(y), QpState::kError);
}

TEST_F(ConnectionTest, an_instance_that_ends_says_goodbye) {
  TestQp x(a), y(b);
  establish(x, y);
  events(b);
  a.core->close(now);
  settle();
  only(b, ConnectionEventKind::kDisconnected);
  EXPECT_EQ(state_of(y), QpState::kError);
}

TEST_F(ConnectionTest, an_instance_that_starts_anew_ends_what_it_has_forgotten) {
  TestQp x(a), y(b);
  Bytes request;
  filter = [&](TestNode& from, Bytes& frame) {
    if (&from == &a && request.empty()) request = frame;
    return true;
  };
  establish(x, y);
  (void)events(b);
  b.core->on_packet(now, b.link, request);  // once more
  EXPECT_TRUE(events(b).empty());

  Packet packet = parse(request);
  Bytes mad(packet.payload, packet.payload + packet.payload_bytes);
  CmReq other = CmReq::read(mad.data() + kMadHeadSize);
  const Bytes private_data(other.private_data.begin(), other.private_data.end());
  other.private_data = private_data;
  other.starting_psn += 1;
  other.write(mad.data() + kMadHeadSize);
  b.core->on_packet(now, b.link, frame_of(packet_bytes(packet, mad)));
  EXPECT_EQ(only(b, ConnectionEventKind::kDisconnected).cookie, 12u);
  EXPECT_EQ(state_of(y), QpState::kError);
  EXPECT_EQ(b.roce().disconnect(now, at_b), Status::kInvalid);
  drain(b);
  ASSERT_EQ(b.host.frames.size(), 1u);
  const Bytes answer = b.host.frames.front();
  packet = parse(answer);
  EXPECT_EQ(CmRej::read(packet.payload + kMadHeadSize).reason, RejReason::kStaleConnection);
  b.core->on_packet(now, b.link, frame_of(packet_bytes(parse(request), mad)));  // it tries again, and is heard
  EXPECT_EQ(only(b, ConnectionEventKind::kConnectRequest).remote_qpn, x.qpn);
}

TEST_F(ConnectionTest, a_flood_of_requests_leaves_room_for_other_events) {
  TestQp x(a), y(b);
  establish(x, y);
  (void)events(b);
  uint32_t id = 1;
  for (; id <= 300; ++id) b.core->on_packet(now, b.link, request_to(b, id));
  EXPECT_EQ(a.roce().disconnect(now, at_a), Status::kOk);
  settle();
  std::vector<ConnectionEvent> all(512);
  all.resize(b.roce().poll_connection_events(all));
  EXPECT_EQ(all.back().kind, ConnectionEventKind::kDisconnected);
  EXPECT_EQ(all.size(), 128u + 1);  // as many as may wait for an answer, and this one

  EXPECT_EQ(b.roce().reject(now, all[0].connection, {}), Status::kOk);
  for (; id <= 302; ++id) b.core->on_packet(now, b.link, request_to(b, id));
  EXPECT_EQ(events(b).size(), 1u);
}

TEST_F(ConnectionTest, every_end_is_told) {
  TestNode server{2, {.max_qps = 400}};
  ListenConfig l;
  l.port = 7174;
  ASSERT_EQ(server.roce().listen(l, &listener), Status::kOk);
  std::vector<std::unique_ptr<TestQp>> qps;
  TestQp first(server);
  for (uint32_t id = 1; id <= 300; ++id) {
    server.core->on_packet(now, server.link, request_to(server, id));
    qps.push_back(std::make_unique<TestQp>(
        server, TestQp::Options{.shared_jfr = first.jfr, .shared_jfc = first.jfc, .memory_bytes = 64}));
    init(*qps.back());
    AcceptConfig accept;
    accept.qpn = qps.back()->qpn;
    ASSERT_EQ(server.roce().accept(now, only(server, ConnectionEventKind::kConnectRequest).connection, accept),
              Status::kOk);
  }
  server.core->link_down(now, server.link);
  std::vector<ConnectionEvent> all(1000);
  EXPECT_EQ(server.roce().poll_connection_events(all), 300u);
}

TEST_F(ConnectionTest, a_requester_cannot_make_us_wait_for_ever) {
  listen();
  TestQp x(a), y(b);
  init(x);
  init(y);
  ConnectConfig c = to_b(x);
  c.timeout = 0;
  ASSERT_EQ(a.roce().connect(now, c, &at_a), Status::kOk);
  settle(milliseconds(900));
  AcceptConfig accept;
  accept.qpn = y.qpn;
  const uint32_t at = only(b, ConnectionEventKind::kConnectRequest).connection;
  ASSERT_EQ(b.roce().accept(now, at, accept), Status::kOk);
  QpAttributes has;
  ASSERT_EQ(b.roce().query_qp(y.qpn, &has), Status::kOk);
  EXPECT_EQ(has.timeout, 20);
}

TEST_F(ConnectionTest, a_queue_pair_that_was_never_ready_may_connect_again_at_once) {
  listen();
  TestQp x(a), y(b);
  init(x);
  init(y);
  ASSERT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
  settle(milliseconds(100));
  AcceptConfig accept;
  accept.qpn = y.qpn;
  const uint32_t at = only(b, ConnectionEventKind::kConnectRequest).connection;
  ASSERT_EQ(b.roce().accept(now, at, accept), Status::kOk);
  filter = [&](TestNode& from, Bytes& frame) {  // the REP is late
    const Packet packet = parse(frame);
    CmHead head;
    return &from != &b || CmHead::read({packet.payload, packet.payload_bytes}, head) != Drop::kNone ||
           head.type != CmType::kRep;
  };
  settle(milliseconds(100));
  ASSERT_EQ(b.roce().disconnect(now, at), Status::kOk);
  settle(milliseconds(100));
  EXPECT_EQ(only(a, ConnectionEventKind::kDisconnected).connection, at_a);
  EXPECT_EQ(a.roce().connect(now, to_b(x), &at_a), Status::kOk);
}

TEST_F(ConnectionTest, link_of_sockets_has_one_source_port) {
  for (TestNode* n : {&a, &b}) n->link = n->core->add_link({.mtu = 4096, .roce_port = kUdpPort});
  size_t frames = 0;
  filter = [&](TestNode&, Bytes& frame) {
    EXPECT_EQ(source_port(frame), kUdpPort);
    ++frames;
    return true;
  };
  TestQp x(a), y(b);
  establish(x, y);
  EXPECT_GE(frames, 3u);
}

TEST_F(ConnectionTest, only_management_reaches_qp1) {
  TestQp x(a, {.type = QpType::kUd});
  Packet p{};
  p.bth.opcode = Opcode::kRcSendOnly;
  p.bth.dest_qp = 1;
  a.core->on_packet(now, a.link, frame_of(packet_bytes(p)));
  EXPECT_EQ(count(a, Counter::kRoceRxDropWrongTransport), 1u);
  p.bth.opcode = Opcode::kUdSendOnly;
  a.core->on_packet(now, a.link, frame_of(packet_bytes(p, Bytes(256))));
  EXPECT_EQ(count(a, Counter::kRoceRxDropBadQkey), 1u);
  p.deth.qkey = kGsiQkey;
  a.core->on_packet(now, a.link, frame_of(packet_bytes(p, Bytes(256))));
  EXPECT_EQ(count(a, Counter::kRoceRxDropBadMad), 1u);
}

}  // namespace
}  // namespace ub::roce
