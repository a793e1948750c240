// SPDX-License-Identifier: Apache-2.0
//
// Numbers of new records, in their order, for all threads. Operations choose among records that exist: a number counts
// as existing when its insertion and all before it have ended, since insertions end out of order.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

namespace ub::ycsb {

class KeySequence {
 public:
  explicit KeySequence(uint64_t first) : next_(first), end_(first) {}

  // The number of the next record, which the caller inserts now.
  uint64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // That insertion has ended, well or badly.
  void ended(uint64_t number) {
    const std::scoped_lock lock(mutex_);
    uint64_t end = end_.load(std::memory_order_relaxed);
    if (number - end >= ended_.size()) ended_.resize(number - end + 1, false);
    ended_[number - end] = true;
    for (; !ended_.empty() && ended_.front(); ++end) ended_.pop_front();
    end_.store(end, std::memory_order_release);
  }

  // One more than the last record that exists.
  uint64_t existing_end() const { return end_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> next_, end_;
  std::mutex mutex_;
  std::deque<bool> ended_;  // of numbers from end_ on
};

}  // namespace ub::ycsb
