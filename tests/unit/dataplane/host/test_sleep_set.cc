// SPDX-License-Identifier: Apache-2.0
//
// Who is woken when two threads sleep on one descriptor. That a thread sleeps is asked of the kernel, so that nothing
// here depends on how long anything takes.
#include "dataplane/sleep_set.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "tests/unit/threads.h"

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
    EXPECT_TRUE(test::eventually([this] { return id_ != 0 && test::state_of_thread(id_) == 'S'; }));
  }
  ~Sleeper() {
    if (thread_.joinable()) thread_.join();
  }
  Woken wait() {
    thread_.join();
    return woken_;
  }
  void interrupt() { pthread_kill(thread_.native_handle(), SIGUSR1); }
  bool is_asleep() const { return !awake_ && test::state_of_thread(id_) == 'S'; }

 private:
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

TEST_F(SleepSetTest, a_signal_is_not_the_end_of_the_time) {
  struct sigaction nothing = {}, before = {};
  nothing.sa_handler = [](int) {};
  sigaction(SIGUSR1, &nothing, &before);
  Sleeper first(first_);
  first.interrupt();
  const Woken woken = first.wait();
  EXPECT_FALSE(woken.by_any());
  EXPECT_TRUE(woken.interrupted());
  EXPECT_FALSE(second_.sleep(microseconds(1)).interrupted());
  sigaction(SIGUSR1, &before, nullptr);
}

// From now on the kernel answers this system call of this thread with `error`.
bool refuse(uint32_t system_call, uint32_t error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Exit codes are the test's verdict: a filter of system calls is for life, so each case is a process of its own.
[[noreturn]] void sleep_where_refused(uint32_t error) {
  SleepSet set;
  std::string why;
  const ipc::Fd event = make_event();
  if (!set.create(&why) || !set.watch(event.get(), Waker::kRung)) _exit(2);
  if (!refuse(SYS_epoll_pwait2, error)) _exit(3);
  const auto begin = std::chrono::steady_clock::now();
  const Woken slept = set.sleep(microseconds(900));
  if (slept.by_any() || slept.interrupted()) _exit(4);
  if (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(900)) _exit(6);
  raise(event);
  _exit(set.sleep(SleepSet::kNoLimit).by(Waker::kRung) ? 0 : 5);
}

TEST(SleepSet, sleeps_where_the_kernel_knows_milliseconds_only) {
  EXPECT_EXIT(sleep_where_refused(ENOSYS), testing::ExitedWithCode(0), "");
}

TEST(SleepSet, sleeps_where_a_filter_refuses_the_finer_call) {
  EXPECT_EXIT(sleep_where_refused(EPERM), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ub
