// SPDX-License-Identifier: Apache-2.0
//
// Unreliable messages: who gets one and under which name it is dropped otherwise, what a packet of one says, and what
// becomes of those that wait (UB Base Specification Rev 2.0, 6.5, 7.2).
#include "lib/transport/resource/owner_limits.h"
#include "lib/transport/ta/datagram_queue.h"
#include "lib/transport/ta/datagram_receiver.h"
#include "lib/transport/ta/datagram_sender.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/unit/resource/objects.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub::ta {
namespace {

// ---- at the target ---------------------------------------------------------------------------------------------

struct Target : Objects {
  Target() {
    JfrConfig c = jfr_config();
    c.mode = Mode::kUm;
    jfr_id = make(c);
    JettyConfig jc = jetty_config(jfr_id);
    jc.mode = Mode::kUm;
    jetty_id = make(jc);
    segment = register_memory(memory);
  }
  void post_receive(uint32_t length = 64) {
    ReceiveRing& r = receive_rings[0];
    Rqe& e = r.slots[r.indices.produced.load() % r.slots.size()];
    e = {};
    e.user_ctx = ++posted;
    e.length = length;
    e.sge_count = e.slots = 1;
    e.sge[0] = {reinterpret_cast<uint64_t>(memory.data()), length, segment.handle};
    r.indices.produced.store(r.indices.produced.load() + 1);
  }
  wire::TaPacket packet() {
    wire::TaPacket p{};
    p.req.rc_id = 4000;
    p.has_ud = p.has_mt = p.has_ofst = true;
    p.ud = 2;
    p.ofst.offset_kib = 0;
    p.mt = {0, wire::kTcTypeQueue, jetty_id};
    p.payload = bytes;
    p.payload_len = 8;
    return p;
  }
  void give(const wire::TaPacket& p) { receiver.on_datagram(1, from, p); }
  // For TestHost::finish_copy.
  void on_copy_done(Instant, CopyTag tag, bool ok) { receiver.on_placed(ta::datagram_copy_of(tag), ok); }

