// SPDX-License-Identifier: Apache-2.0
//
// Events in the order of their time, and those of one time in the order in which they came. A radix heap (Ahuja,
// Mehlhorn, Orlin, Tarjan 1990): time never goes back, so the bucket of an event is the highest bit in which its time
// differs from now, and an event moves to a smaller bucket 64 times at most, without comparisons.
//
// Memory is bounded by the events that wait. One thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emu_hw/kernel/virtual_time.h"
#include "lib/base/assert.h"

namespace ub::emu {

// What happens: an object that begins with its function. The frame of a suspended coroutine is one, too: by the ABI of
// gcc and clang it begins with the function that resumes it (a test holds this).
struct Event {
  void (*run)(Event*);
};

class EventQueue {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  // That of the event that was popped last.
  Time now() const { return {now_}; }
  // The queue must not be empty. Does not move `now`, so an earlier event may still be pushed.
  Time next_time() const {
    return {!due_.empty() ? now_ : buckets_[lowest()].least};
  }

  // Not before now.
  void push(Time at, Event* event) {
    UB_DCHECK(at.ps >= now_);
    put({at.ps, event});
    ++count_;
  }

  // The queue must not be empty.
  Event* pop() {
    if (due_.empty()) advance();
    Event* event = due_[begin_++];
    if (begin_ == due_.size()) {
      due_.clear();
      begin_ = 0;
    }
    --count_;
    return event;
  }

 private:
  static constexpr size_t kBuckets = 64;
  struct Entry {
    uint64_t at;
    Event* event;
  };
  // Of times that differ from now first in one bit.
  struct Bucket {
    uint64_t least = UINT64_MAX;
    std::vector<Entry> entries;
  };

  // There is one that is filled; the compiler is told that the number is one of a bucket.
  size_t lowest() const { return static_cast<size_t>(std::countr_zero(filled_)) % kBuckets; }

  void put(Entry entry) {
    if (entry.at == now_) return due_.push_back(entry.event);
    const auto number = static_cast<size_t>(63 - std::countl_zero(entry.at ^ now_));
    Bucket& bucket = buckets_[number];
    if (entry.at < bucket.least) bucket.least = entry.at;
    bucket.entries.push_back(entry);
    filled_ |= uint64_t{1} << number;
  }

  // The entries of the lowest bucket go to lower ones, in their order. Those of all others differ from the new time in
  // the same bit as from the former one.
  void advance() {
    Bucket& bucket = buckets_[lowest()];
    filled_ &= filled_ - 1;
    now_ = bucket.least;
    bucket.least = UINT64_MAX;
    for (const Entry& entry : bucket.entries) put(entry);
    bucket.entries.clear();
  }

  uint64_t now_ = 0;
  size_t count_ = 0;
  std::vector<Event*> due_;  // now, from begin_ on
  size_t begin_ = 0;
  uint64_t filled_ = 0;  // which buckets have entries
  std::array<Bucket, kBuckets> buckets_;
};

}  // namespace ub::emu
