// SPDX-License-Identifier: Apache-2.0
//
// Congestion control as the reference has it (rule.controller): a window that shrinks with the part of its packets that
// were marked, and grows by a constant at each step. How likely a mark is follows from the window alone, in parts of
// the capacity: there are neither queues nor time. The Core sees nothing of this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class WindowRule {
 public:
  explicit WindowRule(const Parameters& p)
      : parameters_(p), window_(p.window_start), random_(p.seed, "controller", "marks") {}

  // In packets.
  double window() const { return window_; }
  // In parts of the capacity, of which no more than all can be used.
  double utilization() const { return std::min(1.0, window_ / capacity()); }
  // Of the last packets, or of the last round trip.
  double marked_part() const { return marked_part_; }

  // One packet: the window obeys the marks of the last packets.
  void packet() {
    marks_.push_back(random_.chance(mark_chance()));
    marked_ += marks_.back();
    if (marks_.size() > parameters_.mark_history) {
      marked_ -= marks_.front();
      marks_.pop_front();
    }
    step(static_cast<double>(marked_) / static_cast<double>(marks_.size()));
  }

  // One round trip: each packet of the window may be marked.
  void round_trip() {
    const auto packets = static_cast<uint64_t>(std::max(1.0, window_));
    const double chance = mark_chance();
    uint64_t marked = 0;
    for (uint64_t i = 0; i < packets; ++i) marked += random_.chance(chance);
    step(static_cast<double>(marked) / static_cast<double>(packets));
  }

  double mark_chance() const {
    const double percent = window_ / capacity() * 100;
    if (percent <= parameters_.mark_from) return 0;
    const double most = parameters_.mark_most / 100;
    if (percent >= parameters_.mark_full) return most;
    return most * (percent - parameters_.mark_from) / (parameters_.mark_full - parameters_.mark_from);
  }

 private:
  static constexpr double kLeastWindow = 1;

  double capacity() const { return static_cast<double>(parameters_.window_capacity); }
  void step(double marked_part) {
    marked_part_ = marked_part;
    window_ = std::max(kLeastWindow, window_ * (1 - parameters_.window_cut * marked_part) + parameters_.window_add);
  }

  const Parameters& parameters_;
  double window_, marked_part_ = 0;
  std::deque<bool> marks_;
  uint64_t marked_ = 0;  // of those
  RandomStream random_;
};

}  // namespace ub::emu