  std::vector<std::byte> memory = std::vector<std::byte>(256);
  RegisteredSegment segment;
  std::byte bytes[64]{std::byte{1}, std::byte{2}, std::byte{3}};
  wire::Endpoint from{wire::IpAddress::from_v4(0x0A000002), wire::kUbUdpPort};
  TestHost host;
  DatagramReceiver<TestHost> receiver{*s, host};
  uint32_t jfr_id = 0, jetty_id = 0;
  uint64_t posted = 0;
};

constexpr Counter kNames[] = {Counter::kUmRx,
                              Counter::kRxDropUmOperation,
                              Counter::kRxDropUmMalformed,
                              Counter::kRxDropUmTooLong,
                              Counter::kRxDropNoSuchQueue,
                              Counter::kRxDropUmMode,
                              Counter::kRxDropUmToken,
                              Counter::kRxTargetNotReady,
                              Counter::kRxDropUmBusy,
                              Counter::kRxDropUmNoReceive,
                              Counter::kRxDropUmNoFit,
                              Counter::kRxDropUmNoMemory};

// Under which name it is counted; there is exactly one.
Counter name_of(void (*change)(Target&, wire::TaPacket&)) {
  Target t;
  t.post_receive();
  wire::TaPacket p = t.packet();
  change(t, p);
  t.give(p);
  Counter found = Counter::kUmRx;
  uint64_t all = 0;
  for (Counter c : kNames) {
    all += t.count(c);
    if (t.count(c) != 0) found = c;
  }
  EXPECT_EQ(all, 1u);
  return found;
}

TEST(DatagramTarget, what_is_dropped_has_a_name) {
  EXPECT_EQ(name_of([](Target&, wire::TaPacket&) {}), Counter::kUmRx);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket& p) { p.mt.tc_id = t.jfr_id; }), Counter::kUmRx) << "a JFR by itself";
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.is_response = true; }), Counter::kRxDropUmOperation);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.req.opcode = wire::TaOpcode::kWrite; }),
            Counter::kRxDropUmOperation);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.has_ud = false; }), Counter::kRxDropUmMalformed);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.ud = 0; }), Counter::kRxDropUmMalformed);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.ofst.offset_kib = 1; }), Counter::kRxDropUmMalformed);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.req.poison = true; }), Counter::kRxDropUmMalformed);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.req.alloc = true; }), Counter::kRxDropUmMalformed);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.payload_len = 1025; }), Counter::kRxDropUmTooLong);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.payload_len = 1024; }), Counter::kRxDropUmNoFit);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket& p) { p.mt.tc_id = t.jetty_id + 1; }), Counter::kRxDropNoSuchQueue);
  EXPECT_EQ(name_of([](Target&, wire::TaPacket& p) { p.mt.tc_type = wire::kTcTypeGroup; }),
            Counter::kRxDropNoSuchQueue);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.jetty(t.jetty_id).mode = Mode::kRm; }), Counter::kRxDropUmMode);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket& p) {
              t.jfr(t.jfr_id).mode = Mode::kRm;
              t.jfr(t.jfr_id).token = Token{true, 7};
              p.mt.tc_id = t.jfr_id;
            }),
            Counter::kRxDropUmMode)
      << "the first reason counts";
  const auto ask = [](Target& t, wire::TaPacket&) { t.jfr(t.jfr_id).token = Token{true, 7}; };
  EXPECT_EQ(name_of(ask), Counter::kRxDropUmToken);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.jfr(t.jfr_id).state = QueueState::kReset; }),
            Counter::kRxTargetNotReady);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.queue(t.jetty_id).state = QueueState::kReset; }),
            Counter::kRxTargetNotReady);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.queue(t.jetty_id).state = QueueState::kError; }),
            Counter::kRxTargetNotReady);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket& p) {
              t.queue(t.jetty_id).state = QueueState::kError;
              p.mt.tc_id = t.jfr_id;
            }),
            Counter::kUmRx)
      << "the JFR does not care";
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) {
              t.jfr(t.jfr_id).state = QueueState::kReset;
              t.s->arriving_of[5] = kArrivingOfOwner;
            }),
            Counter::kRxTargetNotReady);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.s->arriving_of[5] = kArrivingOfOwner; }),
            Counter::kRxDropUmBusy);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.s->arriving_of[5] = kArrivingOfOwner - 1; }), Counter::kUmRx);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) {
              while (t.s->arriving.alloc() != 0) {
              }
            }),
            Counter::kRxDropUmBusy);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { t.jfr(t.jfr_id).consumed = 1; }), Counter::kRxDropUmNoReceive);
  EXPECT_EQ(name_of([](Target& t, wire::TaPacket&) { unregister_segment(*t.s, t.segment.handle); }),
            Counter::kRxDropUmNoMemory);
}

TEST(DatagramTarget, a_completion_says_from_whom_and_how_long) {
  Target t;
  t.post_receive();
  wire::TaPacket p = t.packet();
  p.req.opcode = wire::TaOpcode::kSendImmediate;
  p.has_imm = true;
  p.imm.immediate = 0x77;
  t.give(p);
  const std::vector<Cqe> done = t.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kSuccess);
  EXPECT_EQ(done[0].length, 8u);
  EXPECT_EQ(done[0].opcode, CrOpcode::kSendImm);
  EXPECT_EQ(done[0].immediate, 0x77u);
  EXPECT_EQ(done[0].remote_id, 4000u);
  EXPECT_EQ(done[0].remote_uasid, 2u);
  EXPECT_EQ(std::memcmp(done[0].remote_eid, t.from.ip.bytes.data(), 16), 0);
  EXPECT_EQ(done[0].local_id, t.jetty_id);
  EXPECT_EQ(done[0].flags, kCqeReceive | kCqeJetty);
  EXPECT_EQ(std::memcmp(t.memory.data(), t.bytes, 8), 0);
  EXPECT_EQ(t.s->arriving.in_use(), 0u);
  EXPECT_EQ(t.s->arriving_of[5], 0);
  EXPECT_EQ(t.the_jfc().reserved, 0u);
}

