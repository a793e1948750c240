// SPDX-License-Identifier: Apache-2.0
//
// Unreliable messages (UM): a UTP packet each, without a channel, sent once; who gets them, and why not.
#include <cmath>

#include "lib/transport/resource/owner_limits.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/sim/directed_raw.h"

namespace ub::sim {
namespace {

bool is_datagram(const PacketInfo& p) { return p.valid && p.utp && p.has_ta && p.ta.mt.tc_id != 0; }

QueueSpec um_queue() {
  QueueSpec q = usual_queue();
  q.mode = Mode::kUm;
  return q;
}
JfrSpec um_jfr() {
  JfrSpec r = usual_jfr();
  r.mode = Mode::kUm;
  return r;
}

// Beside the usual ends, one of UM at each node.
struct UmStage : Stage {
  explicit UmStage(Options o = directed_options(), QueueSpec q = um_queue()) : Stage(o) {
    x = equip(*a().node, q, um_jfr());
    y = equip(*b().node, q, um_jfr());
  }
  const Wr& datagram(uint32_t length, RequestSpec s = {}) { return request(x, y, WrOp::kSend, length, s); }
  // The same at a moment when its completion and all it brings about are long over.
  const Wr& sent(uint32_t length, RequestSpec s = {}) {
    const Wr& w = datagram(length, s);
    settle();
    EXPECT_EQ(w.status, kSuccess);
    EXPECT_EQ(w.state, Wr::State::kSuccess);
    return w;
  }
  void settle() { world.run_for(milliseconds(20)); }
  uint64_t dropped(Counter c) { return count(y, c); }

