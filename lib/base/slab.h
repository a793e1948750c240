// SPDX-License-Identifier: Apache-2.0
//
// A fixed table of records with a free list. Records are named by their index. Index 0 is never given out, so it can
// mean "none". The record that was freed last is used again first, and memory above the high-water mark is never
// touched.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lib/base/arena.h"
#include "lib/base/assert.h"

namespace ub {

template <class T>
class Slab {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void init(Arena& arena, uint32_t capacity) {
    capacity_ = capacity;
    items_ = arena.take<T>(capacity + 1);
    next_free_ = arena.take<uint32_t>(capacity + 1);
  }

  // Returns 0 if the table is full. The record still has what its last user left; the caller initialises it.
  uint32_t alloc() {
    uint32_t index = free_head_;
    if (index != 0) {
      free_head_ = next_free_[index];
    } else {
      if (high_water_ == capacity_) return 0;
      index = ++high_water_;
    }
    ++in_use_;
    return index;
  }

  void free(uint32_t index) {
    UB_DCHECK(index != 0 && index <= high_water_);
    next_free_[index] = free_head_;
    free_head_ = index;
    --in_use_;
  }

  T& operator[](uint32_t index) { return items_[index]; }
  const T& operator[](uint32_t index) const { return items_[index]; }

  uint32_t in_use() const { return in_use_; }
  uint32_t high_water() const { return high_water_; }
  uint32_t capacity() const { return capacity_; }

 private:
  T* items_ = nullptr;
  uint32_t* next_free_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t high_water_ = 0;
  uint32_t free_head_ = 0;
  uint32_t in_use_ = 0;
};

// May a user of a shared pool take another record while it holds `held`? Only if more records are free than it holds.
// So a single user gets at most half of the pool, and some of it always remains for others.
template <class T>
bool has_share(const Slab<T>& pool, uint32_t held) {
  return held < pool.capacity() - pool.in_use();
}

}  // namespace ub
