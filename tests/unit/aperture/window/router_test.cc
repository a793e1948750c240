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

}  // namespace
}  // namespace ub::aperture::test
