// SPDX-License-Identifier: Apache-2.0
//
// Handlers of faults that never return: afterwards windows are made and end as before.
#include <ucontext.h>

#include "tests/unit/aperture/window/window_rig.h"

namespace ub::aperture::test {
namespace {

sigjmp_buf g_leave;

template <class Access>
[[gnu::noinline]] bool is_left(Access access) {
  if (sigsetjmp(g_leave, 1) != 0) return true;
  access();
  return false;
}

TEST(WindowLeave, handler__may_jump) {
  Rig rig(8, 8);
  rig.memory.bad_loads.set(kPage, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  rig.window->on_fault([](const softub_fault_t*, void*) -> bool { siglongjmp(g_leave, 1); }, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_left([&] { rig.read(kPage); }));
  Rig other(8, 8);
  EXPECT_EQ(other.read(0), first_value(0));
  rig.memory.bad_loads.heal();
  EXPECT_EQ(rig.read(kPage), first_value(kPage));
}

// As a program's own handler of signals may call the router.
TEST(WindowLeave, exception__passes_the_router) {
  Rig rig(8, 8);
  rig.memory.bad_loads.set(0, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  rig.window->on_fault([](const softub_fault_t*, void*) -> bool { throw 1; }, nullptr);
  siginfo_t info = {};
  info.si_code = BUS_ADRERR;
  info.si_addr = rig.at(0);
  ucontext_t machine = {};
  EXPECT_THROW(FaultRouter::serve(SIGBUS, &info, &machine), int);
  Rig other(8, 8);
  EXPECT_EQ(other.read(0), first_value(0));
}

// The window that is unmapped there is not waited for, as nobody waits for what runs inside of his own call.
TEST(WindowLeave, handler__may_end_its_window) {
  Rig rig(8, 8);
  rig.memory.bad_loads.set(0, kPage, URMA_CR_REM_ACCESS_ABORT_ERR);
  rig.window->on_fault(
      [](const softub_fault_t*, void* context) -> bool {
        static_cast<Rig*>(context)->window.reset();
        siglongjmp(g_leave, 1);
      },
      &rig);
  EXPECT_TRUE(is_left([&] { rig.read(0); }));
  EXPECT_EQ(rig.window, nullptr);
}

}  // namespace
}  // namespace ub::aperture::test
