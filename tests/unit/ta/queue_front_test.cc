// SPDX-License-Identifier: Apache-2.0
//
// The front of a send queue: what an application may write there, and what is passed without a packet.
#include "lib/transport/ta/queue_front.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/transport/looking.h"
#include "tests/unit/transport/test_state.h"

namespace ub::ta {
namespace {

constexpr uint32_t kSlots = 64;

struct Front : TestState {
  explicit Front(uint32_t slot_count = kSlots) : slots(slot_count), work(16) {
    index = s->queues.alloc();
    SendQueue& q = queue();
    q = SendQueue{};
    q.slots = slots.data();
    q.indices = &indices;
    q.work = work.data();
    q.slot_mask = slot_count - 1;
    q.work_mask = 15;
    q.owner = 7;
    q.in_use = true;
  }
  SendQueue& queue() { return s->queues[index]; }
  Wqe& post(WrOp op = WrOp::kWrite, uint8_t count = 1) {
    const uint32_t at = indices.produced.load();
    Wqe& w = slots[at % slots.size()];
    w = {};
    w.op = op;
    w.slots = count;
    indices.produced.store(at + count);
    return w;
  }
  const Wqe* front() {
    bool may_look = true;
    return front_element(*s, queue(), &may_look);
  }
  bool broken() { return queue().state == QueueState::kError; }

