// SPDX-License-Identifier: Apache-2.0
//
// How a client waits for another one: it looks again at once for a while, then gives the CPU to others between its
// looks, then sleeps. After 30 s it gives up, with a sentence that says whom it waited for.
#pragma once

#include <sched.h>

#include <chrono>
#include <string>
#include <thread>

#include "tools/common/tool_error.h"

namespace ub::apps {

class Patience {
 public:
  explicit Patience(std::string sentence) : sentence_(std::move(sentence)) {}

  // One step; the caller looks again after each.
  void wait() {
    if (++steps_ <= kLooks) return;
    tools::throw_if_stopped();
    if (steps_ <= kYields) {
      ::sched_yield();
      return;
    }
    std::this_thread::sleep_for(kNap);
    if (std::chrono::steady_clock::now() > end_) throw tools::ToolError(sentence_);
  }

 private:
  static constexpr uint32_t kLooks = 16;
  static constexpr uint32_t kYields = 1000;
  static constexpr std::chrono::microseconds kNap{50};

  std::string sentence_;
  uint32_t steps_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(30);
};

}  // namespace ub::apps
