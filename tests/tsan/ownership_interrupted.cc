// SPDX-License-Identifier: Apache-2.0
//
// A thread that owns the Core again and again is interrupted anywhere in the attempt, and sleeps there until another
// thread has become the biased owner and is inside. When it goes on, it must not get in, nor let itself in by what it
// writes, nor leave the Core to nobody.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "dataplane/ownership.h"

namespace {

constexpr int kInterruptions = 1500;
constexpr uint32_t kEnoughForBias = 1100;  // owns in a row; the first of them take the bias from the other thread

ub::Ownership ownership;
std::atomic<int> inside{0};
std::atomic<uint32_t> wanted{0}, entered{0};  // rounds of the other thread: asked for, inside
std::atomic<uint32_t> tries{0};               // of the interrupted thread
std::atomic<bool> owns{false}, done{false}, both_inside{false};

void enter() {
  if (inside.fetch_add(1) != 0) both_inside.store(true);
}

// In the interrupted thread. While it owns, the other one cannot get in.
void sleep_in_between(int) {
  if (owns.load()) return;
  const uint32_t round = wanted.fetch_add(1) + 1;
  while (entered.load() != round && !done.load()) sched_yield();
}

void own_often() {
  while (!done.load()) {
    if (ownership.try_own()) {
      owns.store(true);
      enter();
      inside.fetch_sub(1);
      ownership.release();
      owns.store(false);
    }
    tries.fetch_add(1, std::memory_order_relaxed);
  }
}

// The interrupted thread sleeps: if it is not inside, the Core is free.
bool own_at_once() {
  for (int i = 0; i < 10; ++i) {
    if (ownership.try_own()) return true;
  }
  return false;
}

// Becomes the biased owner, enters, and stays until the interrupted thread has tried a few times. False: it was inside.
bool take_bias(uint32_t round) {
  for (uint32_t i = 0; i < kEnoughForBias; ++i) {
    if (!own_at_once()) return false;
    ownership.release();
  }
  if (!own_at_once()) return false;
  enter();
  const uint32_t before = tries.load();
  entered.store(round);
  while (tries.load() - before < 3) sched_yield();
  inside.fetch_sub(1);
  ownership.release();
  return true;
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = sleep_in_between;
  sigaction(SIGUSR1, &action, nullptr);
  std::thread interrupted(own_often);
  int outside = 0;
  for (int i = 0; i < kInterruptions && !both_inside.load(); ++i) {
    const uint32_t before = tries.load();
    while (tries.load() - before < kEnoughForBias) sched_yield();  // it has the bias
    pthread_kill(interrupted.native_handle(), SIGUSR1);
    const uint32_t tried = tries.load();
    while (wanted.load() == entered.load() && tries.load() - tried < kEnoughForBias) sched_yield();
    const uint32_t round = wanted.load();
    if (round == entered.load()) continue;  // it owned the Core: not this time
    outside += take_bias(round);
    entered.store(round);
  }
  done.store(true);
  interrupted.join();
  const bool free = own_at_once();
  std::printf("%d of %d interruptions outside: %s, %s\n", outside, kInterruptions,
              both_inside.load() ? "two were inside at once" : "never two inside",
              free ? "nobody is left inside" : "nobody can own it any more");
  if (both_inside.load() || !free) return 1;
  if (outside != 0) return 0;
  std::puts(
      "skipped: nobody was interrupted before it owned; "
      "where the kernel refuses membarrier, no thread is biased");
  return 77;
}