  std::vector<Wqe> slots;
  std::vector<WrState> work;
  QueueIndices indices{};
  uint32_t index;
};

TEST(QueueFront, is_the_oldest_element_not_started) {
  Front f;
  f.queue().state = QueueState::kReady;
  EXPECT_EQ(f.front(), nullptr);
  f.post();
  f.post();
  EXPECT_EQ(f.front(), &f.slots[0]);
  start_request(f.queue(), f.slots[0], 0, 1);
  EXPECT_EQ(f.front(), &f.slots[1]);
}

TEST(QueueFront, looks_for_posted_elements_only_when_it_may) {
  Front f;
  f.post();
  bool may_look = false;
  EXPECT_EQ(front_element(*f.s, f.queue(), &may_look), nullptr);
  may_look = true;
  EXPECT_NE(front_element(*f.s, f.queue(), &may_look), nullptr);
  EXPECT_FALSE(may_look) << "once";
}

TEST(QueueFront, a_request_has_its_numbers_from_the_start_and_no_deadline_before_it_is_sent) {
  Front f;
  f.queue().next_tassn = Tassn(0xFFFF);
  f.queue().rnr_retry = 3;
  f.s->channels[f.s->channels.alloc()].tpn = 0xAB0001;
  f.post();
  ASSERT_NE(f.front(), nullptr);
  const WrState& wr = start_request(f.queue(), f.slots[0], 1, 2);
  EXPECT_EQ(wr.first_tassn, Tassn(0xFFFF));
  EXPECT_EQ(f.queue().next_tassn, Tassn(1)) << "one for each segment";
  EXPECT_TRUE(wr.deadline.is_never());
  EXPECT_EQ(wr.segments, 2);
  EXPECT_EQ(wr.rnr_left, 3);
  EXPECT_EQ(f.queue().next_slot, 1u);
}

TEST(QueueFront, fillers_are_passed) {
  Front f;
  f.post(WrOp::kSkip, 3);
  f.post();
  EXPECT_EQ(f.front(), &f.slots[3]);
  EXPECT_EQ(f.indices.consumed.load(), 3u) << "nothing older is under way: their room is free";
}

// Nothing bounds what an application fills its ring with but this.
TEST(QueueFront, no_more_than_so_many_fillers_are_passed_at_one_time) {
  Front f;
  for (uint32_t i = 0; i < kPassedSlots; ++i) f.post(WrOp::kSkip);
  f.post(WrOp::kSkip);
  f.post();
  EXPECT_EQ(f.front(), nullptr);
  EXPECT_EQ(f.s->timers.earliest(), f.s->now + nanoseconds(1)) << "the timer brings us back";
  f.s->now += nanoseconds(1);
  EXPECT_NE(f.front(), nullptr);
}

TEST(QueueFront, a_full_table_of_started_requests_holds_the_next_one_back) {
  Front f;
  for (int i = 0; i < 17; ++i) f.post();
  for (int i = 0; i < 16; ++i) start_request(f.queue(), *f.front(), 0, 1);
  EXPECT_EQ(f.front(), nullptr);
  ++f.queue().started_head;
  EXPECT_NE(f.front(), nullptr);
}

TEST(QueueFront, an_element_for_a_dead_peer_completes_without_a_packet) {
  Front f;
  f.post().flags = kWrDead;
  f.post();
  EXPECT_EQ(f.front(), &f.slots[1]);
  EXPECT_TRUE(f.work[0].done);
  EXPECT_EQ(f.work[0].status, CrStatus::kAckTimeout);
}

TEST(QueueFront, an_element_for_a_dead_peer_without_a_fence_ends_whatever_is_awaited) {
  Front f;
  f.post().flags = kWrDead;
  f.post();
  f.queue().unanswered_fenced = 1;
  EXPECT_EQ(f.front(), &f.slots[1]);
}

// What it held back would begin too early if it ended sooner (UB Base Specification Rev 2.0, 7.3.2).
TEST(QueueFront, an_element_for_a_dead_peer_ends_no_sooner_than_its_fence_opens) {
  Front f;
  f.post().flags = kWrDead | kWrFence;
  f.post();
  f.queue().unanswered_fenced = 1;
  EXPECT_EQ(f.front(), nullptr);
  f.queue().unanswered_fenced = 0;
  f.queue().copies_pending = 1;
  EXPECT_EQ(f.front(), nullptr);
  f.queue().copies_pending = 0;
  EXPECT_EQ(f.front(), &f.slots[1]);
}

// ---- what cannot be --------------------------------------------------------------------------------------------

TEST(QueueFront, an_element_that_cannot_be_ends_its_queue) {
  const auto ends = [](void (*change)(Wqe&), WrOp op = WrOp::kWrite, uint8_t slots = 1) {
    Front f;
    Wqe& w = f.post(op, slots);
    change(w);
    const bool none = f.front() == nullptr;
    EXPECT_EQ(none, f.broken());
    EXPECT_EQ(f.count(Counter::kBadElement), none ? 1u : 0u);
    return f.broken();
  };
  EXPECT_FALSE(ends([](Wqe&) {}));
  EXPECT_TRUE(ends([](Wqe& w) { w.slots = 0; }));
  EXPECT_TRUE(ends([](Wqe& w) { w.slots = 2; })) << "beyond what was posted";
  EXPECT_TRUE(ends([](Wqe& w) { w.op = static_cast<WrOp>(15); }));
  EXPECT_TRUE(ends([](Wqe& w) { w.sge_count = kMaxSges + 1; }));
  EXPECT_TRUE(ends([](Wqe& w) { w.sge_count = kMaxSges + 1; }, WrOp::kWrite, 8)) << "even if there is room for them";
  EXPECT_FALSE(ends([](Wqe& w) { w.sge_count = kMaxSges; }, WrOp::kWrite, 8));
  EXPECT_TRUE(ends([](Wqe& w) { w.sge_count = 2; })) << "no room for the second range";
  EXPECT_FALSE(ends([](Wqe& w) { w.sge_count = 5; }, WrOp::kWrite, 2));
  EXPECT_TRUE(ends([](Wqe& w) { w.length = kMaxMessageBytes + 1; }));
  EXPECT_FALSE(ends([](Wqe& w) { w.length = kMaxMessageBytes; }));
  EXPECT_TRUE(ends([](Wqe& w) { w.length = 3; }, WrOp::kFetchAdd, 2)) << "no width of an atomic";
  EXPECT_FALSE(ends([](Wqe& w) { w.length = 8; }, WrOp::kFetchAdd, 2));
  EXPECT_TRUE(ends([](Wqe& w) { w.length = 8; }, WrOp::kFetchAdd, 1)) << "its operands lie in a second slot";
  EXPECT_TRUE(ends([](Wqe& w) { w.flags = kWrInline, w.length = 17; })) << "more than lies in it";
  EXPECT_FALSE(ends([](Wqe& w) { w.flags = kWrInline, w.length = 16; }));
  EXPECT_TRUE(ends([](Wqe& w) { w.flags = kWrInline, w.sge_count = 16, w.length = 8; }, WrOp::kRead))
      << "a READ has ranges";
}

TEST(QueueFront, that_a_queue_ended_for_its_element_is_told_to_its_owner_and_to_who_looks) {
  Front f;
  Looking looking;
  f.s->looker.begin(looking);
  f.queue().jetty = 3;
  f.s->jettys[3].user_data = 88;
  f.post().slots = 0;
  EXPECT_EQ(f.front(), nullptr);
  EXPECT_EQ(looking.notes, (std::vector<Note>{{Stage::kElementRefused, f.index}}));
  Event event{};
  ASSERT_EQ(drain_events(*f.s, &event, 1), 1u);
  EXPECT_EQ(event.kind, EventKind::kJettyError);
  EXPECT_EQ(event.object, 88u);
  EXPECT_EQ(event.owner, 7u);
}

TEST(QueueFront, an_element_over_the_end_of_the_ring_ends_its_queue) {
  Front f;
  f.queue().next_slot = f.queue().produced = f.queue().posted = kSlots - 1;
  f.indices.produced.store(kSlots - 1);
  f.post(WrOp::kFetchAdd, 2).length = 8;
  EXPECT_EQ(f.front(), nullptr);
  EXPECT_TRUE(f.broken());
}

TEST(QueueFront, a_filler_that_cannot_be_ends_its_queue) {
  for (const uint8_t slots : {uint8_t{0}, uint8_t{2}}) {
    Front f;
    f.post(WrOp::kSkip).slots = slots;
    EXPECT_EQ(f.front(), nullptr);
    EXPECT_TRUE(f.broken()) << "one slot was posted, not " << +slots;
  }
}

TEST(QueueFront, an_element_that_begins_before_the_end_and_goes_over_it_ends_its_queue) {
  Front f;
  f.queue().next_slot = f.queue().produced = f.queue().posted = kSlots - 2;
  f.indices.produced.store(kSlots - 2);
  f.post(WrOp::kWrite, 3);
  f.post();
  EXPECT_EQ(f.front(), nullptr);
  EXPECT_TRUE(f.broken());
  Front fits;
  fits.queue().next_slot = fits.queue().produced = fits.queue().posted = kSlots - 2;
  fits.indices.produced.store(kSlots - 2);
  Wqe& last = fits.post(WrOp::kWrite, 2);
  EXPECT_EQ(fits.front(), &last) << "up to the end";
}

TEST(QueueFront, an_index_that_cannot_be_is_not_believed) {
  Front f;
  f.post();
  EXPECT_NE(f.front(), nullptr);
  for (uint32_t index : {kSlots + 1, UINT32_MAX, 0u}) {
    f.indices.produced.store(index);
    EXPECT_FALSE(see_posted(f.queue())) << index;
    EXPECT_EQ(f.queue().posted, 1u);
  }
  f.indices.produced.store(kSlots);
  EXPECT_TRUE(see_posted(f.queue()));
}

// The oldest request that is under way still needs its element.
TEST(QueueFront, the_room_for_what_is_posted_begins_at_the_oldest_element_in_use) {
  Front f;
  f.post(WrOp::kSkip, 5);
  f.post();
  ASSERT_EQ(f.front(), &f.slots[5]);
  start_request(f.queue(), f.slots[5], 0, 1);
  f.indices.produced.store(5 + kSlots + 1);
  EXPECT_FALSE(see_posted(f.queue()));
  f.indices.produced.store(5 + kSlots);
  EXPECT_TRUE(see_posted(f.queue()));
}

// Elements are fetched some at a time.
TEST(QueueFront, what_was_seen_and_not_fetched_needs_no_other_look) {
  Front f(4 * kSlots);
  std::vector<Wqe> source(f.slots.size());
  f.queue().source = source.data();
  for (uint32_t at : {0u, 32u, 64u}) source[at].slots = 32;
  f.indices.produced.store(96);
  bool may_look = true;
  for (uint32_t at : {0u, 32u, 64u}) {
    const Wqe* front = front_element(*f.s, f.queue(), &may_look);
    ASSERT_EQ(front, &f.slots[at]);
    start_request(f.queue(), *front, 0, 1);
  }
  EXPECT_FALSE(may_look);
}

TEST(QueueFront, all_of_a_full_ring_can_be_fetched) {
  Front f(4 * kSlots);
  std::vector<Wqe> source(f.slots.size());
  f.queue().source = source.data();
  f.indices.produced.store(4 * kSlots);
  fetch_all(f.queue());
  EXPECT_EQ(f.queue().produced, 4 * kSlots);
}

TEST(QueueFront, elements_are_taken_over_from_where_the_application_writes_once) {
  Front f;
  std::vector<Wqe> source(kSlots);
  f.queue().source = source.data();
  source[0].op = WrOp::kRead;
  source[0].slots = 1;
  f.indices.produced.store(1);
  ASSERT_NE(f.front(), nullptr);
  source[0].op = WrOp::kWrite;
  EXPECT_EQ(f.front()->op, WrOp::kRead) << "what it changes later is not seen";
}

// ---- targets and rates -----------------------------------------------------------------------------------------

TEST(QueueFront, a_request_may_name_targets_of_its_own_application_alone) {
  Front f;
  Wqe w{};
  EXPECT_FALSE(names_target(*f.s, f.queue(), w));
  w.target = f.s->targets.alloc();
  f.s->targets[w.target].in_use = true;
  f.s->targets[w.target].owner = 7;
  EXPECT_TRUE(names_target(*f.s, f.queue(), w));
  f.s->targets[w.target].owner = 8;
  EXPECT_FALSE(names_target(*f.s, f.queue(), w));
  f.s->targets[w.target].owner = 7;
  f.s->targets[w.target].in_use = false;
  EXPECT_FALSE(names_target(*f.s, f.queue(), w));
  w.target = f.s->targets.high_water() + 1;
  EXPECT_FALSE(names_target(*f.s, f.queue(), w));
}

TEST(QueueFront, a_queue_whose_owner_is_ahead_of_its_rate_is_woken_when_it_may_go_on) {
  Front f;
  OwnerLimits limits;
  cc::Pacer& pacer = limits.pacer;
  EXPECT_TRUE(pacer_allows(*f.s, f.queue()));
  f.queue().limits = &limits;
  EXPECT_TRUE(pacer_allows(*f.s, f.queue()));
  pacer.bytes_per_second = 1'000'000;
  pacer.charge(f.s->now, 1'000'000);
  Looking looking;
  f.s->looker.begin(looking);
  EXPECT_FALSE(pacer_allows(*f.s, f.queue()));
  EXPECT_EQ(looking.notes, (std::vector<Note>{{Stage::kRequestWaits, f.index, uint32_t(RequestWaits::kRate)}}));
  EXPECT_EQ(f.s->timers.earliest(), pacer.ready_at());
  f.s->now = pacer.ready_at();
  EXPECT_TRUE(pacer_allows(*f.s, f.queue()));
}

TEST(QueueFront, the_first_element_that_is_passed_at_one_time_costs_its_owner_more_than_those_behind_it) {
  Front f;
  OwnerLimits limits;
  f.queue().limits = &limits;
  limits.passing.charge(f.s->now, Allowance::kMost - OwnerLimits::kPassedFirst - OwnerLimits::kPassedSlot * 2);
  const Wqe& element = f.post();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(may_pass(*f.s, f.queue(), element));
    EXPECT_TRUE(limits.passing.has_any(f.s->now));
  }
  EXPECT_TRUE(may_pass(*f.s, f.queue(), element));
  EXPECT_FALSE(limits.passing.has_any(f.s->now)) << "that was more than he had";
}

TEST(QueueFront, whoever_asks_before_his_time_pays_for_it) {
  Front f;
  OwnerLimits limits;
  f.queue().limits = &limits;
  limits.passing.charge(f.s->now, Allowance::kMost * 2);
  const Instant ready = limits.passing.ready_at();
  EXPECT_FALSE(may_pass(*f.s, f.queue(), f.post()));
  EXPECT_EQ(limits.passing.ready_at(), ready + OwnerLimits::kPassedSlot);
  EXPECT_EQ(f.s->timers.earliest(), limits.passing.ready_at());
}

}  // namespace
}  // namespace ub::ta
