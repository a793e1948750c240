// SPDX-License-Identifier: Apache-2.0
//
// The paths of a window to remote memory, up to four, each with a buffer for the pages that are loaded through it. A
// thread that faults claims one by its bit, and has it alone until the claim ends. If none is free, it waits; whoever
// has one waits for nothing but remote memory. Thread: any; safe in a signal handler once it was created.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/ipc/memfd.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/aperture/window/page_table.h"
#include "lib/urma/aperture/window/patience.h"
#include "lib/urma/aperture/window/statistics.h"

namespace ub::aperture {

// As many pages are loaded together at most.
inline constexpr uint32_t kMaxRun = 8;

class PathPool {
 public:
  static constexpr size_t kMaxPaths = 4;

  class Claim {
   public:
    Claim(PathPool& pool, uint32_t index) : pool_(pool), index_(index) {}
    ~Claim() { pool_.free_.fetch_or(1U << index_, std::memory_order_release); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    RemotePath& path() const { return *pool_.paths_[index_]; }
    // Room for kMaxRun pages.
    std::byte* buffer() const { return pool_.buffers_.data() + size_t{index_} * kMaxRun * kPageBytes; }

   private:
    PathPool& pool_;
    uint32_t index_;
  };

  // 1 to kMaxPaths paths. False: no memory.
  bool create(std::vector<std::unique_ptr<RemotePath>> paths) {
    paths_ = std::move(paths);
    free_.store((1U << paths_.size()) - 1, std::memory_order_relaxed);
    return buffers_.map_private(paths_.size() * kMaxRun * kPageBytes);
  }

  Claim claim(Count& waits) {
    uint32_t free = free_.load(std::memory_order_relaxed);
    for (Patience patience;;) {
      if (free == 0) {
        waits.add();
        for (; free == 0; free = free_.load(std::memory_order_relaxed)) patience.wait();
      }
      if (free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire, std::memory_order_relaxed)) {
        return {*this, static_cast<uint32_t>(std::countr_zero(free))};
      }
    }
  }

 private:
  std::vector<std::unique_ptr<RemotePath>> paths_;
  ipc::Mapping buffers_;
  std::atomic<uint32_t> free_{0};
};

}  // namespace ub::aperture
