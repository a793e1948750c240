// SPDX-License-Identifier: Apache-2.0
//
// The transmitter of a link: frames leave one after the other at a rate, and those that come meanwhile wait in a queue.
// Fractions of a nanosecond are carried over, so the rate is exact however short the frames are. Whoever counts in
// other units than nanoseconds gives rates in bits for 10^9 of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/time.h"

namespace ub::impair {

class Line {
 public:
  // What has not left yet; the frame that is leaving counts as a whole.
  size_t queued_frames(Instant now) {
    forget(now);
    return count_;
  }
  uint64_t queued_bytes(Instant now) {
    forget(now);
    return bytes_;
  }
  // When the last of them has left.
  Instant free_at() const { return free_at_; }

  // A frame comes: when its last bit has left. rate: bits per second; 0: at once.
  Instant send(Instant now, size_t bytes, uint64_t rate) {
    if (rate == 0) return later(now, free_at_);
    if (free_at_ <= now) {
      free_at_ = now;
      fraction_ = 0;
    }
    const uint64_t parts = static_cast<uint64_t>(bytes) * 8 * 1'000'000'000 + fraction_;
    free_at_ += Duration{static_cast<int64_t>(parts / rate)};
    fraction_ = parts % rate;
    remember({free_at_, bytes});
    return free_at_;
  }

  // The place behind the frame that came last: the number of bytes that came so far.
  uint64_t position() const { return came_; }
  // When what came in front of a position has left if this rate begins now; the frame that is leaving begins again.
  Instant leaves(Instant now, uint64_t position, uint64_t rate) {
    const uint64_t left = came_ - queued_bytes(now);
    return now + (position <= left ? Duration{} : time_of(position - left, rate));
  }
  // What is queued leaves at this rate from now on, unless it was to leave before.
  void change_rate(Instant now, uint64_t rate) {
    forget(now);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count_; ++i) {
      Queued& queued = ring_[(first_ + i) & (ring_.size() - 1)];
      queued.leaves = earlier(queued.leaves, now + time_of(bytes += queued.bytes, rate));
      free_at_ = queued.leaves;
    }
    fraction_ = 0;  // of the former rate
    forget(now);
  }

 private:
  struct Queued {
    Instant leaves;
    size_t bytes;
  };

  // Rounded up to a nanosecond; no more than 285 years.
  static Duration time_of(uint64_t bytes, uint64_t rate) {
    if (rate == 0) return {};
    const double ns = std::ceil(8e9 * static_cast<double>(bytes) / static_cast<double>(rate));
    return {static_cast<int64_t>(std::min(ns, 9e18))};
  }

  void forget(Instant now) {
    while (count_ != 0 && ring_[first_ & (ring_.size() - 1)].leaves <= now) {
      bytes_ -= ring_[first_++ & (ring_.size() - 1)].bytes;
      --count_;
    }
  }
  void remember(const Queued& queued) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = queued;
    bytes_ += queued.bytes;
    came_ += queued.bytes;
  }
  void grow() {
    std::vector<Queued> larger(ring_.empty() ? 64 : 2 * ring_.size());
    for (size_t i = 0; i < count_; ++i) larger[i] = ring_[(first_ + i) & (ring_.size() - 1)];
    ring_ = std::move(larger);
    first_ = 0;
  }

  Instant free_at_{};
  uint64_t fraction_ = 0;     // of a nanosecond, in parts of the rate
  std::vector<Queued> ring_;  // a power of two
  size_t first_ = 0;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t came_ = 0;  // bytes
};

}  // namespace ub::impair
