// SPDX-License-Identifier: Apache-2.0
//
// A thread of ours in the program of somebody else: no signal of the program is delivered to it, and tools show its
// name.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace ub::ipc {

// `name` has at most 15 characters. The thread is not joinable if the kernel refuses to make one (ulimit -u).
template <class Fn>
std::thread silent_thread(const char* name, Fn&& fn) {
  std::thread thread;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread = std::thread(std::forward<Fn>(fn));
    pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

}  // namespace ub::ipc
