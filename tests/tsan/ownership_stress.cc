// SPDX-License-Identifier: Apache-2.0
//
// Eight threads post, own and wait at random, as applications do to an embedded NIC. What ownership protects is
// plain memory, so ThreadSanitizer sees every mistake; and every doorbell must be taken, though the helper
// sleeps without a time limit and is only woken by whoever could not own.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "dataplane/ownership.h"
#include "dataplane/worker.h"
#include "lib/base/prng.h"

namespace {

constexpr int kThreads = 8;

struct Nic {
  ub::Ownership ownership;
  ub::PostedBitmap<ub::kIdSpace> posted;
  uint64_t inside = 0;              // plain: owners only
  uint64_t drained[kThreads] = {};  // plain: owners only, doorbells taken per thread
  int wake = eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> stop{false};

  void drain() {
    if (++inside != 1) std::abort();
    if (posted.any()) posted.take([this](uint32_t id) { ++drained[id]; });
    --inside;
  }
  void wake_helper() {
    uint64_t one = 1;
    if (write(wake, &one, sizeof one) != sizeof one) std::abort();
  }
  void ring(uint32_t id) {
    posted.set(id);
    if (ownership.try_own()) {
      drain();
      ownership.release();
    } else {
      wake_helper();
    }
  }
};

void helper(Nic& nic) {
  while (!nic.stop.load()) {
    uint64_t rings;
    if (read(nic.wake, &rings, sizeof rings) != sizeof rings) std::abort();
    if (!nic.ownership.own_next(3)) nic.ownership.own();
    nic.drain();
    nic.ownership.release();
  }
}

// Each thread waits for its doorbell to be taken before it rings again, so that none can hide behind the next.
void poster(Nic& nic, uint32_t id, uint64_t rounds, std::atomic<bool>& lost) {
  ub::Prng prng(id + 1);
  for (uint64_t round = 1; round <= rounds && !lost.load(); ++round) {
    nic.ring(id);
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (;;) {
      bool taken = false;
      if (nic.ownership.try_own()) {
        taken = nic.drained[id] == round;
        nic.ownership.release();
      }
      if (taken) break;
      if (std::chrono::steady_clock::now() > limit) {
        lost.store(true);
        return;
      }
      if (prng.chance(0.1)) usleep(static_cast<useconds_t>(prng.below(200)));
    }
    if (prng.chance(0.02)) usleep(static_cast<useconds_t>(prng.below(2000)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  auto nic = std::make_unique<Nic>();
  std::atomic<bool> lost{false};
  std::thread help([&] { helper(*nic); });
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < kThreads; ++id) threads.emplace_back([&, id] { poster(*nic, id, rounds, lost); });
  for (std::thread& t : threads) t.join();
  nic->stop.store(true);
  nic->wake_helper();
  help.join();
  if (lost.load()) {
    std::puts("a doorbell was lost");
    return 1;
  }
  std::printf("%d threads, %llu doorbells each: all taken\n", kThreads, static_cast<unsigned long long>(rounds));
  return 0;
}