TEST(DatagramTarget, one_that_does_not_fit_ends_its_receive_with_nothing_in_it) {
  Target t;
  t.post_receive(7);
  t.give(t.packet());
  const std::vector<Cqe> done = t.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocLen);
  EXPECT_EQ(done[0].length, 0u);
}

TEST(DatagramTarget, memory_that_answers_later_completes_it_once) {
  Target t;
  t.host.slow = true;
  t.post_receive();
  t.give(t.packet());
  EXPECT_TRUE(t.completions().empty());
  EXPECT_EQ(t.s->arriving_of[5], 1);
  const uint32_t generation = t.s->arriving[1].generation;
  t.receiver.on_placed({1, generation + 1}, true);
  EXPECT_TRUE(t.completions().empty()) << "of another use of the record";
  t.host.finish_copies(t, t.s->now);
  EXPECT_EQ(t.completions().at(0).status, CrStatus::kSuccess);
  t.receiver.on_placed({1, generation}, true);
  EXPECT_TRUE(t.completions().empty());
  EXPECT_EQ(t.s->arriving[1].pending, 0u) << "nothing is counted of one that has ended";
  t.post_receive();
  t.give(t.packet());
  EXPECT_EQ(t.s->arriving[1].generation, generation + 1);
  t.host.lose_pending();
  t.host.finish_copies(t, t.s->now);
  const std::vector<Cqe> lost = t.completions();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].status, CrStatus::kLocAccess);
  EXPECT_EQ(lost[0].length, 0u);
}

TEST(DatagramTarget, who_looks_is_told_of_its_arrival_and_of_its_outcome) {
  Target t;
  t.s->looker.begin(t.host);
  t.post_receive(7);
  t.give(t.packet());
  EXPECT_EQ(t.host.noted(Stage::kDatagramArrived), (std::vector<Note>{{Stage::kDatagramArrived, 1, 8}}));
  const Note completed{Stage::kReceiveCompleted, t.jfc, 1, static_cast<uint32_t>(CrStatus::kLocLen)};
  EXPECT_EQ(t.host.noted(Stage::kReceiveCompleted), (std::vector<Note>{completed}));
}

// ---- links that wait -------------------------------------------------------------------------------------------

TEST(DatagramLinks, one_that_goes_down_leaves_the_line_of_those_with_something_to_send) {
  for (uint32_t gone : {1u, 2u, 3u}) {
    Objects o;
    for (int i = 0; i < 2; ++i) o.s->links[o.s->links.alloc()] = LinkRecord{.up = true, .config = {.mtu = 1024}};
    for (uint32_t link : {1u, 2u, 3u}) activate_link(*o.s, link);
    leave_link(*o.s, gone);
    EXPECT_FALSE(o.s->links[gone].on_active_list);
    leave_link(*o.s, gone);
    for (uint32_t link : {1u, 2u, 3u}) {
      if (link == gone) continue;
      EXPECT_EQ(o.s->active_links.pop_front<&LinkRecord::on_active_list>(o.s->links), link);
    }
    EXPECT_TRUE(o.s->active_links.empty());
  }
}

// ---- whose turn it is ------------------------------------------------------------------------------------------

