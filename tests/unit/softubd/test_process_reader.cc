// SPDX-License-Identifier: Apache-2.0
// What /proc tells of real processes, and that another one with the same number is not taken for it.
#include "dataplane/softubd/process_reader.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <semaphore>
#include <thread>

namespace ub {
namespace {

// A child that sleeps, under a name that would lead a careless reader astray.
class Child {
 public:
  Child() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_NAME, ") R 1 (x) R 2");
      [[maybe_unused]] ssize_t n = write(ready[1], "x", 1);
      for (;;) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
  }
  ~Child() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  char wait_for(const ProcessReader& reader, char state) const {
    for (;;) {
      const ProcessReading reading = reader.read();
      if (reading.threads.empty() || reading.threads[0].state == state) return state;
      sched_yield();
    }
  }

 private:
  pid_t pid_;
};

// A sanitizer may have a thread of its own in each process.
size_t threads_of_this_process() { return ProcessReader(getpid()).read().threads.size(); }

TEST(ProcessReader, sees_all_threads_of_a_process) {
  const size_t alone = threads_of_this_process();
  std::binary_semaphore end(0);
  std::thread other([&] { end.acquire(); });
  const ProcessReading reading = ProcessReader(getpid()).read();
  end.release();
  other.join();
  ASSERT_EQ(reading.threads.size(), alone + 1);
  EXPECT_EQ(reading.threads[0].tid, getpid());
  EXPECT_LT(reading.threads[0].tid, reading.threads[1].tid);
  EXPECT_EQ(reading.threads[0].state, 'R');
  EXPECT_GT(reading.threads[0].runs, 0u);
}

TEST(ProcessReader, tells_sleeping_from_stopped) {
  Child child;
  const ProcessReader reader(child.pid());
  EXPECT_EQ(child.wait_for(reader, 'S'), 'S');
  EXPECT_EQ(reader.read().threads.size(), threads_of_this_process());
  kill(child.pid(), SIGSTOP);
  EXPECT_EQ(child.wait_for(reader, 'T'), 'T');
  StarvationJudge judge;
  EXPECT_EQ(judge.judge(reader.read()), Condition::kStopped);
}

TEST(ProcessReader, nobody_is_seen_who_is_not_there) {
  EXPECT_TRUE(ProcessReader(0).read().threads.empty()) << "of another pid namespace";
  Child child;
  const ProcessReader reader(child.pid());
  EXPECT_FALSE(reader.read().threads.empty());
  child.end();
  EXPECT_TRUE(reader.read().threads.empty());
}

}  // namespace
}  // namespace ub
