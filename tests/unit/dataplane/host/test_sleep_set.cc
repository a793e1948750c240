// SPDX-License-Identifier: Apache-2.0
//
// Who is woken when two threads sleep on one descriptor. That a thread sleeps is asked of the kernel, so that nothing here
// depends on how long anything takes.
#include "dataplane/sleep_set.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

namespace ub {
namespace {

ipc::Fd make_event() { return ipc::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void raise(const ipc::Fd& event) {
  const uint64_t one = 1;
  ASSERT_EQ(write(event.get(), &one, sizeof one), 8);
}

void lower(const ipc::Fd& event) {
  uint64_t count;
  ASSERT_EQ(read(event.get(), &count, sizeof count), 8);
}

// A thread that sleeps in a set once.
class Sleeper {
 public:
  explicit Sleeper(SleepSet& set)
      : thread_([this, &set] {
          id_ = gettid();
          woken_ = set.sleep(SleepSet::kNoLimit);
          awake_ = true;
        }) {
    while (id_ == 0 || state() != 'S') std::this_thread::yield();
  }
  ~Sleeper() {
    if (thread_.joinable()) thread_.join();
  }
  Woken wait() {
    thread_.join();
    return woken_;
  }
  bool is_asleep() const { return !awake_ && state() == 'S'; }

 private:
  char state() const {
    std::ifstream stat("/proc/self/task/" + std::to_string(id_) + "/stat");
    std::string text;
    std::getline(stat, text);
    return text[text.rfind(')') + 2];
  }

  std::atomic<int> id_{0};
  std::atomic<bool> awake_{false};
  Woken woken_;
  std::thread thread_;
};

class SleepSetTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    ASSERT_TRUE(first_.create(&error)) << error;
    ASSERT_TRUE(second_.create(&error)) << error;
    ASSERT_TRUE(first_.watch(shared_.get(), Waker::kFrames, true));
    ASSERT_TRUE(second_.watch(shared_.get(), Waker::kFrames, true));
    ASSERT_TRUE(second_.watch(own_.get(), Waker::kRung));
  }

  SleepSet first_, second_;
  const ipc::Fd shared_ = make_event(), own_ = make_event();
};

TEST_F(SleepSetTest, the_first_that_watched_wakes_and_the_other_sleeps_on) {
  Sleeper second(second_);  // in whichever order they fell asleep
  Sleeper first(first_);
  raise(shared_);
  const Woken woken = first.wait();
  EXPECT_TRUE(woken.by(Waker::kFrames));
  EXPECT_FALSE(woken.by_any_but(Waker::kFrames));
  lower(shared_);
  EXPECT_TRUE(second.is_asleep());
  raise(own_);
  EXPECT_FALSE(second.wait().by(Waker::kFrames)) << "what is over is not told";
}

TEST_F(SleepSetTest, the_second_wakes_while_nobody_sleeps_in_the_first) {
  Sleeper second(second_);
  raise(shared_);
  EXPECT_TRUE(second.wait().by(Waker::kFrames));
}

TEST_F(SleepSetTest, what_came_while_nobody_slept_wakes_the_next_sleeper_of_either) {
  raise(shared_);
  EXPECT_TRUE(first_.sleep(SleepSet::kNoLimit).by(Waker::kFrames));
  EXPECT_TRUE(second_.sleep(SleepSet::kNoLimit).by(Waker::kFrames));
  lower(shared_);
  EXPECT_FALSE(first_.sleep(Duration{}).by_any());
  EXPECT_FALSE(second_.sleep(Duration{}).by_any());
}

TEST_F(SleepSetTest, says_all_that_woke_it) {
  raise(shared_);
  raise(own_);
  const Woken woken = second_.sleep(SleepSet::kNoLimit);
  EXPECT_TRUE(woken.by(Waker::kFrames));
  EXPECT_TRUE(woken.by(Waker::kRung));
  EXPECT_FALSE(woken.by(Waker::kUdp));
  EXPECT_TRUE(woken.by_any_but(Waker::kFrames));
}

TEST_F(SleepSetTest, is_readable_for_as_long_as_nobody_read_it) {
  raise(own_);
  EXPECT_TRUE(second_.sleep(SleepSet::kNoLimit).by(Waker::kRung));
  EXPECT_TRUE(second_.sleep(SleepSet::kNoLimit).by(Waker::kRung));
}

TEST_F(SleepSetTest, what_is_forgotten_wakes_nobody) {
  second_.forget(own_.get());
  raise(own_);
  EXPECT_FALSE(second_.sleep(Duration{}).by_any());
  EXPECT_TRUE(second_.watch(own_.get(), Waker::kRung));
  EXPECT_TRUE(second_.sleep(SleepSet::kNoLimit).by(Waker::kRung));
}

TEST_F(SleepSetTest, a_descriptor_added_while_somebody_sleeps_wakes_it) {
  Sleeper first(first_);
  raise(own_);
  EXPECT_TRUE(first_.watch(own_.get(), Waker::kOthers));
  EXPECT_TRUE(first.wait().by(Waker::kOthers));
}

TEST_F(SleepSetTest, refuses_what_is_no_descriptor) { EXPECT_FALSE(first_.watch(-1, Waker::kFrames)); }

}  // namespace
}  // namespace ub