// Two links, and a queue of datagrams for each.
struct TwoLinks : Objects {
  explicit TwoLinks(bool slow = false) : Objects(config(slow)) {
    s->links[s->links.alloc()] = LinkRecord{.up = true, .config = {.mtu = 1024}};
    segment = register_memory(memory);
    for (uint32_t link : {1u, 2u}) {
      JettyConfig c = jetty_config();
      c.mode = Mode::kUm;
      queues.push_back(jetty(make(c)).queue);
      TargetConfig t = target_config(1 + link);
      t.mode = Mode::kUm;
      t.path.link = link;
      targets.push_back(add(t));
    }
    host.slow = slow;
    s->looker.begin(host);
  }
  static CoreConfig config(bool slow) {
    CoreConfig c = small_tables();
    c.slow_memory = slow;
    return c;
  }
  SendQueue& q(size_t which) { return s->queues[queues[which]]; }
  Peer& peer(size_t which) { return s->peers[s->targets[targets[which]].peer]; }
  void post(size_t which) {
    SendRingMemory& ring = send_rings[which];
    Wqe& w = ring.slots[ring.indices.produced.load() % kRingSlots];
    w = {};
    w.op = WrOp::kSend;
    w.flags = kWrSignaled;
    w.slots = w.sge_count = 1;
    w.length = 8;
    w.target = targets[which];
    w.sge = {reinterpret_cast<uint64_t>(memory.data()), 8, segment.handle};
    ring.indices.produced.store(ring.indices.produced.load() + 1);
    schedule_datagrams(*s, queues[which]);
  }
  size_t send(size_t budget = 64) { return s->active_links.empty() ? 0 : sender.send(budget); }
  /// The links over which they left.
  std::vector<uint32_t> left() const {
    std::vector<uint32_t> all;
    for (const Note& n : host.noted(Stage::kDatagramSent)) all.push_back(n.object);
    return all;
  }
  // For TestHost::finish_copy.
  void on_copy_done(Instant, CopyTag tag, bool ok) {
    const uint32_t number = s->held.on_gather_done(tag, ok);
    if (number != 0) sender.on_gathered(s->held[number]);
  }
  void finish_copies() { host.finish_copies(*this, s->now); }

  std::vector<std::byte> memory = std::vector<std::byte>(256);
  RegisteredSegment segment;
  std::vector<uint32_t> queues, targets;
  TestHost host;
  DatagramSender<TestHost> sender{*s, host};
};
using Links = std::vector<uint32_t>;

TEST(DatagramLinks, with_room_for_one_at_a_time_they_take_turns) {
  TwoLinks t;
  for (int i = 0; i < 3; ++i) {
    for (size_t which : {0u, 1u}) t.post(which);
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t.send(1), 1u);
  EXPECT_EQ(t.left(), (Links{1, 2, 1, 2, 1, 2}));
}

TEST(DatagramLinks, one_whose_path_has_changed_leaves_over_the_new_one_alone) {
  TwoLinks t;
  t.post(0);
  t.peer(0).path.link = 2;
  t.send();
  EXPECT_EQ(t.left(), Links{}) << "it is not the turn of that one";
  t.send();
  EXPECT_EQ(t.left(), Links{2});
}

TEST(DatagramLinks, one_that_goes_down_takes_only_what_was_held_for_it) {
  TwoLinks t(true);
  for (size_t which : {0u, 1u}) t.post(which);
  EXPECT_EQ(t.send(), 2u);
  ASSERT_EQ(t.host.pending_copies(), 2u);
  t.peer(1).path.link = 0;
  leave_link(*t.s, 2);
  EXPECT_EQ(t.count(Counter::kUmTxNoPath), 1u);
  EXPECT_EQ(t.completions().size(), 1u);
  t.finish_copies();
  t.send();
  EXPECT_EQ(t.left(), Links{1});
}

TEST(DatagramLinks, one_that_goes_down_takes_nothing_that_has_left) {
  TwoLinks t(true);
  t.post(0);
  t.send();
  t.finish_copies();
  t.send();
  ASSERT_EQ(t.left(), Links{1});
  t.peer(0).path.link = 0;
  leave_link(*t.s, 1);
  EXPECT_EQ(t.count(Counter::kUmTxNoPath), 0u);
  EXPECT_EQ(t.completions().size(), 1u);
}

// ---- a port without room ---------------------------------------------------------------------------------------

