// SPDX-License-Identifier: Apache-2.0
//
// The router of faults while one of them is being served for long.
#include <ucontext.h>

#include <atomic>
#include <thread>

#include "tests/unit/aperture/window/window_rig.h"

namespace ub::aperture::test {
namespace {

class SlowWindow final : public Window {
 public:
  Served serve(const Fault&, FailedAccess*) override {
    is_serving = true;
    while (!may_end) std::this_thread::yield();
    return Served::kDone;
  }
  std::atomic<bool> is_serving{false}, may_end{false};
};

bool is_served_at(void* address) {
  siginfo_t info = {};
  info.si_code = BUS_ADRERR;
  info.si_addr = address;
  ucontext_t machine = {};
  return FaultRouter::serve(SIGBUS, &info, &machine);
}

bool overlaps(const std::byte* at) { return FaultRouter::get().overlaps(reinterpret_cast<uintptr_t>(at), 1); }

TEST(Router, a_removal_waits_for_the_faults_of_its_window_alone) {
  static std::byte slow_memory[64], other_memory[64];
  FaultRouter& router = FaultRouter::get();
  SlowWindow slow, other;
  other.may_end = true;
  std::string error;
  ASSERT_TRUE(router.add(slow_memory, sizeof slow_memory, slow, &error)) << error;
  std::thread accesses([] { EXPECT_TRUE(is_served_at(slow_memory)); });
  while (!slow.is_serving) std::this_thread::yield();
  EXPECT_TRUE(router.add(other_memory, sizeof other_memory, other, &error)) << error;
  EXPECT_TRUE(is_served_at(other_memory));
  std::atomic<bool> is_removed{false};
  std::thread removes([&] {
    router.remove(slow);
    is_removed = true;
  });
  while (overlaps(slow_memory)) std::this_thread::yield();
  EXPECT_TRUE(overlaps(other_memory));
  EXPECT_FALSE(is_served_at(slow_memory));
  SlowWindow third;
  EXPECT_TRUE(router.add(slow_memory, sizeof slow_memory, third, &error)) << error;
  router.remove(third);
  router.remove(other);
  EXPECT_FALSE(is_removed);
  slow.may_end = true;
  accesses.join();
  removes.join();
  EXPECT_FALSE(overlaps(slow_memory) || overlaps(other_memory));
}

// A table is freed only when nobody can be reading it any more.
TEST(Router, finds_a_window_while_others_come_and_go) {
  constexpr int kOthers = 24;
  static std::byte memory[kOthers + 1][64];
  FaultRouter& router = FaultRouter::get();
  SlowWindow windows[kOthers + 1];
  std::string error;
  for (SlowWindow& window : windows) window.may_end = true;
  std::byte* const stays = memory[kOthers / 2];
  ASSERT_TRUE(router.add(stays, sizeof memory[0], windows[kOthers / 2], &error)) << error;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> looked{0}, missed{0};
  std::thread accesses([&] {
    for (; !stop; ++looked) missed += is_served_at(stays) ? 0 : 1;
  });
  for (int round = 0; round < 400 || looked < 100'000; ++round) {
    for (int i = 0; i <= kOthers; ++i) {
      if (memory[i] == stays) continue;
      ASSERT_TRUE(router.add(memory[i], sizeof memory[i], windows[i], &error)) << error;
    }
    for (int i = 0; i <= kOthers; ++i) {
      if (memory[i] != stays) router.remove(windows[i]);
    }
  }
  stop = true;
  accesses.join();
  EXPECT_EQ(missed.load(), 0u);
  router.remove(windows[kOthers / 2]);
}

}  // namespace
}  // namespace ub::aperture::test