  End x, y;
};

TEST(Datagram, arrives_whole__without_any_channel) {
  UmStage s;
  s.y.give_receives(8);
  for (uint32_t length : {0u, 1u, 100u, 1023u, 1024u}) EXPECT_EQ(s.sent(length).deliveries, 1u) << length;
  RequestSpec spec;
  spec.solicited = spec.inlined = true;
  EXPECT_EQ(s.sent(150, spec).deliveries, 1u);
  spec.inlined = false;
  spec.sges = 4;
  EXPECT_EQ(s.sent(1001, spec).deliveries, 1u);
  const Wr& imm = s.request(s.x, s.y, WrOp::kSendImm, 77);
  s.settle();
  EXPECT_EQ(imm.deliveries, 1u);
  EXPECT_TRUE(s.channels(s.x).empty() && s.channels(s.y).empty());
  EXPECT_EQ(s.count(s.x, Counter::kTpTxRecord), 0u);
  EXPECT_EQ(s.count(s.x, Counter::kUmTx), 8u);
  EXPECT_EQ(s.count(s.y, Counter::kUmRx), 8u);
  EXPECT_EQ(s.count(s.y, Counter::kTxPackets), 0u);  // nothing is ever answered
}

TEST(Datagram, reaches_a_jfr__and_ones_own_instance) {
  UmStage s;
  s.y.give_receives(1);
  RequestSpec spec;
  spec.op = WrOp::kSend;
  spec.to = {nullptr, s.y.jfr};
  const Wr* to_jfr = post(s.world, s.x.queue, spec);
  s.x.node->ring(s.x.queue);
  End z = s.equip(*s.a().node, um_queue(), um_jfr());
  z.give_receives(1);
  const Wr& to_self = s.request(s.x, z, WrOp::kSend, 300);
  s.settle();
  EXPECT_EQ(to_jfr->deliveries, 1u);
  EXPECT_EQ(to_self.deliveries, 1u);
}

TEST(Datagram, lost__is_not_repeated) {
  UmStage s;
  s.y.give_receives(2);
  auto& lost = s.world.network.tamper.add(drop(1, is_datagram));
  auto& all = s.world.network.tamper.add(watch(is_datagram));
  EXPECT_EQ(s.sent(100).deliveries, 0u);
  EXPECT_EQ(s.sent(100).deliveries, 1u);
  s.world.run_for(seconds(10));
  EXPECT_EQ(lost.hits, 1u);
  EXPECT_EQ(all.hits, 2u);
}

TEST(Datagram, doubled_by_the_network__is_delivered_twice) {
  UmStage s;
  s.world.model.most_deliveries = 2;
  s.y.give_receives(3);
  s.world.network.tamper.add(duplicate(1, microseconds(500), is_datagram));
  EXPECT_EQ(s.sent(100).deliveries, 2u);
}

TEST(Datagram, damaged__is_dropped) {
  UmStage s;
  s.y.give_receives(1);
  s.world.network.tamper.add(rewrite(1, is_datagram, [](std::span<std::byte>) {}));
  s.world.network.tamper.add(corrupt(20, is_datagram));
  EXPECT_EQ(s.sent(1000).deliveries, 1u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(s.sent(1000).deliveries, 0u);
}

TEST(Datagram, to_nobody__completes_all_the_same) {
  UmStage s;
  s.world.network.cut(0, 1, true);
  s.sent(100);
  s.y.node->crash();
  s.sent(100);
  s.y.node->boot();
  s.world.network.cut(0, 1, false);
  s.sent(100);
  EXPECT_EQ(s.dropped(Counter::kRxDropNoSuchQueue), 1u);
}

TEST(Datagram, target__has_to_be_there_and_ready) {
  UmStage s;
  s.y.give_receives(4);
  RequestSpec wrong;
  wrong.wrong = Wrong::kReceiverToken;
  EXPECT_EQ(s.sent(100, wrong).deliveries, 0u);
  EXPECT_EQ(s.dropped(Counter::kRxDropUmToken), 1u);
  End other = s.equip(*s.b().node);  // RM
  other.give_receives(2);
  s.request(s.x, other, WrOp::kSend, 100);
  RequestSpec to_jfr;
  to_jfr.op = WrOp::kSend;
  to_jfr.to = {nullptr, other.jfr};
  post(s.world, s.x.queue, to_jfr);
  s.x.node->ring(s.x.queue);
  s.settle();
  EXPECT_EQ(s.dropped(Counter::kRxDropUmMode), 2u);
  EXPECT_EQ(s.sent(100).deliveries, 1u);
  s.y.node->flush(s.y.jfr, true);
  EXPECT_EQ(s.sent(100).deliveries, 0u);
  s.y.node->revive(s.y.jfr);
  EXPECT_EQ(s.dropped(Counter::kRxTargetNotReady), 1u);
  s.y.give_receives(2);
  EXPECT_EQ(s.sent(100).deliveries, 1u);
  s.y.node->flush(s.y.queue);  // and destroyed, when it has ended
  s.sent(100);
  EXPECT_EQ(s.dropped(Counter::kRxDropNoSuchQueue) + s.dropped(Counter::kRxTargetNotReady), 2u);
}

// The oracle: which queues of that number may get a message with a wrong token.
TEST(Datagram, with_a_wrong_token__may_reach_only_a_later_queue_that_takes_it) {
  Jfr former, later;
  former.epoch = 1;
  later.epoch = 2;
  former.token = later.token = Token{.required = true, .value = 1};
  Wr w;
  w.remote_node = former.node;
  w.remote_epoch = former.epoch;
  w.receiver = {nullptr, &former};
  w.receiver_token = 2;
  w.shows_token = false;
  EXPECT_FALSE(may_reach(w, {nullptr, &former}));
  EXPECT_FALSE(may_reach(w, {nullptr, &later}));
  later.token.required = false;
  EXPECT_TRUE(may_reach(w, {nullptr, &later}));
  w.shows_token = true;
  EXPECT_TRUE(may_reach(w, {nullptr, &former}));
}

TEST(Datagram, jetty_in_error__drops) {
  Stage s;
  Raw x(s, *s.a().node, 0, 16, 17, nullptr, 0, Mode::kUm), y(s, *s.b().node, 0, 16, 17, nullptr, 0, Mode::kUm);
  const uint32_t target = x.import(y);
  y.post_receive(100, y.region);
  ASSERT_EQ(y.core().set_state(s.world.now(), y.id, QueueState::kError), Status::kOk);
  EXPECT_EQ(x.outcome(x.element(WrOp::kSend, 100, target, nullptr)), kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kRxTargetNotReady), 1u);
  EXPECT_EQ(y.jfc_indices.produced.load(), 1u);  // WR_FLUSH_DONE of its own queue
}

TEST(Datagram, receive__has_to_be_there_and_long_enough) {
  UmStage s;
  s.sent(100);
  EXPECT_EQ(s.dropped(Counter::kRxDropUmNoReceive), 1u);
  s.y.give_receives(1, 99);
  s.sent(100);  // the oracle knows that the receive may end with LOC_LEN
  EXPECT_EQ(s.dropped(Counter::kRxDropUmNoFit), 1u);
  EXPECT_TRUE(s.y.jfr->posted.empty());
  s.y.give_receives(2, 100);
  EXPECT_EQ(s.sent(100).deliveries, 1u);
  s.y.node->unregister(s.y.app->inbox);
  s.sent(100);
  EXPECT_EQ(s.dropped(Counter::kRxDropUmNoMemory), 1u);
  EXPECT_TRUE(s.y.jfr->posted.empty());
  EXPECT_EQ(s.count(s.y, Counter::kUmRx), 1u);
}

TEST(Datagram, full_jfc__drops_and_takes_no_receive) {
  Stage s;
  Raw x(s, *s.a().node, 0, 128, 17, nullptr, 0, Mode::kUm), y(s, *s.b().node, 0, 16, 17, nullptr, 0, Mode::kUm);
  const uint32_t target = x.import(y);
  for (int i = 0; i < 64; ++i) {
    y.post_receive(100, y.region);
    x.outcome(x.element(WrOp::kSend, 8, target, nullptr));
    x.jfc_indices.consumed.store(x.jfc_indices.produced.load());
  }
  EXPECT_EQ(y.jfc_indices.produced.load(), 64u);
  y.post_receive(100, y.region);
  const uint32_t taken = y.jfr_indices.consumed.load();
  EXPECT_EQ(x.outcome(x.element(WrOp::kSend, 8, target, nullptr)), kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kRxDropUmNoReceive), 1u);
  EXPECT_EQ(y.jfr_indices.consumed.load(), taken);
}

// ---- the sender --------------------------------------------------------------------------------------------------

TEST(Datagram, sender__is_told_what_it_did_wrong) {
  Stage s;
  Raw x(s, *s.a().node, 0, 16, 17, nullptr, 0, Mode::kUm), y(s, *s.b().node, 0, 16, 17, nullptr, 0, Mode::kUm);
  const uint32_t target = x.import(y);
  auto outcome = [&](WrOp op, uint32_t length, uint32_t to) { return x.outcome(x.element(op, length, to, y.region)); };
  EXPECT_EQ(outcome(WrOp::kSend, 1024, target), kSuccess);
  EXPECT_EQ(outcome(WrOp::kSend, 1025, target), CrStatus::kLocLen);
  for (WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kFetchAdd, WrOp::kSendInvalidate, WrOp::kWriteImm})
    EXPECT_EQ(outcome(op, 8, target), CrStatus::kUnsupportedOpcode);
  EXPECT_EQ(outcome(WrOp::kSend, 8, target + 1), CrStatus::kLocOperation);
  EXPECT_EQ(outcome(WrOp::kNop, 0, 0), kSuccess);
  Wqe e = x.element(WrOp::kSend, 100, target, nullptr);
  e.sge.segment += 1;
  EXPECT_EQ(x.outcome(e), CrStatus::kLocAccess);
  e = x.element(WrOp::kSend, 100, target, nullptr);
  e.sge.length = 99;  // fewer bytes than the message has
  EXPECT_EQ(x.outcome(e), CrStatus::kLocAccess);
  EXPECT_EQ(outcome(WrOp::kSend, 1024, target), kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kUmTx), 2u);
  EXPECT_TRUE(s.channels(s.a()).empty());
}

