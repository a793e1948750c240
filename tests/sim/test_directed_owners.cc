// SPDX-License-Identifier: Apache-2.0
//
// Several applications share a Core, and one of them cannot be trusted: what it may do to its rings, and whose
// memory, targets and tokens it may name.
#include <memory>
#include "tests/sim/directed_raw.h"

namespace ub::sim {
namespace {

TEST(Element, that_wraps_the_ring__is_bad) {
  Stage s;
  {
    Raw x(s, *s.a().node, 0, 4), y(s, *s.b().node, 0);
    uint32_t target = x.import(y);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
    x.post(x.element(WrOp::kFetchAdd, 8, target, y.region));  // two slots, of which one is left
    EXPECT_TRUE(x.broken());
    EXPECT_EQ(s.count(s.a(), Counter::kBadElement), 1u);
    others_go_on(s);
  }
}

TEST(Element, of_an_impossible_length__is_bad) {
  Stage s;
  for (auto [op, length] : {std::pair{WrOp::kFetchAdd, 1u << 30},
                            {WrOp::kSwap, 0u},
                            {WrOp::kCompareSwap, 12u},
                            {WrOp::kCompareSwap, 32u},
                            {WrOp::kWrite, (1u << 30) + 1},
                            {WrOp::kSend, UINT32_MAX}}) {
    Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
    x.post(x.element(op, length, x.import(y), y.region));
    s.world.run_for(milliseconds(20));
    EXPECT_TRUE(x.broken()) << op_name(op);
  }
  others_go_on(s);
}

// Inline bytes lie where ranges would be; a request that takes none of them still has its ranges.
TEST(Element, read_with_the_inline_flag__its_ranges_lie_within_it) {
  Stage s;
  for (WrOp op : {WrOp::kRead, WrOp::kFetchAdd}) {
    Raw x(s, *s.a().node, 0, 2), y(s, *s.b().node, 0);
    Wqe e = x.element(op, 8, x.import(y), y.region);
    e.flags |= kWrInline;
    e.sge_count = kMaxSges;
    for (Wqe& slot : x.source) slot = Wqe{};
    e.sge.length = 0;
    x.post(e);
    s.world.run_for(milliseconds(20));
    EXPECT_TRUE(x.broken());
  }
  others_go_on(s);
}

TEST(Element, changed_after_it_was_fetched__has_no_effect) {
  Stage s;
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  s.world.network.tamper.add(drop(7, from(0, is_request), 3));
  Wqe e = x.element(WrOp::kWrite, 30'000, target, y.region);
  Wqe& slot = x.post(e);
  slot = x.element(WrOp::kSend, 1u << 30, 0, s.b().target);
  slot.sge = {s.a().app->local->va(), 30'000, s.a().app->local->registered.handle};
  s.world.run_for(seconds(1));
  EXPECT_GE(s.count(s.a(), Counter::kTpTxRetransmitFast) + s.count(s.a(), Counter::kTpTxRetransmitTimeout), 1u);
  EXPECT_EQ(x.status(e.user_ctx), kSuccess);
  EXPECT_EQ(std::memcmp(x.region->memory(), y.region->memory() + Raw::kRegionBytes / 2, 30'000), 0);
  others_go_on(s);
}

TEST(ReceiveElement, changed_while_the_message_arrives__has_no_effect) {
  Stage s;
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  Rqe& receive = y.post_receive(60'000, y.region);
  uint64_t user_ctx = receive.user_ctx;
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 60'000, target, y.region)), kSuccess);
  s.world.network.tamper.add(drop(1, from(0, is_request), 5));
  Wqe e = x.element(WrOp::kSend, 60'000, target, nullptr);
  x.post(e);
  s.world.run_for(microseconds(15));
  ASSERT_EQ(y.jfr_indices.consumed.load(), 1u);
  receive.user_ctx = 0;
  receive.length = 10;
  receive.sge_count = 200;
  receive.sge[0] = {s.b().target->va(), 60'000, s.b().target->registered.handle};
  s.world.run_for(seconds(1));
  EXPECT_EQ(x.status(e.user_ctx), kSuccess);
  EXPECT_EQ(y.status(user_ctx), kSuccess);
  EXPECT_EQ(std::memcmp(x.region->memory(), y.region->memory(), 60'000), 0);
  others_go_on(s);
}

TEST(ReceiveElement, that_cannot_be__is_not_taken) {
  Stage s;
  for (int what = 0; what < 5; ++what) {
    Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
    uint32_t target = x.import(y);
    Rqe& e = y.post_receive(100, y.region);
    if (what == 0) e.slots = 0;
    if (what == 1) e.slots = 2;       // more than was posted
    if (what == 2) e.sge_count = 17;  // too many
    if (what == 3) e.sge_count = 4;   // would lie in another slot
    if (what == 4) y.jfr_indices.produced.store(17);
    Wqe w = x.element(WrOp::kSend, 100, target, nullptr);
    x.post(w);
    s.world.run_for(milliseconds(20));
    EXPECT_EQ(x.indices.retired.load(), 0u) << what;
    y.jfr_indices.produced.store(0);
    y.post_receive(100, y.region);
    s.world.run_for(milliseconds(400));
    EXPECT_EQ(x.status(w.user_ctx), kSuccess) << what;
  }
  others_go_on(s);
}

TEST(Index, that_jumps__neither_loses_nor_repeats_what_was_posted) {
  Stage s;
  Raw x(s, *s.a().node, 0, 8), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  std::vector<Wqe> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(x.element(WrOp::kFetchAdd, 8, target, y.region));
    all.back().op = WrOp::kWrite;
    all.back().slots = 1;
    x.post(all.back());
  }
  uint32_t right = x.indices.produced.load();
  // Over unfinished requests, back over them, and to nowhere.
  for (uint32_t wrong : {right + 4, right + 8, right - 1, right - 5, right - 8, right + (1u << 31), ~0u}) {
    x.indices.produced.store(wrong);
    x.core().on_posted(s.world.now(), x.id);
    s.a().node->drive();
  }
  EXPECT_FALSE(x.broken());
  x.indices.produced.store(right);
  s.world.run_for(milliseconds(20));
  for (const Wqe& e : all) EXPECT_EQ(x.status(e.user_ctx), kSuccess);
  EXPECT_EQ(x.indices.retired.load(), 6u);
  EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  others_go_on(s);
}

TEST(Index, that_jumps_onto_nothing__ends_the_queue_but_not_what_was_started) {
  Stage s;
  Raw x(s, *s.a().node, 0, 8), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  Wqe e = x.element(WrOp::kWrite, 20'000, target, y.region);
  x.post(e);
  x.source[x.indices.produced.load() % 8] = Wqe{};
  x.indices.produced.fetch_add(3);
  x.core().on_posted(s.world.now(), x.id);
  s.world.run_for(milliseconds(20));
  EXPECT_TRUE(x.broken());
  EXPECT_EQ(x.status(e.user_ctx), kSuccess);
  others_go_on(s);
}

// An application that posts, and makes room for completions, as fast as the Core takes them over cannot keep it
// there. Here that needs no thread: the queue has its indices in common with its JFC, so every completion posts.
TEST(Index, that_moves_with_every_look__does_not_hold_the_core) {
  Stage s;
  SimCore& core = s.a().node->core();
  std::vector<Wqe> slots(64), source(64);
  std::vector<Rqe> receives(64);
  for (Wqe& e : source) {
    e = Wqe{};
    e.op = WrOp::kNop;
    e.flags = kWrSignaled;
    e.slots = 1;
  }
  for (Rqe& e : receives) e.slots = 1;
  Bytes work = make_bytes(SimCore::send_queue_work_bytes(16), true);
  for (bool send : {true, false}) {
    Raw x(s, *s.a().node, 0);
    JettyConfig c;
    c.sq = {.slots = slots.data(),
            .source = source.data(),
            .slot_count = 64,
            .depth = 16,
            .indices = &x.jfc_indices,
            .work = work.get(),
            .jfc = x.jfc};
    c.kind = ObjectKind::kJfs;
    JfrConfig r;
    r.slots = receives.data();
    r.slot_count = 64;
    r.indices = &x.jfc_indices;
    r.jfc = x.jfc;
    uint32_t id = 0;
    ASSERT_EQ(send ? core.create_jetty(c, &id) : core.create_jfr(r, &id), Status::kOk);
    x.outcome(x.element(WrOp::kNop, 0, 0, nullptr));  // the first one
    if (send)
      core.on_posted(s.world.now(), id);
    else
      core.set_state(s.world.now(), id, QueueState::kError);
    EXPECT_GE(x.jfc_indices.retired.load(), 1u);
    EXPECT_LE(x.jfc_indices.retired.load(), 64u);
    ASSERT_EQ(send ? core.destroy_jetty(s.world.now(), id) : core.destroy_jfr(s.world.now(), id), Status::kOk);
  }
  others_go_on(s);
}

// A receive queue with many receives posted, beside the one of `Raw`.
struct LongQueue {
  static constexpr uint32_t kSlots = 4096;
  LongQueue(Raw& x, uint32_t jfc) {
    for (uint32_t i = 0; i < kSlots; ++i) {
      receives[i].slots = 1;
      receives[i].user_ctx = i;
    }
    JfrConfig r;
    r.slots = receives.data();
    r.slot_count = kSlots;
    r.indices = &indices;
    r.jfc = jfc;
    r.owner = kFirstHostileOwner;
    EXPECT_EQ(x.core().create_jfr(r, &id), Status::kOk);
  }
  std::vector<Rqe> receives{kSlots};
  QueueIndices indices{};
  uint32_t id = 0;
};

// What one application asks for in one call is no reason for the others to wait, and nothing of it is lost.
TEST(FlushOfReceives, of_a_long_queue__takes_turns_with_the_others) {
  constexpr uint32_t kVisit = 64;
  Stage s;
  SimCore& core = s.a().node->core();
  Raw x(s, *s.a().node, 0);
  std::vector<Cqe> completions(2 * LongQueue::kSlots);
  QueueIndices done{};
  JfcConfig c{.slots = completions.data(),
              .slot_count = 2 * LongQueue::kSlots,
              .depth = 2 * LongQueue::kSlots,
              .indices = &done,
              .cookie = 0,
              .owner = kFirstHostileOwner};
  uint32_t jfc = 0;
  ASSERT_EQ(core.create_jfc(c, &jfc), Status::kOk);
  {
    LongQueue q(x, jfc), other(x, jfc);
    auto set = [&](const LongQueue& which, QueueState state) {
      const uint32_t before = done.produced.load();
      EXPECT_EQ(core.set_state(s.world.now(), which.id, state), Status::kOk);
      return done.produced.load() - before;
    };
    EXPECT_EQ(set(q, QueueState::kError), 0u);
    q.indices.produced.store(5);
    EXPECT_EQ(set(q, QueueState::kError), 5u);  // what was posted in ERROR
    q.indices.produced.store(LongQueue::kSlots);
    other.indices.produced.store(LongQueue::kSlots);
    EXPECT_EQ(set(q, QueueState::kError), kVisit / 2);
    EXPECT_EQ(set(q, QueueState::kError), 0u);  // the rest comes by itself
    EXPECT_EQ(set(other, QueueState::kError), kVisit / 2);
    const uint32_t before = done.produced.load();
    core.poll_packets(s.world.now(), 32, Acks::kNow);
    EXPECT_EQ(done.produced.load() - before, kVisit);
    // READY in between: what is left stays posted.
    EXPECT_EQ(set(other, QueueState::kReady), 0u);
    const uint32_t left = LongQueue::kSlots - other.indices.consumed.load();
    // Nobody rings or reads: the Core's own deadline is all that drives it.
    s.a().node->drive();
    s.world.run_for(milliseconds(1));
    EXPECT_EQ(q.indices.consumed.load(), LongQueue::kSlots);
    EXPECT_EQ(other.indices.consumed.load(), LongQueue::kSlots - left);
    EXPECT_EQ(set(other, QueueState::kError), kVisit / 2);
    s.a().node->drive();
    s.world.run_for(milliseconds(1));
    ASSERT_EQ(done.produced.load(), 2 * LongQueue::kSlots);
    uint64_t next = 0, next_other = 0;
    for (const Cqe& e : completions) {
      EXPECT_EQ(e.status, CrStatus::kWrFlush);
      EXPECT_EQ(e.user_ctx, e.local_id == q.id ? next++ : next_other++);
    }
    EXPECT_EQ(next, LongQueue::kSlots);
    EXPECT_EQ(next_other, LongQueue::kSlots);
    for (uint32_t id : {q.id, other.id}) EXPECT_EQ(core.destroy_jfr(s.world.now(), id), Status::kOk);
  }
  EXPECT_EQ(core.destroy_jfc(jfc), Status::kOk);
  others_go_on(s);
}

// A full JFC in the middle of it, and a queue that goes away before its rest was flushed.
TEST(FlushOfReceives, of_a_long_queue__waits_for_room_and_may_be_destroyed) {
  Stage s;
  SimCore& core = s.a().node->core();
  Raw x(s, *s.a().node, 0);  // its JFC has 64 places
  LongQueue q(x, x.jfc);
  q.indices.produced.store(LongQueue::kSlots);
  core.set_state(s.world.now(), q.id, QueueState::kError);
  uint32_t flushed = 0;
  for (int reads = 0; reads < 20; ++reads) {
    s.a().node->drive();
    s.world.run_for(milliseconds(1));
    const uint32_t produced = x.jfc_indices.produced.load();
    EXPECT_EQ(produced - flushed, 64u);
    x.jfc_indices.consumed.store(flushed = produced);
  }
  EXPECT_EQ(core.destroy_jfr(s.world.now(), q.id), Status::kOk);
  s.a().node->drive();
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(x.jfc_indices.produced.load(), flushed);
  others_go_on(s);
}

TEST(Owner, segment_of_another__is_no_source_and_no_place_for_results) {
  Stage s;
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  y.post_receive(5000, y.region);
  const Region* foreign = s.a().app->local;
  uint64_t word = 0;
  std::memcpy(&word, y.region->memory() + Raw::kRegionBytes / 2, 8);
  for (WrOp op : {WrOp::kWrite, WrOp::kSend, WrOp::kWriteNotify, WrOp::kRead, WrOp::kFetchAdd}) {
    Wqe e = x.element(op, is_atomic(op) ? 8 : 3000, target, y.region);
    e.immediate = 5;
    e.sge = {foreign->va() + 4096, e.length, foreign->registered.handle};
    EXPECT_EQ(x.outcome(e), CrStatus::kLocAccess) << op_name(op);
  }
  uint64_t now = 0;
  std::memcpy(&now, y.region->memory() + Raw::kRegionBytes / 2, 8);
  EXPECT_EQ(now, word);  // not even executed
  others_go_on(s);
}

TEST(Owner, segment_of_another__is_no_receive_buffer) {
  Stage s;
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  for (const Region* foreign : {s.b().app->local, s.b().app->inbox, s.b().target}) {
    uint64_t receive = y.post_receive(5000, foreign).user_ctx;
    EXPECT_EQ(x.outcome(x.element(WrOp::kSend, 3000, target, nullptr)), CrStatus::kRemAccessAbort);
    EXPECT_EQ(y.status(receive), CrStatus::kLocAccess);
  }
  others_go_on(s);
}

TEST(Owner, target_of_another__is_none) {
  Stage s;
  s.warm_up();
  s.b().give_receives(1);
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  // It presents the receiver's token, which only the other application knows.
  uint32_t foreign = s.a().node->import(s.a().app->owner, s.b().receiver(), Mode::kRm);
  EXPECT_EQ(x.outcome(x.element(WrOp::kSend, 100, foreign, nullptr)), CrStatus::kLocOperation);
  EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, foreign, y.region)), CrStatus::kLocOperation);
  EXPECT_EQ(s.b().jfr->posted.size(), 1u);
  others_go_on(s);
}

// The handle comes to somebody else while packets of the request that named it are lost: what goes again must not
// carry the other's token. A WRITE carries none.
TEST(Owner, target_handed_on_in_flight__a_message_ends) {
  Stage s;
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  y.post_receive(5000, y.region);
  s.world.network.tamper.add(drop(3, from(0, is_request)));
  Wqe e = x.element(WrOp::kSend, 5000, target, nullptr);
  x.post(e);
  ASSERT_EQ(x.core().remove_target(target), Status::kOk);
  ASSERT_EQ(s.a().node->import(s.a().app->owner, s.b().receiver(), Mode::kRm), target);
  s.world.run_for(seconds(1));
  EXPECT_EQ(x.status(e.user_ctx), CrStatus::kLocAccess);

  target = x.import(y);
  s.world.network.tamper.add(drop(3, from(0, is_request)));
  e = x.element(WrOp::kWrite, 5000, target, y.region);
  x.post(e);
  ASSERT_EQ(x.core().remove_target(target), Status::kOk);
  ASSERT_EQ(s.a().node->import_again(s.a().app->owner, s.b().receiver(), Mode::kRm, s.b().jfr->token.value), target);
  s.world.run_for(seconds(1));
  EXPECT_EQ(x.status(e.user_ctx), kSuccess);
  others_go_on(s);
}

TEST(Owner, token_of_another__is_not_revoked_by_a_message_to_ones_own_queue) {
  Stage s;
  Raw x(s, *s.a().node, 0), y(s, *s.b().node, 0);
  uint32_t target = x.import(y);
  for (const Region* r : {s.b().target, y.region}) {
    y.post_receive(100, y.region);
    Wqe e = x.element(WrOp::kSendInvalidate, 100, target, nullptr);
    e.token_id = r->registered.token_id;
    e.token_value = r->token.value;
    EXPECT_EQ(x.outcome(e), kSuccess);
  }
  EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), CrStatus::kRemAccessAbort);  // its own was
  others_go_on(s);
}

// A deadline of hours keeps a channel no longer than the request that has it.
TEST(Owner, long_deadlines_of_another__do_not_keep_a_dead_peer) {
  Stage s;
  Raw x(s, *s.a().node, 0, 16, 31), y(s, *s.b().node, 0);
  ASSERT_EQ(x.outcome(x.element(WrOp::kWrite, 100, x.import(y), y.region)), kSuccess);
  s.world.network.cut(0, 1, true);
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
  s.world.run_for(seconds(1));
  for (const ChannelInfo& c : s.channels(s.a())) EXPECT_EQ(c.queued_messages, 0u);
}

// Memory that answers later than packets come: a message holds up after so many copies.
TEST(Pending, long_send__keeps_few_copies_under_way) {
  Options o = directed_options();
  o.lossless = o.icrc_optional = true;  // all of it arrives at once
  o.host.pending_ns = 400'000;
  Stage s(o);
  s.write(30'000);
  s.finish();
  s.quiet();
  s.b().jfr->buffer_bytes = 300'000;
  s.b().give_receives(1, 300'000);
  const Wr& w = s.send(300'000);
  s.world.options.host.pending = 1;
  uint32_t most = 0;
  const CoreState& state = s.b().node->core().state();
  for (int i = 0; i < 20'000 && w.state == Wr::State::kOutstanding; ++i) {
    s.world.run_for(microseconds(2));
    for (uint32_t c = 1; c <= state.channels.high_water(); ++c) most = std::max(most, state.channels[c].open.copies);
  }
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(most, 64u);
  s.check_memory();
}

// The record of its queue is nobody's while copies for it are under way: how they end says nothing about another's.
TEST(Pending, responses_of_a_destroyed_queue__reach_no_other) {
  Options o = directed_options();
  o.host.pending_ns = 5'000'000;
  Stage s(o);
  Raw y(s, *s.b().node, 1);
  auto x = std::make_unique<Raw>(s, *s.a().node, 0);
  const CoreState& state = s.a().node->core().state();
  auto record_of = [&](const Raw& r) { return state.jettys[state.ids[r.id].record].queue; };
  uint32_t target = x->import(y);
  ASSERT_EQ(x->outcome(x->element(WrOp::kWrite, 100, target, y.region)), kSuccess);
  const uint32_t record = record_of(*x);
  const SendQueue& queue = state.queues[record];
  s.world.options.host.pending = 1;
  x->post(x->element(WrOp::kRead, 4000, target, y.region));
  for (int i = 0; i < 100'000 && queue.copies_pending == 0; ++i) s.world.run_for(microseconds(1));
  ASSERT_NE(queue.copies_pending, 0u);
  s.world.options.host.pending = 0;
  x.reset();
  for (uint32_t n = 0; n < 20; ++n) {
    Raw z(s, *s.a().node, 2);
    EXPECT_NE(record_of(z), record);
  }
  s.world.run_for(milliseconds(20));
  EXPECT_EQ(queue.copies_pending, 0u);
  Raw z(s, *s.a().node, 2);
  EXPECT_EQ(record_of(z), record);
  others_go_on(s);
}

}  // namespace
}  // namespace ub::sim
