// SPDX-License-Identifier: Apache-2.0
// zeroed_memory.h - the block of memory that a Core's tables lie in: zero, aligned, and real only where it is touched,
// so that a test pays for the rows that it uses and not for the size of the tables. It comes from the kernel, because
// `meson test` has calloc() write to all that it hands out (MALLOC_PERTURB_). Whoever runs beyond its end is stopped.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>

#include "lib/base/assert.h"

namespace ub {

class ZeroedMemory {
 public:
  explicit ZeroedMemory(size_t bytes) : block_(nullptr, Unmap{(bytes / kPage + 2) * kPage}) {
    const size_t all = block_.get_deleter().bytes;
    void* const at = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    UB_ASSERT(at != MAP_FAILED);
    block_.reset(static_cast<std::byte*>(at));
    std::byte* const end = block_.get() + all - kPage;
    UB_ASSERT(mprotect(end, kPage, PROT_NONE) == 0);
    begin_ = end - (bytes + kAlign - 1) / kAlign * kAlign;
  }

  std::byte* get() const { return begin_; }

 private:
  static constexpr size_t kPage = 4096, kAlign = 64;
  struct Unmap {
    size_t bytes;
    void operator()(std::byte* at) const { munmap(at, bytes); }
  };
  std::unique_ptr<std::byte, Unmap> block_;
  std::byte* begin_;
};

}  // namespace ub
