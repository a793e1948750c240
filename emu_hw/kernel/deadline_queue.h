// SPDX-License-Identifier: Apache-2.0
//
// Deadlines in the order of their time, and those of one time in the order in which they were set. Each owner has one,
// which it may set anew at any time; so memory is bounded by the number of owners. A binary heap whose members know
// their places.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "emu_hw/kernel/event_queue.h"
#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

// Its owner holds it as long as it is in the queue.
class Deadline : public Event {
 public:
  explicit Deadline(void (*function)(Event*)) : Event{function} {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  bool is_set() const { return place_ != kNowhere; }
  Time at() const { return at_; }  // of one that is set

 private:
  friend class DeadlineQueue;
  static constexpr size_t kNowhere = SIZE_MAX;

  bool operator<(const Deadline& other) const {
    return std::tie(at_, number_) < std::tie(other.at_, other.number_);
  }

  Time at_;
  uint64_t number_ = 0;  // of those that were set
  size_t place_ = kNowhere;
};

class DeadlineQueue {
 public:
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // The queue must not be empty.
  Time next_time() const { return heap_.front()->at(); }

  // In place of the time that it had, if it had one.
  void set(Deadline& deadline, Time at) {
    deadline.at_ = at;
    deadline.number_ = next_number_++;
    if (!deadline.is_set()) {
      deadline.place_ = heap_.size();
      heap_.push_back(&deadline);
    }
    settle(deadline.place_);
  }
  void clear(Deadline& deadline) {
    if (!deadline.is_set()) return;
    const size_t place = std::exchange(deadline.place_, Deadline::kNowhere);
    Deadline* last = heap_.back();
    heap_.pop_back();
    if (last == &deadline) return;
    put(last, place);
    settle(place);
  }
  // The queue must not be empty. The deadline is no longer set.
  Deadline* pop() {
    Deadline* first = heap_.front();
    clear(*first);
    return first;
  }

 private:
  void put(Deadline* deadline, size_t place) {
    heap_[place] = deadline;
    deadline->place_ = place;
  }
  void swap(size_t a, size_t b) {
    Deadline* at_a = heap_[a];
    put(heap_[b], a);
    put(at_a, b);
  }
  // Up or down, to where it belongs.
  void settle(size_t place) {
    for (size_t above; place != 0 && *heap_[place] < *heap_[above = (place - 1) / 2]; place = above) swap(place, above);
    for (;;) {
      size_t least = place;
      for (const size_t below : {2 * place + 1, 2 * place + 2})
        if (below < heap_.size() && *heap_[below] < *heap_[least]) least = below;
      if (least == place) return;
      swap(place, least);
      place = least;
    }
  }

  std::vector<Deadline*> heap_;
  uint64_t next_number_ = 0;
};

}  // namespace ub::emu
