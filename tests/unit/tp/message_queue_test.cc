// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/message_queue.h"

#include <gtest/gtest.h>

#include <deque>

#include "lib/base/prng.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub::tp {
namespace {

class Queue : public testing::Test {
 protected:
  explicit Queue(uint32_t chunks = 4) : memory_(chunks * 2 * sizeof(MessageChunk) + 4096) {
    Arena arena(memory_.get());
    pool.init(arena, chunks);
  }
  bool push(uint32_t number) {
    TxMessage* m = q.push(pool);
    if (m == nullptr) return false;
    *m = TxMessage{};
    m->source = number;
    return true;
  }
  void fill(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) ASSERT_TRUE(push(i));
  }
  uint32_t pop() {
    const uint32_t number = q.front(pool).source;
    q.pop(pool);
    return number;
  }
  std::vector<uint32_t> all() {
    std::vector<uint32_t> seen;
    q.find(pool, [&](TxMessage& m) { return seen.push_back(m.source), false; });
    return seen;
  }

  MessagePool pool;
  MessageQueue q;

 private:
  ZeroedMemory memory_;
};
using MessageQueueTest = Queue;

TEST_F(MessageQueueTest, an_empty_one_holds_no_chunk) {
  EXPECT_TRUE(q.empty());
  fill(1);
  EXPECT_EQ(pool.in_use(), 1u);
  EXPECT_EQ(pop(), 0u);
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST_F(MessageQueueTest, the_oldest_goes_first_across_chunks) {
  fill(3 * kMessagesPerChunk);
  EXPECT_EQ(pool.in_use(), 3u);
  EXPECT_EQ(q.size(), 3 * kMessagesPerChunk);
  for (uint32_t i = 0; i < 3 * kMessagesPerChunk; ++i) {
    EXPECT_EQ(q.back(pool).source, 3 * kMessagesPerChunk - 1);
    ASSERT_EQ(pop(), i);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST_F(MessageQueueTest, a_chunk_is_free_when_the_last_of_it_is_gone) {
  fill(kMessagesPerChunk + 1);
  for (uint32_t i = 1; i < kMessagesPerChunk; ++i) pop();
  EXPECT_EQ(pool.in_use(), 2u);
  pop();
  EXPECT_EQ(pool.in_use(), 1u);
  EXPECT_EQ(pop(), kMessagesPerChunk);
}

TEST_F(MessageQueueTest, it_is_usable_again_after_a_full_chunk_was_emptied) {
  for (uint32_t round = 0; round < 3; ++round) {
    fill(kMessagesPerChunk);
    for (uint32_t i = 0; i < kMessagesPerChunk; ++i) ASSERT_EQ(pop(), i);
    ASSERT_EQ(pool.in_use(), 0u);
  }
}

TEST_F(MessageQueueTest, where_the_pool_is_empty_nothing_is_added) {
  fill(4 * kMessagesPerChunk);
  EXPECT_FALSE(push(1000));
  EXPECT_EQ(q.size(), 4 * kMessagesPerChunk);
  EXPECT_EQ(q.back(pool).source, 4 * kMessagesPerChunk - 1);
  for (uint32_t i = 0; i < kMessagesPerChunk; ++i) pop();
  EXPECT_TRUE(push(1000));
  EXPECT_EQ(q.back(pool).source, 1000u);
}

TEST_F(MessageQueueTest, an_empty_one_that_gets_nothing_stays_empty) {
  while (pool.alloc() != 0) {
  }
  EXPECT_FALSE(push(1));
  EXPECT_TRUE(q.empty());
}

TEST_F(MessageQueueTest, find_goes_from_the_oldest_on_and_stops_where_it_is_told) {
  fill(kMessagesPerChunk + 5);
  pop();
  uint32_t asked = 0;
  EXPECT_TRUE(q.find(pool, [&](TxMessage& m) { return ++asked, m.source == kMessagesPerChunk + 1; }));
  EXPECT_EQ(asked, kMessagesPerChunk + 1);
  EXPECT_FALSE(q.find(pool, [](TxMessage& m) { return m.source == 0; })) << "it is gone";
}

TEST_F(MessageQueueTest, cleared_it_holds_nothing_wherever_it_begins_and_ends) {
  for (uint32_t pushed : {0u, 1u, kMessagesPerChunk, kMessagesPerChunk + 1, 3 * kMessagesPerChunk}) {
    for (uint32_t popped : {0u, 1u, kMessagesPerChunk, pushed}) {
      if (popped > pushed) continue;
      fill(pushed);
      for (uint32_t i = 0; i < popped; ++i) pop();
      q.clear(pool);
      EXPECT_EQ(pool.in_use(), 0u) << pushed << " " << popped;
      EXPECT_TRUE(q.empty());
      EXPECT_FALSE(q.find(pool, [](TxMessage&) { return true; }));
    }
  }
}

// A freed chunk has a successor of its former life: clear must not follow it.
TEST_F(MessageQueueTest, cleared_it_frees_no_chunk_of_others) {
  MessageQueue other;
  fill(2 * kMessagesPerChunk);
  q.clear(pool);
  ASSERT_NE(other.push(pool), nullptr);
  fill(1);
  q.clear(pool);
  EXPECT_EQ(pool.in_use(), 1u);
  other.clear(pool);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST_F(MessageQueueTest, random_operations__do_what_a_deque_does) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Prng random(seed);
    std::deque<uint32_t> model;
    for (uint32_t step = 0; step < 5000; ++step) {
      if (random.chance(step % 1000 < 500 ? 0.7 : 0.3)) {
        if (push(step)) model.push_back(step);
      } else if (!model.empty()) {
        ASSERT_EQ(pop(), model.front());
        model.pop_front();
      }
      ASSERT_EQ(q.size(), model.size());
      if (!model.empty()) {
        ASSERT_EQ(q.back(pool).source, model.back());
      }
      if (step % 50 == 0) {
        ASSERT_EQ(all(), std::vector<uint32_t>(model.begin(), model.end()));
      }
    }
    q.clear(pool);
    ASSERT_EQ(pool.in_use(), 0u);
  }
}

}  // namespace
}  // namespace ub::tp
