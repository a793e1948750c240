// SPDX-License-Identifier: Apache-2.0
//
// Completions into a JFC's ring: room, places that are promised, events, and who waits for room.
#include "lib/transport/ta/completion.h"

#include <gtest/gtest.h>

#include <optional>
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
  void arm(Armed armed) { ub::arm(indices, armed); }
  void moderate(std::optional<uint16_t> count, std::optional<Duration> period) {
    EXPECT_EQ(moderate_jfc(*s, jfc, {count, period}), Status::kOk);
  }
  void rearm(Armed armed = Armed::kAny) {
    arm(armed);
    check_armed(*s, jfc);
  }
  // Time passes, and the timers that are due fire, as in Core::on_timer().
  void pass(Duration d) {
    s->now = s->now + d;
    uint32_t timer;
    while (s->timers.pop_due(s->now, &timer)) end_period(*s, s->jfc_timers.index_of(timer));
  }
  bool told() { return events() == std::vector<EventKind>{EventKind::kCompletion}; }
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

// ---- moderation ------------------------------------------------------------------------------------------------

TEST(Moderation, an_event_tells_of_so_many_completions) {
  Completions c(8);
  c.moderate(3, {});
  for (int round = 0; round < 3; ++round) {
    c.rearm();
    for (int i = 0; i < 2; ++i) {
      c.push();
      EXPECT_TRUE(c.armed() && c.events().empty()) << round << ": " << i;
    }
    c.push();
    EXPECT_FALSE(c.armed()) << round;
    EXPECT_TRUE(c.told()) << round;
    c.push();
    EXPECT_TRUE(c.events().empty()) << "it is not armed";
    c.consume(4);
  }
  EXPECT_TRUE(c.s->timers.earliest().is_never());
}

TEST(Moderation, completions_that_were_read_meanwhile_count) {
  Completions c(8);
  c.moderate(3, {});
  c.rearm();
  for (int i = 0; i < 2; ++i) {
    c.push();
    c.consume(1);
  }
  EXPECT_TRUE(c.armed());
  c.push();
  EXPECT_TRUE(c.told());
}

TEST(Moderation, what_is_unread_when_it_is_armed_counts_and_what_was_read_before_does_not) {
  Completions c(8);
  c.moderate(3, {});
  for (int i = 0; i < 5; ++i) c.push();
  c.consume(3);
  c.rearm();
  EXPECT_TRUE(c.armed()) << "two of three";
  c.push();
  EXPECT_TRUE(c.told());
  c.rearm();
  EXPECT_TRUE(c.told()) << "three wait already";
  c.consume(3);
  c.rearm();
  c.push();
  c.push();
  EXPECT_TRUE(c.armed());
  c.rearm();
  EXPECT_TRUE(c.armed()) << "armed again, the same two are unread";
  c.consume(2);
  c.rearm();
  c.push();
  EXPECT_TRUE(c.armed()) << "armed again, the two that were read do not count";
}

// Else it would be full before, and no event would ever come.
TEST(Moderation, no_more_completions_are_awaited_than_the_jfc_may_hold) {
  Completions c(4);
  c.moderate(100, {});
  c.rearm();
  for (int i = 0; i < 3; ++i) c.push();
  EXPECT_TRUE(c.armed());
  c.push();
  EXPECT_TRUE(c.told());
}

TEST(Moderation, no_more_are_awaited_than_find_room_beside_places_that_are_promised) {
  Completions c(4);
  c.moderate(4, {});
  c.rearm();
  c.s->jfcs[c.jfc].reserved = 1;
  for (int i = 0; i < 3; ++i) c.push();
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_FALSE(c.armed()) << "until somebody reads, only the message with the promised place can complete";
  c.rearm();
  EXPECT_FALSE(c.armed()) << "nobody has read";
}

TEST(Moderation, a_jfc_that_promised_all_its_places_tells_of_nothing) {
  Completions c(2);
  c.moderate(3, {});
  c.rearm();
  c.s->jfcs[c.jfc].reserved = 2;
  EXPECT_FALSE(jfc_has_room(*c.s, c.jfc));
  EXPECT_EQ(c.events(), (Kinds{EventKind::kJfcError}));
  EXPECT_TRUE(c.armed());
}

TEST(Moderation, an_event_comes_a_period_after_the_first_completion) {
  Completions c(8);
  c.moderate({}, microseconds(50));
  c.rearm();
  c.pass(microseconds(80));
  EXPECT_TRUE(c.events().empty()) << "nothing to tell of";
  c.push();
  c.pass(microseconds(30));
  c.push();
  EXPECT_EQ(c.s->timers.earliest(), c.s->now + microseconds(20)) << "the second one does not put it off";
  c.pass(microseconds(20) - nanoseconds(1));
  EXPECT_TRUE(c.armed() && c.events().empty());
  c.pass(nanoseconds(1));
  EXPECT_FALSE(c.armed());
  EXPECT_TRUE(c.told());
  c.pass(seconds(1));
  EXPECT_TRUE(c.events().empty()) << "once";
}

TEST(Moderation, whichever_is_first_counts) {
  Completions c(8);
  c.moderate(2, microseconds(50));
  c.rearm();
  c.push();
  c.pass(microseconds(50));
  EXPECT_TRUE(c.told()) << "the period";
  c.consume(1);
  c.rearm();
  c.push();
  c.push();
  EXPECT_TRUE(c.told()) << "the number";
  EXPECT_TRUE(c.s->timers.earliest().is_never()) << "its period is over, too";
  c.consume(2);
  c.rearm();
  c.push();
  c.pass(microseconds(49));
  EXPECT_TRUE(c.armed());
  c.pass(microseconds(1));
  EXPECT_TRUE(c.told());
}

