// SPDX-License-Identifier: Apache-2.0
//
// A set of limited size that forgets what was used longest ago: the lines of a cache, the contexts of a NIC, the pages
// of a resident set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace ub::emu {

class LruSet {
 public:
  explicit LruSet(size_t capacity) : capacity_(capacity) {}

  // Is it there? Then it is the one that was used last.
  bool touch(uint64_t key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    order_.splice(order_.begin(), order_, found->second);
    return true;
  }
  // It was used last; another one may have to go.
  void insert(uint64_t key) {
    if (touch(key) || capacity_ == 0) return;
    if (places_.size() == capacity_) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(key);
    places_.emplace(key, order_.begin());
  }
  size_t size() const { return places_.size(); }

 private:
  const size_t capacity_;
  std::list<uint64_t> order_;  // the one that was used last comes first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places_;
};

}  // namespace ub::emu
