// SPDX-License-Identifier: Apache-2.0
//
// Whose turn it is on a channel where queues have priorities (ta/turns_by_priority.h).
#include "lib/transport/ta/turns_by_priority.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

// Queues by their number, in the order in which they were added.
using Turns = std::vector<uint32_t>;

// Send queues of one channel, which post short WRITEs.
struct Crowd : Requests {
  explicit Crowd(std::initializer_list<int> priorities) : Requests({.queues = 64}) {
    for (const int priority : priorities) add_queue(priority);
  }
  void add_queue(int priority) {
    SendRingMemory& its = send_rings.emplace_back();
    its.slots.resize(256);
    its.work.resize(256);
    JettyConfig c = jetty_config();
    send_rings.pop_back();  // that of jetty_config(), which is too short
    c.sq.slots = its.slots.data();
    c.sq.slot_count = c.sq.depth = 256;
    c.sq.indices = &its.indices;
    c.sq.work = reinterpret_cast<std::byte*>(its.work.data());
    c.sq.priority = static_cast<uint8_t>(priority);
    queues.push_back({jetty(make(c)).queue, &its});
  }
  void post_to(uint32_t number, uint32_t requests = 1) {
    const auto& [index, its] = queues[number];
    uint32_t at = its->indices.produced.load();
    for (; requests != 0; --requests, ++at) {
      write(WrOp::kWrite);
      indices.produced.store(0);
      its->slots[at] = ring[0];
    }
    its->indices.produced.store(at);
    schedule_queue(*s, index);
  }
  // So many turns, or all that there are.
  Turns take(uint32_t most = UINT32_MAX) {
    Turns all;
    for (tp::TxMessage m{}; all.size() < most && start_next_segment(*s, lane_of(*s, ch()), channel, &m); m = {}) {
      const auto is_its = [&](const auto& q) { return q.first == m.source; };
      all.push_back(static_cast<uint32_t>(std::ranges::find_if(queues, is_its) - queues.begin()));
    }
    return all;
  }

  std::vector<std::pair<uint32_t, SendRingMemory*>> queues;
};

// The longest time, in turns, that the queue had to wait for the next of its own, while it had more to send.
uint32_t longest_wait(const Turns& turns, uint32_t queue) {
  uint32_t longest = 0, waited = 0;
  for (const uint32_t turn : turns) {
    waited = turn == queue ? 0 : waited + 1;
    longest = std::max(longest, waited);
  }
  return longest;
}

TEST(Priority, where_it_is_the_same_turns_go_round) {
  for (const int priority : {0, 5}) {
    Crowd c({priority, priority, priority});
    for (const uint32_t queue : {2, 0, 1}) c.post_to(queue, 2);
    EXPECT_EQ(c.take(), (Turns{2, 0, 1, 2, 0, 1})) << priority;
  }
}

TEST(Priority, a_more_urgent_queue_takes_its_turn_before_others_that_came_first) {
  Crowd c({0, 0, 1});
  c.post_to(0);
  c.post_to(1);
  c.post_to(2);
  EXPECT_EQ(c.take(), (Turns{2, 0, 1}));
}