TEST(Datagram, order_flags__hold_nothing_back) {
  UmStage s;
  s.y.give_receives(10);
  s.world.network.tamper.add(drop(kAlways, from(1, is_any)));
  RequestSpec strong;
  strong.order = 2;
  strong.fence = strong.comp_order = true;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(s.sent(100, strong).deliveries, 1u);
}

TEST(Datagram, port_without_room__is_waited_for) {
  Options o = directed_options();
  o.lossless = true;
  o.net.queue_frames = 4;
  o.host.tx_refuse = 0.3;
  UmStage s(o);
  s.y.give_receives(60);
  std::vector<const Wr*> all;
  for (int i = 0; i < 60; ++i) all.push_back(&s.datagram(1000));
  s.finish();
  s.settle();
  for (const Wr* w : all) EXPECT_EQ(w->deliveries, 1u);
  EXPECT_EQ(s.count(s.x, Counter::kUmTxNoRoom), 0u);
}

// A peer that takes nothing out of its ring any more, say.
TEST(Datagram, port_that_never_has_room__does_not_hold_the_queue_for_ever) {
  Options o = directed_options();
  o.host.tx_refuse = 1;
  o.host.tx_room_ns = 1'000'000;
  UmStage s(o);
  std::vector<const Wr*> all;
  for (int i = 0; i < 100; ++i) all.push_back(&s.datagram(100));
  const double took = s.finish();
  EXPECT_GT(took, 4.0);
  EXPECT_LT(took, 5.0);
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  EXPECT_EQ(s.count(s.x, Counter::kUmTxNoRoom), 100u);
  const Wr& later = s.datagram(100);  // waits again
  s.world.run_for(seconds(1));
  EXPECT_EQ(later.state, Wr::State::kOutstanding);
  s.finish();
}

