// SPDX-License-Identifier: Apache-2.0
#include "dataplane/ownership.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace ub {
namespace {

// A signal handler that calls the data path while its thread owns the Core finds it taken, however often that thread
// owned it before: from some number on it is the biased owner.
TEST(Ownership, a_thread_that_owns_does_not_get_it_twice) {
  Ownership ownership;
  for (int times = 0; times < 2000; ++times) {
    ASSERT_TRUE(ownership.try_own()) << times;
    ASSERT_FALSE(ownership.try_own()) << times;
    ASSERT_FALSE(ownership.try_own()) << times;
    ownership.release();
  }
}

TEST(Ownership, a_thread_knows_that_it_owns) {
  Ownership ownership;
  const auto another_has_it = [&] {
    bool has = true;
    std::jthread([&] { has = ownership.is_mine(); }).join();
    return has;
  };
  for (int times = 0; times < 2000; ++times) {
    ASSERT_FALSE(ownership.is_mine()) << times;
    ASSERT_TRUE(ownership.try_own()) << times;
    ASSERT_TRUE(ownership.is_mine()) << times;
    if (times % 500 == 0 || times == 1999) {
      ASSERT_FALSE(another_has_it()) << times;
    }
    ownership.release();
  }
}

TEST(Ownership, anybody_sees_that_it_is_owned) {
  Ownership ownership;
  const auto others_see_it = [&] {
    bool seen = false;
    std::jthread([&] { seen = ownership.is_owned(); }).join();
    return seen;
  };
  EXPECT_FALSE(others_see_it());
  for (int times = 0; times < 2000; ++times) {
    ASSERT_TRUE(ownership.try_own());
    if (times % 500 == 0 || times == 1999) {
      EXPECT_TRUE(others_see_it()) << times;
    }
    ownership.release();
    if (times % 500 == 0 || times == 1999) {
      EXPECT_FALSE(others_see_it()) << times;
    }
  }
}

// The biased owner and another, each on a thread of its own.
TEST(Ownership, the_next_owner_waits_for_the_biased_one_and_lets_nobody_in) {
  Ownership ownership;
  const auto own_often = [&](int times) {
    for (; times > 0; --times) {
      ASSERT_TRUE(ownership.try_own());
      if (times != 1) ownership.release();
    }
  };
  own_often(2000);  // and is inside
  std::atomic<bool> began{false}, got{false};
  std::jthread next([&] {
    began.store(true);
    got.store(ownership.own_next(1'000'000));
    if (got.load()) ownership.release();
  });
  while (!began.load()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(got.load());
  ownership.release();
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60); !got.load();) {
    if (ownership.try_own()) ownership.release();  // before the other has begun, or after it
    ASSERT_LT(std::chrono::steady_clock::now(), until);
  }
  next.join();
  own_often(1);
  ownership.release();
}

TEST(Ownership, the_next_owner_gives_up_and_leaves_all_as_it_was) {
  Ownership ownership;
  for (int times = 0; times < 2000; ++times) {
    ASSERT_TRUE(ownership.try_own());
    if (times != 1999) ownership.release();
  }
  const auto another = [&](auto own) {
    bool got = true;
    std::jthread([&] {
      got = own();
      if (got) ownership.release();
    }).join();
    return got;
  };
  EXPECT_FALSE(another([&] { return ownership.own_next(3); }));
  EXPECT_TRUE(ownership.is_mine());
  ownership.release();
  EXPECT_TRUE(another([&] { return ownership.own_next(0); }));
  ASSERT_TRUE(ownership.try_own());
  EXPECT_FALSE(another([&] { return ownership.own_next(3); })) << "one with the flag is not waited for";
  ownership.release();
  EXPECT_TRUE(another([&] { return ownership.try_own(); }));
}

// Once all numbers are taken, whoever owns it and however often.
TEST(Ownership, threads_without_a_number_exclude_all_others) {
  ASSERT_NE(this_thread_number(), kNoThread);
  std::barrier have_numbers(kThreadNumbers + 1), done(kThreadNumbers + 1);
  std::vector<std::jthread> others;
  for (uint32_t i = 0; i < kThreadNumbers; ++i) {
    others.emplace_back([&] {
      this_thread_number();
      have_numbers.arrive_and_wait();
      done.arrive_and_wait();
    });
  }
  have_numbers.arrive_and_wait();
  Ownership ownership;
  const auto another_gets_it = [&] {
    bool got = false;
    std::jthread([&] {
      EXPECT_EQ(this_thread_number(), kNoThread);
      got = ownership.try_own();
      if (got) ownership.release();
    }).join();
    return got;
  };
  ASSERT_TRUE(ownership.try_own());
  EXPECT_FALSE(another_gets_it()) << "while one with a number has it";
  ownership.release();
  std::jthread([&] {
    for (int times = 0; times < 2000; ++times) {
      ASSERT_TRUE(ownership.try_own()) << times;
      ASSERT_FALSE(ownership.try_own()) << times;
      ownership.release();
    }
    ASSERT_TRUE(ownership.try_own());
    EXPECT_FALSE(another_gets_it()) << "while one without has it";
    ownership.release();
  }).join();
  EXPECT_TRUE(another_gets_it());
  done.arrive_and_wait();
}

}  // namespace
}  // namespace ub