TEST(Priority, the_most_urgent_come_first_whatever_the_order_in_which_they_came) {
  Turns order = {0, 1, 2};
  do {
    Crowd c({0, 4, 9});
    for (const uint32_t queue : order) c.post_to(queue);
    EXPECT_EQ(c.take(), (Turns{2, 1, 0}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Priority, of_equal_ones_the_first_goes_first) {
  Crowd c({0, 7, 7, 7});
  for (const uint32_t queue : {0, 2, 3, 1}) c.post_to(queue);
  EXPECT_EQ(c.take(), (Turns{2, 3, 1, 0}));
}

// And once more, as it goes on from the place that it has when the other one has had its turn.
TEST(Priority, a_difference_is_how_often_one_passes_the_other_between_two_turns) {
  for (const auto& [low, high] : {std::pair(0, 1), {0, 15}, {6, 9}}) {
    Crowd c({low, high});
    c.post_to(0, 5);
    c.post_to(1, 200);
    Turns expected;
    for (int n = 0; n < 5; ++n) {
      expected.insert(expected.end(), static_cast<size_t>(high - low + (n != 0)), 1);
      expected.push_back(0);
    }
    EXPECT_EQ(c.take(static_cast<uint32_t>(expected.size())), expected) << low << ' ' << high;
  }
}

// Whatever stands between the most and the least urgent.
TEST(Priority, nobody_waits_for_more_than_one_turn_of_each_other_queue_and_fifteen) {
  for (const auto& priorities : {std::initializer_list<int>{0, 15, 15, 15, 14, 13},
                                 {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                 {0, 15},
                                 {0, 0, 7, 7, 7}}) {
    Crowd c(priorities);
    const auto queues = static_cast<uint32_t>(priorities.size());
    for (uint32_t queue = 0; queue < queues; ++queue) c.post_to(queue, 200);
    const Turns turns = c.take(200);  // nobody is out of requests before
    ASSERT_EQ(turns.size(), 200u);
    for (uint32_t queue = 0; queue < queues; ++queue) EXPECT_LE(longest_wait(turns, queue), queues - 1 + 15) << queue;
  }
}

TEST(Priority, an_urgent_queue_starves_none_of_many) {
  Crowd c({0, 0, 0, 0, 15});
  c.post_to(4, 200);
  for (uint32_t queue = 0; queue < 4; ++queue) c.post_to(queue, 20);
  const Turns turns = c.take(200);
  ASSERT_EQ(turns.size(), 200u);
  for (uint32_t queue = 0; queue < 4; ++queue) {
    EXPECT_GE(std::ranges::count(turns, queue), 10) << queue;
    EXPECT_LE(longest_wait(turns, queue), 4u + 15u) << queue;
  }
}

// Requests that come one by one find no backlog of their own in front of them.
TEST(Priority, single_urgent_requests_wait_for_one_turn_at_most) {
  Crowd c({0, 0, 0, 3});
  for (uint32_t queue = 0; queue < 3; ++queue) c.post_to(queue, 50);
  for (int n = 0; n < 30; ++n) {
    c.take(1);
    c.post_to(3);
    EXPECT_EQ(c.take(1), Turns{3});
  }
}

TEST(Priority, a_doorbell_of_a_queue_that_stands_in_line_passes_nobody) {
  Crowd c({0, 2});
  c.post_to(0, 3);
  for (int n = 0; n < 10; ++n) c.post_to(1);
  EXPECT_EQ(c.s->jettys[c.s->queues[c.queues[0].first].jetty].passes, 1);
}

TEST(Priority, only_the_first_in_line_are_looked_at) {
  Crowd c({});
  for (uint32_t queue = 0; queue < kMostLookedAt; ++queue) c.add_queue(2);
  c.add_queue(0);
  c.add_queue(2);
  for (uint32_t queue = 0; queue < c.queues.size(); ++queue) c.post_to(queue);
  const Turns turns = c.take();
  EXPECT_EQ(turns.back(), kMostLookedAt + 1) << "who came last";
}

TEST(Priority, a_channel_without_any_asks_nothing) {
  Crowd c({0, 1});
  c.post_to(0);
  EXPECT_FALSE(c.ch().mixed_line);
  c.post_to(1);
  EXPECT_TRUE(c.ch().mixed_line);
}

TEST(Priority, a_larger_one_than_the_largest_is_refused) {
  Requests r;
  JettyConfig c = r.jetty_config();
  uint32_t id = 0;
  c.sq.priority = kMostPriority + 1;
  EXPECT_EQ(create_jetty(*r.s, c, &id), Status::kInvalid);
  c.sq.priority = kMostPriority;
  EXPECT_EQ(create_jetty(*r.s, c, &id), Status::kOk);
}

}  // namespace
}  // namespace ub::ta