// The time in which others left before it does not count.
TEST(DatagramRoom, each_waits_for_it_as_long_as_its_request_may_take_and_is_lost_then) {
  for (bool slow : {false, true}) {
    TwoLinks t(slow);
    for (int i = 0; i < 2; ++i) t.post(0);
    if (slow) t.send(1);
    t.finish_copies();
    const Duration limit = t.q(0).request_timeout;
    t.s->now += limit / 2;
    EXPECT_EQ(t.send(1), 1u);
    ASSERT_EQ(t.left(), Links{1});
    t.host.full = true;
    t.s->now += limit - nanoseconds(1);
    t.send(1);
    EXPECT_EQ(t.count(Counter::kUmTxNoRoom), 0u) << slow;
    EXPECT_EQ(t.completions().size(), 1u) << slow;
    t.s->now += nanoseconds(1);
    t.send(1);
    EXPECT_EQ(t.count(Counter::kUmTxNoRoom), 1u) << slow;
    const std::vector<Cqe> done = t.completions();
    ASSERT_EQ(done.size(), 1u) << slow;
    EXPECT_EQ(done[0].status, CrStatus::kSuccess) << "like one that the network loses";
  }
}

TEST(DatagramRoom, one_whose_bytes_are_there_waits_no_longer_than_any_other) {
  TwoLinks t(true);
  t.post(0);
  t.send();
  t.finish_copies();
  t.host.full = true;
  t.s->now += t.q(0).request_timeout - nanoseconds(1);
  t.send();
  EXPECT_EQ(t.count(Counter::kUmTxNoRoom), 0u);
  t.s->now += nanoseconds(1);
  t.send();
  EXPECT_EQ(t.count(Counter::kUmTxNoRoom), 1u);
  EXPECT_EQ(t.completions().size(), 1u);
  EXPECT_EQ(t.s->held_datagrams.places.in_use(), 0u);
}

// ---- how many one owner may hold -------------------------------------------------------------------------------

TEST(DatagramsHeld, an_owner_has_no_more_than_so_many_and_looks_again_soon) {
  TwoLinks t(true);
  t.s->held_datagrams_of[5] = kHeldDatagramsOfOwner;
  t.post(0);
  EXPECT_EQ(t.send(), 0u);
  EXPECT_EQ(t.s->timers.earliest(), t.s->now + microseconds(100));
  --t.s->held_datagrams_of[5];
  t.post(0);
  EXPECT_EQ(t.send(), 1u);
  EXPECT_EQ(t.host.pending_copies(), 1u);
}

TEST(DatagramsHeld, where_all_places_are_taken_none_is_begun) {
  TwoLinks t(true);
  std::vector<uint32_t> taken;
  for (uint32_t place = 1; place != 0;) taken.push_back(place = t.s->held_datagrams.places.alloc());
  t.post(0);
  EXPECT_EQ(t.send(), 0u);
  EXPECT_EQ(t.s->timers.earliest(), t.s->now + microseconds(100));
  for (size_t i = 0; i < 4; ++i) t.s->held_datagrams.places.free(taken[i]);
  t.post(0);
  EXPECT_EQ(t.send(), 1u);
}

// Looking again costs others time, and comes out of its owner's allowance.
TEST(DatagramsHeld, an_owner_that_looks_again_and_again_waits_longer) {
  TwoLinks t(true);
  OwnerLimits limits;
  t.q(0).limits = &limits;
  t.s->held_datagrams_of[5] = kHeldDatagramsOfOwner;
  t.post(0);
  for (int i = 0; i < 2000; ++i) schedule_datagrams(*t.s, t.queues[0]);
  ASSERT_GT(limits.passing.ready_at(), t.s->now + microseconds(100));
  t.s->timers.cancel(t.s->timer_of_queue(t.queues[0]));
  schedule_datagrams(*t.s, t.queues[0]);
  EXPECT_EQ(t.s->timers.earliest(), limits.passing.ready_at());
}

// ---- sending ---------------------------------------------------------------------------------------------------

class Sending : public UbPair {
 protected:
  void SetUp() override { target = a.import(now, b, Mode::kUm); }
  void post(uint32_t length) {
    a.post(a.datagrams, WrOp::kSend, target, length);
    a.core->on_posted(now, a.datagram_jetty);
  }
  uint32_t target = 0;
};

