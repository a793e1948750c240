// SPDX-License-Identifier: Apache-2.0
//
// How the threads of a test wait for one another: until something is so, never for a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace ub::test {

// True as soon as `done` says so; false after ten seconds, which only a fault takes.
template <class Done>
bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// What the kernel says of a thread of this process: 'S' is asleep, 'R' runs or may run, 0 has ended.
inline char state_of_thread(pid_t id) {
  std::ifstream stat("/proc/self/task/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '\0' : text[name_end + 2];
}

// Until the thread waits for something. One that has ended does not wait: this returns, too.
inline bool await_sleep_of(pid_t id) {
  return eventually([id] {
    const char state = state_of_thread(id);
    return state == 'S' || state == '\0';
  });
}

}  // namespace ub::test
