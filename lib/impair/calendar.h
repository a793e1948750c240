// SPDX-License-Identifier: Apache-2.0
//
// Slots by a number (a time, or a place in a sequence), the least first, and of equal ones that which was put in first.
// A slot that has been put in again, or is gone, leaves an entry behind, which whoever keeps the slots knows by its
// order. tidy() sees to it that these do not pile up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ub::impair {

class Calendar {
 public:
  struct Entry {
    uint64_t at;
    uint64_t order;
    uint32_t slot;
  };

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  const Entry& first() const { return heap_.front(); }
  void put(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }
  void drop_first() {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    heap_.pop_back();
  }
  // Gives each entry another number, at(entry).
  template <class At>
  void move(At at) {
    for (Entry& entry : heap_) entry.at = at(entry);
    std::make_heap(heap_.begin(), heap_.end(), is_later);
  }
  // Takes out the entries that were left behind, as soon as they can be more than half: no more than `live` are not.
  template <class IsGone>
  void tidy(size_t live, IsGone is_gone) {
    if (heap_.size() <= 2 * live + kFew) return;
    std::erase_if(heap_, is_gone);
    std::make_heap(heap_.begin(), heap_.end(), is_later);
  }

 private:
  static constexpr size_t kFew = 64;  // not worth it

  static bool is_later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::vector<Entry> heap_;
};

}  // namespace ub::impair
