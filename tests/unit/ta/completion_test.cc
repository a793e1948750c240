// SPDX-License-Identifier: Apache-2.0
//
// Completions into a JFC's ring: room, places that are promised, events, and who waits for room.
#include "lib/transport/ta/completion.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/transport/resource/objects.h"
#include "lib/transport/ta/refused_requests.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/waiting_list.h"
#include "tests/unit/resource/objects.h"

namespace ub::ta {
namespace {

struct Completions : TestState {
  explicit Completions(uint32_t depth = 4) : slots(8) {
    JfcConfig c;
    c.slots = slots.data();
    c.slot_count = 8;
    c.depth = depth;
    c.indices = &indices;
    c.cookie = 77;
    EXPECT_EQ(create_jfc(*s, c, &jfc), Status::kOk);
  }
  void push(uint8_t flags = 0, CrStatus status = CrStatus::kSuccess) {
    Cqe cqe{};
    cqe.user_ctx = ++pushed;
    cqe.flags = flags;
    cqe.status = status;
    push_completion(*s, jfc, cqe);
  }
  void consume(uint32_t n) { indices.consumed.store(indices.consumed.load() + n); }
  void arm(Armed armed) { indices.armed.store(static_cast<uint32_t>(armed)); }
  bool armed() const { return indices.armed.load() != static_cast<uint32_t>(Armed::kNo); }
  std::vector<EventKind> events() {
    Event out[8];
    std::vector<EventKind> all;
    const size_t n = drain_events(*s, out, 8);
    for (size_t i = 0; i < n; ++i) all.push_back(out[i].kind);
    return all;
  }

  std::vector<Cqe> slots;
  QueueIndices indices{};
  uint32_t jfc = 0;
  uint64_t pushed = 0;
};
using Kinds = std::vector<EventKind>;

TEST(Completion, goes_into_the_ring_in_order_across_its_end) {
  Completions c;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(jfc_has_room(*c.s, c.jfc));
    c.push();
    c.consume(1);
  }
  EXPECT_EQ(c.indices.produced.load(), 10u);
  EXPECT_EQ(c.slots[9 % 8].user_ctx, 10u);
}

TEST(Completion, has_no_room_beyond_the_depth_and_says_so_once) {
  Completions c(2);
  c.push();
  EXPECT_TRUE(jfc_has_room(*c.s, c.jfc));
  c.push();
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_EQ(c.events(), (Kinds{EventKind::kJfcError}));
  EXPECT_EQ(c.count(Counter::kJfcFull), 1u);
  c.consume(1);
  EXPECT_TRUE(jfc_has_room(*c.s, c.jfc));
  c.push();
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_EQ(c.events(), (Kinds{EventKind::kJfcError})) << "another episode";
}

TEST(Completion, a_place_that_is_promised_is_taken) {
  Completions c(2);
  c.s->jfcs[c.jfc].reserved = 2;
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  c.s->jfcs[c.jfc].reserved = 1;
  EXPECT_TRUE(jfc_has_room(*c.s, c.jfc));
}

TEST(Completion, an_index_of_the_application_that_cannot_be_frees_nothing) {
  Completions c(2);
  c.push();
  c.push();
  c.indices.consumed.store(5);
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  c.indices.consumed.store(UINT32_MAX - 20);
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  c.s->jfcs[c.jfc].reserved = 2;
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc)) << "and no place that is promised";
}

// No more than the slots of the ring can wait in it.
TEST(Completion, an_index_of_the_application_that_cannot_be_tells_of_nothing_that_it_may_have_seen) {
  for (uint32_t unread : {8u, 9u}) {
    Completions c;
    c.push(kCqeSolicited);
    for (int i = 0; i < 5; ++i) c.push();
    c.indices.consumed.store(c.indices.produced.load() - unread);
    c.arm(Armed::kSolicited);
    check_armed(*c.s, c.jfc);
    EXPECT_EQ(c.armed(), unread == 9) << unread;
  }
}

