// SPDX-License-Identifier: Apache-2.0
//
// The handler that these programs have for SIGBUS and SIGSEGV before the first window is made: it leaves the access by
// a jump if its thread has said where to, and ends the program otherwise.
#include <signal.h>

#include "tests/unit/aperture/window/window_rig.h"

// The sanitizers' own handlers would turn the death of a child into something else.
extern "C" const char* __asan_default_options() { return "handle_segv=0:handle_sigbus=0"; }
extern "C" const char* __tsan_default_options() { return "handle_segv=0:handle_sigbus=0"; }
extern "C" const char* __ubsan_default_options() { return "handle_segv=0:handle_sigbus=0"; }

namespace ub::aperture::test {

thread_local sigjmp_buf* jump_on_signal = nullptr;

namespace {

void on_signal(int signal) {
  if (jump_on_signal != nullptr) siglongjmp(*jump_on_signal, signal);
  ::signal(signal, SIG_DFL);  // the access runs again
}

const bool installed = [] {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_NODEFER;
  return ::sigaction(SIGBUS, &action, nullptr) == 0 && ::sigaction(SIGSEGV, &action, nullptr) == 0;
}();

}  // namespace
}  // namespace ub::aperture::test
