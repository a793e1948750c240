// SPDX-License-Identifier: Apache-2.0
// zeroed_memory.h - the block of memory that a Core's tables lie in: zero, aligned, and real only where it is touched, so
// that a test pays for the rows that it uses and not for the size of the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "lib/base/assert.h"

namespace ub {

class ZeroedMemory {
 public:
  explicit ZeroedMemory(size_t bytes) : block_(std::calloc(bytes + kAlign, 1), std::free) {
    UB_ASSERT(block_ != nullptr);
  }

  std::byte* get() const {
    const auto at = reinterpret_cast<uintptr_t>(block_.get());
    return static_cast<std::byte*>(block_.get()) + (kAlign - at % kAlign) % kAlign;
  }

 private:
  static constexpr size_t kAlign = 64;
  std::unique_ptr<void, decltype(&std::free)> block_;
};

}  // namespace ub
