// SPDX-License-Identifier: Apache-2.0
//
// The closed loop by which the reference tests its marking (part of rule.controller): a queue that only grows, a mark
// that is set beyond a level and stays until the queue is below another one, and a sender that halves its window for
// each marked packet.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class MarkingLoop {
 public:
  explicit MarkingLoop(const Parameters& p) : parameters_(p), window_(p.loop_window) {}

  void packet() {
    queued_ += parameters_.payload;
    if (queued_ > parameters_.loop_mark_above) marks_ = true;
    if (queued_ < parameters_.loop_mark_below) marks_ = false;
    if (!marks_) return;
    ++marked_;
    window_ = std::max(parameters_.loop_least_window, window_ / 2);
  }

  uint64_t marked() const { return marked_; }
  uint64_t window_bytes() const { return window_; }

 private:
  const Parameters& parameters_;
  uint64_t window_;  // in bytes
  uint64_t queued_ = 0, marked_ = 0;
  bool marks_ = false;
};

}  // namespace ub::emu
