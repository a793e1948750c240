// SPDX-License-Identifier: Apache-2.0
#include "dataplane/thread_number.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

namespace ub {
namespace {

// What `count` threads get that all live at the same time.
std::vector<uint32_t> numbers_of(uint32_t count) {
  std::vector<uint32_t> numbers(count);
  std::barrier all_have_one(count);
  std::vector<std::jthread> threads;
  for (uint32_t& number : numbers) {
    threads.emplace_back([&] {
      number = this_thread_number();
      all_have_one.arrive_and_wait();
    });
  }
  threads.clear();
  return numbers;
}

TEST(ThreadNumber, a_thread_keeps_its_number) {
  const uint32_t mine = this_thread_number();
  EXPECT_NE(mine, kNoThread);
  EXPECT_EQ(this_thread_number(), mine);
}

TEST(ThreadNumber, living_threads_have_different_numbers) {
  const uint32_t mine = this_thread_number();
  const std::vector<uint32_t> numbers = numbers_of(kThreadNumbers - 2);  // kNoThread and this thread's are not theirs
  const std::set<uint32_t> different(numbers.begin(), numbers.end());
  EXPECT_EQ(different.size(), numbers.size());
  EXPECT_FALSE(different.contains(kNoThread));
  EXPECT_FALSE(different.contains(mine));
  EXPECT_LT(*different.rbegin(), kThreadNumbers);
}

TEST(ThreadNumber, who_comes_too_late_has_none) {
  this_thread_number();
  std::vector<uint32_t> numbers = numbers_of(kThreadNumbers + 3);
  EXPECT_EQ(std::erase(numbers, kNoThread), 5u);
}

TEST(ThreadNumber, a_thread_that_ends_gives_its_number_back) {
  for (uint32_t i = 0; i < 4 * kThreadNumbers; ++i) EXPECT_NE(numbers_of(1).front(), kNoThread);
}

// Destructors of thread-specific data may call the data path, too. Each round of them comes after all of the one
// before.
struct LastWords {
  pthread_key_t key{};
  uint32_t rounds = 0;
  std::vector<uint32_t> numbers;
};

void speak(void* argument) {
  auto* words = static_cast<LastWords*>(argument);
  words->numbers.push_back(this_thread_number());
  if (--words->rounds != 0) pthread_setspecific(words->key, words);
}

TEST(ThreadNumber, a_thread_that_gave_its_number_back_has_none) {
  LastWords words;
  words.rounds = 3;
  ASSERT_EQ(pthread_key_create(&words.key, speak), 0);
  std::jthread([&] {
    EXPECT_NE(this_thread_number(), kNoThread);
    EXPECT_EQ(pthread_setspecific(words.key, &words), 0);
  }).join();
  pthread_key_delete(words.key);
  ASSERT_EQ(words.numbers.size(), 3u);
  EXPECT_EQ(words.numbers[1], kNoThread);
  EXPECT_EQ(words.numbers[2], kNoThread);
  EXPECT_NE(numbers_of(1).front(), kNoThread) << "nor did it take another, for ever";
}

}  // namespace
}  // namespace ub