TEST(Datagram, queue_in_error__flushes_what_its_memory_holds_up) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 50'000'000;
  UmStage s(o);
  s.y.give_receives(10);
  auto& left = s.world.network.tamper.add(watch(is_datagram));
  std::vector<const Wr*> all;
  for (int i = 0; i < 5; ++i) all.push_back(&s.datagram(100));
  s.x.node->flush(s.x.queue);
  s.finish();
  s.world.run_for(milliseconds(100));
  EXPECT_EQ(all[0]->status, CrStatus::kWrFlush);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(all[i]->status, CrStatus::kWrUnhandled);
  EXPECT_EQ(left.hits, 0u);
  EXPECT_EQ(s.x.node->core().state().held_datagrams.places.in_use(), 0u);
}

TEST(Datagram, slow_memory__keeps_the_order_and_shares_the_port) {
  Options o = directed_options();
  o.host.pending = 1;
  UmStage s(o);
  s.y.give_receives(200);
  std::vector<Queue*> queues;
  for (int i = 0; i < 20; ++i) queues.push_back(s.x.node->add_queue(*s.x.app, s.x.jfc, s.x.jfr, um_queue()));
  std::vector<uint16_t> tassns;
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (is_datagram(p) && p.ta.req.rc_id == queues[0]->id) tassns.push_back(p.ta.req.tassn.value());
    return false;
  }));
  std::vector<const Wr*> all;
  RequestSpec spec;
  spec.op = WrOp::kSend;
  spec.to = s.y.receiver();
  for (int n = 0; n < 5; ++n)
    for (Queue* q : queues) all.push_back(post(s.world, q, spec));
  for (Queue* q : queues) s.x.node->ring(q);
  EXPECT_EQ(s.x.node->core().state().held_datagrams.places.in_use(), kHeldDatagramsOfOwner);
  s.finish();
  s.settle();
  for (const Wr* w : all) EXPECT_EQ(w->deliveries, 1u);
  ASSERT_EQ(tassns.size(), 5u);
  for (uint16_t n = 0; n < 5; ++n) EXPECT_EQ(tassns[n], static_cast<uint16_t>(tassns[0] + n));
}

// Of one application as many as it may have; those of others go on.
TEST(Datagram, slow_memory_of_one__does_not_hold_up_others) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 1'000'000'000;
  UmStage s(o);
  s.y.give_receives(50);
  RequestSpec spec;
  spec.op = WrOp::kSend;
  spec.to = s.y.receiver();
  for (int i = 0; i < 20; ++i) {
    Queue* q = s.x.node->add_queue(*s.x.app, s.x.jfc, s.x.jfr, um_queue());
    post(s.world, q, spec);
    s.x.node->ring(q);
  }
  EXPECT_EQ(s.x.node->core().state().held_datagrams.places.in_use(), kHeldDatagramsOfOwner);
  s.world.options.host.pending = 0;
  End other = s.equip(*s.a().node, um_queue(), um_jfr());
  const Wr& w = s.request(other, s.y, WrOp::kSend, 100);
  s.settle();
  EXPECT_EQ(w.deliveries, 1u);
  EXPECT_EQ(s.x.node->core().state().held_datagrams.places.in_use(), kHeldDatagramsOfOwner);
  s.finish();
}

TEST(Datagram, link_that_goes_down__takes_all_with_it_and_nobody_waits) {
  for (double pending : {0.0, 1.0}) {
    Options o = directed_options();
    o.host.pending = pending;
    o.host.tx_refuse = pending == 0 ? 1 : 0;
    UmStage s(o);
    std::vector<const Wr*> all;
    for (int i = 0; i < 100; ++i) all.push_back(&s.datagram(100));
    s.x.node->core().link_down(s.world.now(), s.x.node->link());
    s.x.node->drive();
    s.finish();
    for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
    EXPECT_EQ(s.count(s.x, Counter::kUmTxNoPath), 100u);
    EXPECT_EQ(s.count(s.x, Counter::kUmTx), 0u);
    EXPECT_FALSE(s.x.node->core().has_packets());
  }
}

