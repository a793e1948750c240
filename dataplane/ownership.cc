// SPDX-License-Identifier: Apache-2.0
#include "dataplane/ownership.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/ipc/pause.h"

namespace ub {

namespace {

constexpr int kLooksBeforePause = 50;  // 0.2 to 2 us, by the CPU's pause

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace

Ownership::Ownership() { may_bias_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

bool Ownership::try_own_slowly(uint32_t me) { return take_flag(me) && own_or_give_back(me); }

bool Ownership::own_next(uint32_t pauses) {
  const uint32_t me = this_thread_number();
  if (!take_flag(me)) return false;
  for (int looks = 0; looks < kLooksBeforePause && biased_is_inside(); ++looks) pause_cpu();
  for (; pauses != 0 && biased_is_inside(); --pauses) ipc::pause_for(ipc::kShortestPause);
  return own_or_give_back(me);
}

// True: nobody else begins to own, but who owned by the bias may still be inside.
bool Ownership::take_flag(uint32_t me) {
  uint32_t free = 0;
  const uint32_t owner = me != kNobody ? me : kSomebody;
  if (!flag_.compare_exchange_strong(free, owner, std::memory_order_acquire, std::memory_order_relaxed)) return false;
  if (bias_.load(std::memory_order_relaxed) != kNobody) {
    bias_.store(kNobody, std::memory_order_relaxed);
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    in_a_row_ = 0;
  }
  return true;
}

// It has the flag.
bool Ownership::own_or_give_back(uint32_t me) {
  if (biased_is_inside()) {
    flag_.store(0, std::memory_order_release);
    return false;
  }
  in_a_row_ = last_owner_ == me ? in_a_row_ + 1 : 0;
  last_owner_ = me;
  return true;
}

void Ownership::release_slowly() {
  if (may_bias_ && in_a_row_ >= kOwnsBeforeBias && last_owner_ != kNobody) {
    last_biased_ = last_owner_;
    bias_.store(last_owner_, std::memory_order_relaxed);
  }
  flag_.store(0, std::memory_order_release);
}

void Ownership::own() {
  if (try_own()) return;
  for (uint32_t tries = 0; !try_own(); ++tries) {
    if (tries < 100) {
      pause_cpu();
    } else if (tries < 200) {
      sched_yield();
    } else {
      ipc::pause_for(ipc::kShortestPause);
    }
  }
}

}  // namespace ub