TEST_F(Sending, a_datagram_is_padded_with_zeros_and_counted) {
  const uint64_t packets = count(a, Counter::kTxPackets), bytes = count(a, Counter::kTxBytes);
  post(5);
  ASSERT_EQ(a.core->poll_packets(now, 64), 1u);
  const Bytes& frame = a.host.frames.back();
  EXPECT_EQ(frame[wire::kEthSize + 1], std::byte{0}) << "no class of service";
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(frame[frame.size() - wire::kIcrcSize - 3 + i], std::byte{0});
  EXPECT_EQ(count(a, Counter::kTxPackets) - packets, 1u);
  EXPECT_EQ(count(a, Counter::kTxBytes) - bytes, frame.size());
  EXPECT_EQ(count(a, Counter::kUmTx), 1u);
  EXPECT_EQ(a.poll().at(0).status, CrStatus::kSuccess);
}

TEST_F(Sending, who_looks_is_told_that_a_datagram_waits_for_memory_and_that_it_left) {
  a.core->look(true);
  a.host.slow = true;
  post(5);
  a.core->poll_packets(now, 64);
  const uint32_t queue = state(a).jettys[state(a).ids[a.datagram_jetty].record].queue;
  EXPECT_EQ(a.host.noted(Stage::kDatagramHeld), (std::vector<Note>{{Stage::kDatagramHeld, a.link, queue}}));
  EXPECT_TRUE(a.host.noted(Stage::kDatagramSent).empty());
  a.host.finish_copies(*a.core, now);
  a.core->poll_packets(now, 64);
  EXPECT_EQ(a.host.noted(Stage::kDatagramSent), (std::vector<Note>{{Stage::kDatagramSent, a.link, queue}}));
}

TEST_F(Sending, its_completion_names_no_channel) {
  connect();
  post(5);
  a.core->poll_packets(now, 64);
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tpn, 0u);
}

TEST_F(Sending, bytes_that_do_not_come_end_it_with_an_error) {
  a.host.slow = true;
  post(5);
  a.core->poll_packets(now, 64);
  EXPECT_TRUE(a.host.frames.empty());
  a.host.lose_pending();
  a.host.finish_copies(*a.core, now);
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocAccess);
  EXPECT_EQ(state(a).held_datagrams.places.in_use(), 0u);
  a.host.slow = false;
  post(5);
  EXPECT_EQ(a.core->poll_packets(now, 64), 1u);
}

TEST_F(Sending, a_gather_of_a_datagram_that_was_given_up_is_not_that_of_the_next_one) {
  a.host.slow = true;
  post(5);
  a.core->poll_packets(now, 64);
  ASSERT_EQ(a.core->set_state(now, a.datagram_jetty, QueueState::kError), Status::kOk);
  ASSERT_EQ(a.core->set_state(now, a.datagram_jetty, QueueState::kReady), Status::kOk);
  a.poll();
  post(6);
  a.core->poll_packets(now, 64);
  ASSERT_EQ(a.host.pending_copies(), 2u);
  EXPECT_EQ(state(a).held_datagrams.places.high_water(), 1u) << "it has the place of the first one";
  a.host.lost = true;
  a.host.finish_copy(*a.core, now);
  EXPECT_EQ(a.core->poll_packets(now, 64), 0u);
  EXPECT_TRUE(a.poll().empty());
  a.host.lost = false;
  a.host.finish_copies(*a.core, now);
  EXPECT_EQ(a.core->poll_packets(now, 64), 1u);
  EXPECT_EQ(a.poll().at(0).status, CrStatus::kSuccess);
}

TEST_F(Sending, when_its_link_goes_down_what_waits_is_lost_without_an_error) {
  a.host.slow = true;
  post(5);
  a.core->poll_packets(now, 64);
  post(5);
  a.core->link_down(now, a.link);
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 2u);
  for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kUmTxNoPath), 2u);
  EXPECT_EQ(state(a).held_datagrams.places.in_use(), 0u);
}

}  // namespace
}  // namespace ub::ta