TEST(Datagram, channels_and_datagrams__share_the_turns) {
  UmStage s;
  s.warm_up();
  s.y.give_receives(200);
  std::vector<bool> kinds;  // is it a datagram?
  s.world.network.tamper.add(watch([&](const PacketInfo& p) {
    if (p.from == 0 && (is_datagram(p) || p.request())) kinds.push_back(is_datagram(p));
    return false;
  }));
  RequestSpec um, rm;
  um.op = WrOp::kSend;
  um.to = s.y.receiver();
  rm.op = WrOp::kWrite;
  rm.to = s.b().receiver();
  rm.remote = s.b().target;
  rm.length = 10'000;
  for (int i = 0; i < 200; ++i) post(s.world, s.x.queue, um);
  for (int i = 0; i < 40; ++i) post(s.world, s.a().queue, rm);
  SimCore& core = s.a().node->core();
  core.on_posted(s.world.now(), s.x.queue->id);
  core.on_posted(s.world.now(), s.a().queue->id);
  s.a().node->drive();  // 32 packets at a time
  s.finish();
  s.settle();
  const auto datagrams = std::count(kinds.begin(), kinds.begin() + 64, true);
  EXPECT_GE(datagrams, 16);
  EXPECT_LE(datagrams, 48);
  EXPECT_EQ(s.count(s.y, Counter::kUmRx), 200u);
  s.check_memory();
}

TEST(Datagram, rate_of_the_owner__holds) {
  Stage s;
  OwnerLimits limits;
  limits.pacer.bytes_per_second = 10'000'000;
  Raw x(s, *s.a().node, 0, 16, 17, &limits, 0, Mode::kUm), y(s, *s.b().node, 0, 16, 17, nullptr, 0, Mode::kUm);
  const uint32_t target = x.import(y);
  const Instant begin = s.world.now();
  for (int i = 0; i < 200; ++i) {
    x.post(x.element(WrOp::kSend, 1000, target, nullptr));
    while (x.indices.consumed.load() != x.indices.produced.load()) s.world.run_for(microseconds(10));
    x.jfc_indices.consumed.store(x.jfc_indices.produced.load());
    x.core().on_completions_read(s.world.now(), x.jfc);
  }
  const Duration took = s.world.now() - begin;
  EXPECT_GE(took, milliseconds(24) - cc::Pacer::kCredit);  // 200 x 1256 bytes at 10 MB/s: 25 ms, less what was saved up
  EXPECT_LE(took, milliseconds(28));
}

// ---- the receiver ------------------------------------------------------------------------------------------------

TEST(Datagram, receives_of_a_jetty_that_goes__go_back) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 1'000'000;
  UmStage s(o);
  QueueSpec q = um_queue();
  q.own_recv_jfc = true;
  Jfc* own = s.y.node->add_jfc(*s.y.app, 16);
  End z = s.y;
  z.queue = s.y.node->add_queue(*s.y.app, own, s.y.jfr, q);
  s.y.give_receives(3);
  for (int i = 0; i < 3; ++i) s.request(s.x, z, WrOp::kSend, 500);
  ASSERT_TRUE(s.world.run_until([&] { return s.y.node->core().state().arriving.in_use() == 3; }, seconds(1)));
  s.y.node->destroy(z.queue);
  EXPECT_EQ(s.y.node->core().destroy_jfc(own->handle), Status::kOk);
  own->alive = false;
  s.settle();
  EXPECT_EQ(s.y.node->core().state().arriving.in_use(), 0u);
  EXPECT_EQ(s.count(s.y, Counter::kUmRx), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(s.sent(600).deliveries, 1u);
}

TEST(Datagram, jfr_that_goes__takes_its_receives_along) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 1'000'000;
  UmStage s(o);
  s.y.give_receives(3);
  for (int i = 0; i < 3; ++i) s.datagram(500);
  ASSERT_TRUE(s.world.run_until([&] { return s.y.node->core().state().arriving.in_use() == 3; }, seconds(1)));
  s.y.node->destroy(s.y.queue);
  s.y.node->destroy(s.y.jfr);
  EXPECT_EQ(s.y.node->core().state().receives.in_use(), 0u);
  s.settle();
  EXPECT_EQ(s.y.node->core().state().arriving.in_use(), 0u);
}