TEST(Moderation, the_period_of_what_waits_when_it_is_armed_begins_then) {
  Completions c(8);
  c.moderate(4, microseconds(50));
  c.push();
  c.pass(microseconds(40));
  c.rearm();
  c.pass(microseconds(30));
  c.rearm();
  c.pass(microseconds(19));
  EXPECT_TRUE(c.armed()) << "to arm again does not put it off";
  c.pass(microseconds(1));
  EXPECT_TRUE(c.told());
}

// A program takes an event without a completion for an error.
TEST(Moderation, no_event_tells_of_what_was_read) {
  Completions c(8);
  c.moderate({}, microseconds(50));
  c.rearm();
  c.push();
  c.consume(1);
  c.pass(microseconds(50));
  EXPECT_TRUE(c.armed() && c.events().empty());
  c.push();
  c.pass(microseconds(50));
  EXPECT_TRUE(c.told());
  c.consume(1);
  c.rearm();
  c.push();
  c.consume(1);
  c.pass(microseconds(20));
  c.rearm();
  c.push();
  c.pass(microseconds(30));
  EXPECT_TRUE(c.armed()) << "armed anew, it has a whole period";
  c.pass(microseconds(20));
  EXPECT_TRUE(c.told());
}

TEST(Moderation, failures_and_solicited_completions_are_told_at_once) {
  for (Armed how : {Armed::kAny, Armed::kSolicited}) {
    for (bool failed : {false, true}) {
      Completions c(8);
      c.moderate(100, seconds(1));
      const auto push = [&] { failed ? c.push(0, CrStatus::kLocAccess) : c.push(kCqeSolicited); };
      c.rearm(how);
      c.push();
      EXPECT_TRUE(c.armed());
      push();
      EXPECT_FALSE(c.armed());
      EXPECT_TRUE(c.told());
      EXPECT_TRUE(c.s->timers.earliest().is_never());
      c.rearm(how);
      EXPECT_TRUE(c.told()) << "it waits";
      c.consume(2);
      c.push();
      c.rearm(how);
      EXPECT_TRUE(c.armed()) << "it was read";
    }
  }
}

TEST(Moderation, armed_for_solicited_ones_no_others_are_told_ever) {
  Completions c(8);
  c.moderate(2, microseconds(50));
  c.rearm(Armed::kAny);
  c.push();
  c.rearm(Armed::kSolicited);
  c.push();
  c.push();
  c.pass(seconds(1));
  EXPECT_TRUE(c.armed() && c.events().empty());
}

TEST(Moderation, of_one_or_of_nothing_tells_of_every_completion) {
  const std::optional<uint16_t> counts[] = {uint16_t{1}, uint16_t{0}, {}};
  for (const auto& count : counts) {
    Completions c(8);
    c.moderate(count, count == uint16_t{1} ? seconds(1) : Duration{});
    c.rearm();
    c.push();
    EXPECT_TRUE(c.told());
  }
}

TEST(Moderation, what_is_not_given_stays) {
  Completions c(8);
  c.moderate(2, {});
  c.moderate({}, microseconds(50));
  c.rearm();
  c.push();
  EXPECT_TRUE(c.armed());
  c.push();
  EXPECT_TRUE(c.told());
  c.consume(2);
  c.moderate(5, {});
  c.rearm();
  c.push();
  c.pass(microseconds(50));
  EXPECT_TRUE(c.told());
}

TEST(Moderation, an_armed_jfc_obeys_the_new_values_at_once) {
  Completions c(8);
  c.moderate(5, seconds(1));
  c.rearm();
  c.push();
  c.push();
  c.moderate(3, {});
  EXPECT_TRUE(c.armed());
  c.moderate({}, microseconds(50));
  c.pass(microseconds(50));
  EXPECT_TRUE(c.told()) << "the new period, from now on";
  c.rearm();
  EXPECT_TRUE(c.armed());
  c.moderate(2, {});
  EXPECT_TRUE(c.told()) << "there are so many";
}

TEST(Moderation, a_period_that_was_running_is_forgotten_with_its_length) {
  Completions c(8);
  c.moderate(5, microseconds(50));
  c.rearm();
  c.push();
  c.moderate({}, microseconds(80));
  c.pass(microseconds(79));
  EXPECT_TRUE(c.armed()) << "longer";
  c.moderate({}, Duration{});
  c.pass(seconds(1));
  EXPECT_TRUE(c.armed()) << "none: it waits for five";
  for (int i = 0; i < 4; ++i) c.push();
  EXPECT_TRUE(c.told());
}

TEST(Moderation, is_that_of_one_jfc_and_ends_with_it) {
  Completions c(8);
  EXPECT_EQ(moderate_jfc(*c.s, c.jfc + 1, {}), Status::kInvalid) << "there is none";
  c.moderate(5, microseconds(50));
  c.rearm();
  c.push();
  ASSERT_EQ(destroy_jfc(*c.s, c.jfc), Status::kOk);
  EXPECT_TRUE(c.s->timers.earliest().is_never());
  EXPECT_EQ(moderate_jfc(*c.s, c.jfc, {}), Status::kInvalid);
  const JfcConfig config{.slots = c.slots.data(), .slot_count = 8, .depth = 8, .indices = &c.indices};
  c.indices.produced.store(0);
  uint32_t next = 0;
  ASSERT_EQ(create_jfc(*c.s, config, &next), Status::kOk);
  ASSERT_EQ(next, c.jfc) << "the same record";
  c.rearm();
  c.push();
  EXPECT_TRUE(c.told());
  c.consume(1);
  c.moderate({}, Duration{});
  c.rearm();
  c.push();
  EXPECT_TRUE(c.told()) << "the former number is forgotten";
}

// ---- room ------------------------------------------------------------------------------------------------------

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