TEST(Completion, an_armed_jfc_tells_of_the_next_one_once) {
  Completions c;
  c.push();
  EXPECT_TRUE(c.events().empty());
  c.arm(Armed::kAny);
  c.push();
  EXPECT_EQ(c.events(), (Kinds{EventKind::kCompletion}));
  EXPECT_FALSE(c.armed());
  c.push();
  EXPECT_TRUE(c.events().empty());
}

TEST(Completion, armed_for_solicited_ones_it_tells_of_those_and_of_failures) {
  Completions c;
  c.arm(Armed::kSolicited);
  c.push();
  EXPECT_TRUE(c.armed());
  c.push(kCqeSolicited);
  EXPECT_FALSE(c.armed());
  c.arm(Armed::kSolicited);
  c.push(0, CrStatus::kLocAccess);
  EXPECT_FALSE(c.armed());
}

TEST(Completion, arming_tells_at_once_of_what_waits_and_not_of_what_was_consumed) {
  Completions c;
  c.arm(Armed::kAny);
  check_armed(*c.s, c.jfc);
  EXPECT_TRUE(c.armed()) << "nothing waits";
  c.arm(Armed::kNo);
  c.push(kCqeSolicited);
  c.push();
  c.arm(Armed::kSolicited);
  check_armed(*c.s, c.jfc);
  EXPECT_FALSE(c.armed());
  EXPECT_EQ(c.events(), (Kinds{EventKind::kCompletion}));
  c.consume(1);
  c.arm(Armed::kSolicited);
  check_armed(*c.s, c.jfc);
  EXPECT_TRUE(c.armed()) << "the solicited one was consumed";
  EXPECT_TRUE(c.events().empty());
  c.arm(Armed::kAny);
  check_armed(*c.s, c.jfc);
  EXPECT_FALSE(c.armed());
  EXPECT_EQ(c.events(), (Kinds{EventKind::kCompletion}));
}

// Receives have places that were promised to them, and complete without asking for room.
TEST(Completion, when_room_was_made_the_episode_of_a_full_jfc_is_over) {
  Completions c(2);
  for (int i = 0; i < 2; ++i) c.push();
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_EQ(c.events(), (Kinds{EventKind::kJfcError}));
  c.consume(2);
  resume_jfc(*c.s, c.jfc);
  for (int i = 0; i < 2; ++i) c.push();
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_EQ(c.events(), (Kinds{EventKind::kJfcError}));
}

TEST(Completion, with_room_for_one_at_a_time_those_who_wait_take_turns) {
  Objects o;
  o.the_jfc().depth = 1;
  for (int i = 0; i < 3; ++i) {
    const uint32_t id = o.make_jetty();
    Objects::SendRingMemory& ring = o.send_rings.back();
    for (uint32_t k = 0; k < 3; ++k) {
      ring.slots[k] = Wqe{};
      ring.slots[k].op = WrOp::kNop;
      ring.slots[k].flags = kWrSignaled;
      ring.slots[k].slots = 1;
    }
    ring.indices.produced.store(3);
    schedule_queue(*o.s, o.jetty(id).queue);
  }
  std::vector<uint32_t> order;
  for (int i = 0; i < 9; ++i) {
    const std::vector<Cqe> done = o.completions();
    ASSERT_EQ(done.size(), 1u) << i;
    order.push_back(done[0].local_id);
    resume_jfc(*o.s, o.jfc);
  }
  for (size_t i = 1; i < 7; ++i) EXPECT_NE(order[i], order[i + 1]) << i;
}

// A ring: each gets its try in the order in which they came.
TEST(Completion, who_waits_for_room_stands_in_line_once) {
  Completions c;
  for (int i = 0; i < 3; ++i) c.s->queues[c.s->queues.alloc()] = SendQueue{};
  const auto waiter = [&](uint32_t queue) { return c.s->queue_waiters.of(queue); };
  const auto behind = [&](uint32_t queue) { return c.s->queues[queue].waiter.in_line.next; };
  for (uint32_t queue : {1u, 2u, 3u, 2u}) wait_for_room(*c.s, c.jfc, waiter(queue));
  EXPECT_EQ(c.s->jfcs[c.jfc].waiting.back(), waiter(3));
  EXPECT_EQ(behind(3), waiter(1));
  EXPECT_EQ(behind(1), waiter(2));
  EXPECT_EQ(behind(2), waiter(3));
  EXPECT_EQ(c.s->blocked_jfcs.back(), c.jfc);
  stop_waiting(*c.s, c.jfc, waiter(3));
  EXPECT_EQ(c.s->jfcs[c.jfc].waiting.back(), waiter(2));
  EXPECT_EQ(behind(2), waiter(1));
  stop_waiting(*c.s, c.jfc, waiter(1));
  stop_waiting(*c.s, c.jfc, waiter(1));
  stop_waiting(*c.s, c.jfc, waiter(2));
  EXPECT_TRUE(c.s->jfcs[c.jfc].waiting.empty());
}