TEST(Datagram, slow_receiver__is_bounded) {
  Options o = directed_options();
  o.host.pending = 1;
  o.host.pending_ns = 20'000'000;
  UmStage s(o);
  s.y.give_receives(256, 64);
  std::vector<const Wr*> all;
  for (int i = 0; i < 250; ++i) {
    RequestSpec spec;
    spec.inlined = true;
    all.push_back(&s.datagram(64, spec));
  }
  s.finish(seconds(60));
  s.world.run_for(milliseconds(50));
  uint32_t delivered = 0;
  for (const Wr* w : all) delivered += w->deliveries;
  EXPECT_EQ(delivered + s.dropped(Counter::kRxDropUmBusy), 250u);
  EXPECT_GE(delivered, kArrivingOfOwner);
  EXPECT_EQ(s.y.node->core().state().arriving.in_use(), 0u);
}

// A datagram as anybody could send it.
std::vector<std::byte> datagram_frame(const wire::TaPacket& ta, uint32_t payload, const wire::Endpoint& src,
                                      const wire::Endpoint& dst) {
  wire::NetTemplate net;
  net.init({}, {}, src, dst, 0);
  std::byte headers[wire::kMaxTransactionHeaderSize];
  const size_t header_bytes = wire::write_transaction_headers(ta, headers);
  const size_t udp = wire::UtpHeader::kSize + header_bytes + payload + wire::kIcrcSize;
  std::vector<std::byte> frame(net.size + udp);
  size_t at = net.write(frame.data(), udp, wire::kEcnNotCapable);
  wire::UtpHeader{}.write(frame.data() + at);
  std::memcpy(frame.data() + at + wire::UtpHeader::kSize, headers, header_bytes);
  reseal(frame);
  return frame;
}

wire::TaPacket send_to(uint32_t id, uint32_t uasid) {
  wire::TaPacket ta{};
  ta.has_ud = ta.has_mt = ta.has_ofst = true;
  ta.ud = uasid;
  ta.mt = {0, wire::kTcTypeQueue, id};
  ta.req.rc_id = 1025;
  return ta;
}

