// SPDX-License-Identifier: Apache-2.0
//
// Memory of coroutine frames. Those of one kind of operation have one size and come and go all the time, so each size
// has a list of free blocks. Blocks stay with the process: memory is bounded by what was in flight at once.
//
// Thread: each thread has its own lists.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace ub::emu {

class FramePool {
 public:
#if defined(__SANITIZE_ADDRESS__)  // which sees the use of a frame that is gone only if its memory is given back
  static void* allocate(size_t bytes) { return ::operator new(bytes); }
  static void release(void* at, size_t) { ::operator delete(at); }
#else
  static void* allocate(size_t bytes) {
    const size_t size = size_class(bytes);
    if (size >= kSizes) return ::operator new(bytes);
    Block* block = lists_.free[size];
    if (block == nullptr) return ::operator new((size + 1) * kGrain);
    lists_.free[size] = block->next;
    return block;
  }
  static void release(void* at, size_t bytes) {
    const size_t size = size_class(bytes);
    if (size >= kSizes) return ::operator delete(at);
    lists_.free[size] = new (at) Block{lists_.free[size]};
  }
#endif

 private:
  struct Block {
    Block* next;
  };
  static constexpr size_t kGrain = 64;
  static constexpr size_t kSizes = 64;  // frames of up to 4 KiB
  struct Lists {
    std::array<Block*, kSizes> free;
    ~Lists() {
      for (Block* block : free) {
        while (block != nullptr) ::operator delete(std::exchange(block, block->next));
      }
    }
  };

  static size_t size_class(size_t bytes) { return (bytes - 1) / kGrain; }

  static inline thread_local Lists lists_{};
};

}  // namespace ub::emu