// ---- lists of send queues --------------------------------------------------------------------------------------

TEST(WaitingList, queues_stand_in_line_and_any_may_leave) {
  TestState t;
  const uint32_t channel = t.s->channels.alloc();
  t.s->channels[channel] = tp::Channel{};
  for (int i = 0; i < 4; ++i) t.s->queues[t.s->queues.alloc()] = SendQueue{};
  for (uint32_t queue : {1u, 2u, 3u, 4u}) join_list(*t.s, queue, channel);
  const auto line = [&] {
    std::vector<uint32_t> all;
    const IndexList& list = t.s->channels[channel].queues;
    if (list.empty()) return all;
    for (uint32_t q = list.front<&SendQueue::in_line>(t.s->queues); q != 0;) {
      all.push_back(q);
      q = list.behind<&SendQueue::in_line>(t.s->queues, q);
    }
    return all;
  };
  EXPECT_EQ(line(), (std::vector<uint32_t>{1, 2, 3, 4}));
  leave_list(*t.s, 3);
  leave_list(*t.s, 3);
  EXPECT_EQ(line(), (std::vector<uint32_t>{1, 2, 4}));
  leave_list(*t.s, 4);
  EXPECT_EQ(t.s->channels[channel].queues.back(), 2u);
  leave_list(*t.s, 1);
  join_list(*t.s, 3, channel);
  EXPECT_EQ(line(), (std::vector<uint32_t>{2, 3}));
  leave_list(*t.s, 2);
  leave_list(*t.s, 3);
  EXPECT_TRUE(t.s->channels[channel].queues.empty());
}

TEST(WaitingList, of_a_link_is_not_that_of_a_channel) {
  TestState t;
  const uint32_t link = t.s->links.alloc();
  t.s->links[link] = LinkRecord{};
  t.s->queues[t.s->queues.alloc()] = SendQueue{};
  join_list(*t.s, 1, link | kWaitsForLink);
  EXPECT_EQ(t.s->links[link].queues.back(), 1u);
  leave_list(*t.s, 1);
  EXPECT_TRUE(t.s->links[link].queues.empty());
}

// ---- refused requests ------------------------------------------------------------------------------------------

TEST(RefusedRequests, are_a_ring_by_age_however_they_come_and_go) {
  std::vector<WrState> work(8);
  SendQueue q{};
  q.work = work.data();
  q.work_mask = 7;
  q.started_head = 6;  // numbers 6 .. 13: their places wrap
  const auto by_age = [&] {
    std::vector<uint32_t> all;
    uint32_t index = q.oldest_refused;
    for (uint32_t left = q.retries; left != 0; --left, index = work[index].newer_refused) {
      all.push_back(q.started_head + age_of(q, index));
    }
    return all;
  };
  for (uint32_t number : {9u, 7u, 12u, 6u, 10u}) link_refused(q, number);
  EXPECT_EQ(by_age(), (std::vector<uint32_t>{6, 7, 9, 10, 12}));
  unlink_refused(q, work[9 & 7]);
  unlink_refused(q, work[6 & 7]);
  EXPECT_EQ(by_age(), (std::vector<uint32_t>{7, 10, 12}));
  unlink_refused(q, work[12 & 7]);
  link_refused(q, 8);
  EXPECT_EQ(by_age(), (std::vector<uint32_t>{7, 8, 10}));
  for (uint32_t number : {7u, 8u, 10u}) unlink_refused(q, work[number & 7]);
  EXPECT_EQ(q.retries, 0u);
}

}  // namespace
}  // namespace ub::ta