TEST(Datagram, every_field__is_checked) {
  Stage s;
  Raw y(s, *s.b().node, 0, 16, 17, nullptr, 0, Mode::kUm);
  y.post_receive(4096, y.region);
  const uint32_t uasid = s.a().node->id().uasid;
  auto dropped_as = [&](Counter c, uint32_t payload, auto&& change) {
    wire::TaPacket ta = send_to(y.id, uasid);
    change(ta);
    const uint64_t before = s.count(s.b(), c);
    s.world.network.inject(0, datagram_frame(ta, payload, s.a().node->at(), s.b().node->at()));
    s.world.run_for(milliseconds(1));
    return s.count(s.b(), c) == before + 1 && s.count(s.b(), Counter::kUmRx) == 0;
  };
  using wire::TaOpcode;
  using wire::TaPacket;
  for (TaOpcode op : {TaOpcode::kSendInvalidate, TaOpcode::kWrite, TaOpcode::kRead, TaOpcode::kAtomicFetchAdd}) {
    EXPECT_TRUE(dropped_as(Counter::kRxDropUmOperation, 0, [&](TaPacket& t) {
      const uint16_t shape = wire::ta_shape(op);
      t.req.opcode = op;
      t.has_mt = (shape & wire::kShapeMt) != 0;
      t.has_ofst = (shape & wire::kShapeOfst) != 0;
      t.has_ma = (shape & wire::kShapeMa) != 0;
      t.has_imm = (shape & wire::kShapeImm) != 0;
    }));
  }
  EXPECT_TRUE(dropped_as(Counter::kRxDropUmOperation, 0, [](TaPacket& t) {
    t.is_response = true;
    t.has_ud = t.has_mt = t.has_ofst = false;
  }));
  constexpr Counter kMalformed = Counter::kRxDropUmMalformed;
  EXPECT_TRUE(dropped_as(kMalformed, 8, [](TaPacket& t) { t.has_ud = false; }));
  EXPECT_TRUE(dropped_as(kMalformed, 8, [](TaPacket& t) { t.ud = 0; }));
  EXPECT_TRUE(dropped_as(kMalformed, 8, [](TaPacket& t) { t.ofst.offset_kib = 1; }));
  EXPECT_TRUE(dropped_as(kMalformed, 8, [](TaPacket& t) { t.req.poison = true; }));
  EXPECT_TRUE(dropped_as(kMalformed, 8, [](TaPacket& t) { t.req.alloc = true; }));
  EXPECT_TRUE(dropped_as(kMalformed, 8, [](TaPacket& t) { t.req.rc_type = wire::kRcTypeSequenceContext; }));
  EXPECT_TRUE(dropped_as(Counter::kRxDropUmTooLong, 1028, [](TaPacket&) {}));
  constexpr Counter kNoQueue = Counter::kRxDropNoSuchQueue;
  EXPECT_TRUE(dropped_as(kNoQueue, 8, [](TaPacket& t) { t.mt.tc_id = 1; }));
  EXPECT_TRUE(dropped_as(kNoQueue, 8, [](TaPacket& t) { t.mt.tc_id = 0xfffff; }));
  EXPECT_TRUE(dropped_as(kNoQueue, 8, [](TaPacket& t) { t.mt.tc_type = wire::kTcTypeGroup; }));
  wire::TaPacket good = send_to(y.id, uasid);
  s.world.network.inject(0, datagram_frame(good, 8, s.a().node->at(), s.b().node->at()));
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.count(s.b(), Counter::kUmRx), 1u);
  const Cqe& c = y.completion(0);
  EXPECT_EQ(c.remote_uasid, uasid);
  EXPECT_EQ(std::memcmp(c.remote_eid, s.a().node->id().eid.bytes.data(), 16), 0);
  EXPECT_EQ(c.remote_id, 1025u);
  EXPECT_EQ(c.local_id, y.id);
  EXPECT_EQ(c.length, 8u);
  EXPECT_EQ(c.tpn, 0u);
}

TEST(Datagram, group__has_no_members_of_um) {
  Stage s;
  uint32_t group = 0;
  SimCore& core = s.b().node->core();
  ASSERT_EQ(core.create_group({0, GroupPolicy::kRoundRobin, {}, kFirstHostileOwner}, &group), Status::kOk);
  wire::TaPacket ta = send_to(group, s.a().node->id().uasid);
  ta.mt.tc_type = wire::kTcTypeGroup;
  s.world.network.inject(0, datagram_frame(ta, 8, s.a().node->at(), s.b().node->at()));
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.count(s.b(), Counter::kRxDropUmMode), 1u);
  EXPECT_EQ(core.destroy_group(s.world.now(), group), Status::kOk);
}

// Whatever bits are turned in it: taken or dropped by name, and nothing beside the receive is written.
TEST(Datagram, random_bits__harm_nobody) {
  Stage s;
  Raw y(s, *s.b().node, 0, 16, 17, nullptr, 0, Mode::kUm);
  Prng rng(7);
  uint64_t taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (y.jfr_indices.produced.load() - y.jfr_indices.consumed.load() < 8) y.post_receive(200, y.region);
    wire::TaPacket ta = send_to(y.id, s.a().node->id().uasid);
    ta.has_imm = rng.chance(0.5);
    ta.req.opcode = ta.has_imm ? wire::TaOpcode::kSendImmediate : wire::TaOpcode::kSend;
    auto frame = datagram_frame(ta, static_cast<uint32_t>(4 * rng.below(100)), s.a().node->at(), s.b().node->at());
    const size_t first = wire::NetTemplate::kSizeV4;
    for (uint64_t n = rng.below(4); n != 0; --n)
      frame[rng.between(first, std::min(frame.size(), first + 60) - 1)] ^= static_cast<std::byte>(1u << rng.below(8));
    reseal(frame);
    s.b().node->core().on_packet(s.world.now(), s.b().node->link(), frame);
    y.jfc_indices.consumed.store(y.jfc_indices.produced.load());
    taken = s.count(s.b(), Counter::kUmRx);
  }
  s.world.run_for(seconds(1));
  EXPECT_GT(taken, 2000u);
  EXPECT_LT(taken, 18'000u);
  EXPECT_EQ(y.core().state().arriving.in_use(), 0u);
  others_go_on(s);
}

}  // namespace
}  // namespace ub::sim
