// SPDX-License-Identifier: Apache-2.0
//
// Carves the tables of a Core out of the one block of memory that the Core gets. With a null base it only measures how
// much they need. The block is zero and its pages are touched lazily, so a table costs only the part that is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub {

class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}

  template <class T>
  T* take(size_t count) {
    constexpr size_t kAlign = alignof(T) > 64 ? alignof(T) : 64;
    used_ = (used_ + kAlign - 1) / kAlign * kAlign;
    T* at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += count * sizeof(T);
    return at;
  }

  size_t used_bytes() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

}  // namespace ub
