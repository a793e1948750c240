// SPDX-License-Identifier: Apache-2.0
//
// Which requests of a queue wait, bit by bit.
#include "lib/transport/ta/waiting_requests.h"

#include <gtest/gtest.h>

#include <vector>

namespace ub::ta {
namespace {

using Numbers = std::vector<uint32_t>;

Numbers all(const SendQueue& q) {
  Numbers numbers;
  find_waiting(q, [&](uint32_t number) {
    numbers.push_back(number);
    return false;
  });
  return numbers;
}

TEST(WaitingRequests, are_found_from_the_oldest_on) {
  SendQueue q{};
  for (uint32_t number : {7u, 9u, 70u}) let_wait(q, number);
  EXPECT_EQ(all(q), (Numbers{7, 9, 70}));
  EXPECT_TRUE(find_waiting(q, [](uint32_t number) { return number == 9; }));
  EXPECT_FALSE(find_waiting(q, [](uint32_t number) { return number == 8; }));
  EXPECT_TRUE(waits(q, 70));
  for (uint32_t number : {6u, 8u, 71u}) EXPECT_FALSE(waits(q, number));
}

TEST(WaitingRequests, that_stop_are_gone_and_the_oldest_one_left_is_the_first) {
  SendQueue q{};
  for (uint32_t number : {7u, 9u, 20u}) let_wait(q, number);
  stop_waiting(q, 9);
  EXPECT_EQ(all(q), (Numbers{7, 20}));
  stop_waiting(q, 8);  // did not wait
  stop_waiting(q, 7);
  EXPECT_EQ(q.waiting_from, 20u);
  EXPECT_EQ(all(q), (Numbers{20}));
  stop_waiting(q, 20);
  EXPECT_EQ(q.waiting, 0u);
  EXPECT_EQ(q.waiting_from, 20u) << "where none is left nothing moves";
  let_wait(q, 100);
  EXPECT_EQ(all(q), (Numbers{100}));
}

TEST(WaitingRequests, their_numbers_wrap) {
  SendQueue q{};
  let_wait(q, UINT32_MAX);
  let_wait(q, 3);
  EXPECT_EQ(all(q), (Numbers{UINT32_MAX, 3}));
  stop_waiting(q, UINT32_MAX);
  EXPECT_EQ(all(q), (Numbers{3}));
}

TEST(WaitingRequests, no_more_than_64_are_admitted_from_the_oldest_one_on) {
  SendQueue q{};
  q.started_tail = 1000;
  EXPECT_TRUE(may_wait(q)) << "none waits";
  let_wait(q, 937);
  EXPECT_TRUE(may_wait(q));
  let_wait(q, q.started_tail++);
  EXPECT_FALSE(may_wait(q));
  stop_waiting(q, 937);
  EXPECT_TRUE(may_wait(q));
}

}  // namespace
}  // namespace ub::ta
