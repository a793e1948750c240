// SPDX-License-Identifier: Apache-2.0
// cached_handle.h - a handle with a line cache, and remote memory behind a path that a test looks at and makes fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/urma/aperture/line_cache.h"

namespace ub::aperture::test {

// Stores land as late as a path may let them: with the next load, fence or atomic.
class FarMemory final : public RemotePath {
 public:
  explicit FarMemory(size_t size) : bytes(size) {}

  urma_cr_status_t load(std::span<const LoadBlock> blocks) override {
    land();
    ++loads;
    for (const LoadBlock& block : blocks) {
      if (!is_inside(block.at, block.bytes)) ++wrong_calls;
      if (bad_loads != URMA_CR_SUCCESS) return bad_loads;
      if (is_inside(block.at, block.bytes)) std::memcpy(block.to, &bytes[block.at], block.bytes);
      loaded_bytes += block.bytes;
    }
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t store(const StoreBlock& block) override {
    if (!is_inside(block.at, block.bytes)) ++wrong_calls;
    if (unsendable != URMA_CR_SUCCESS) return unsendable;
    ++stores;
    for (uint32_t i = 0; i < block.bytes; ++i) {
      if (!is_enabled(block, i)) continue;
      on_the_way_.emplace_back(block.at + i, static_cast<const uint8_t*>(block.from)[i]);
      ++stored_bytes;
    }
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t fence() override {
    land();
    return std::exchange(error_, URMA_CR_SUCCESS);
  }
  urma_cr_status_t atomic(const RemoteAtomic& a, uint64_t* old) override {
    land();
    *old = static_cast<uint64_t>(
        run_atomic({reinterpret_cast<std::byte*>(&bytes[a.at]), a.op, a.bytes, a.operand, a.compare}));
    return URMA_CR_SUCCESS;
  }
  bool is_signal_safe() const override { return true; }
  bool is_broken() const override { return broken; }

  // Stores to these bytes are refused when they land.
  void refuse(uint64_t from, uint64_t count) { refused_from_ = from, refused_end_ = from + count; }

  std::vector<uint8_t> bytes;
  urma_cr_status_t bad_loads = URMA_CR_SUCCESS, unsendable = URMA_CR_SUCCESS;
  bool broken = false;
  uint64_t loads = 0, loaded_bytes = 0, stores = 0, stored_bytes = 0, wrong_calls = 0;

 private:
  bool is_inside(uint64_t at, uint64_t count) const { return at < bytes.size() && count <= bytes.size() - at; }
  void land() {
    for (const auto& [at, value] : on_the_way_) {
      if (at >= refused_from_ && at < refused_end_) {
        error_ = URMA_CR_REM_ACCESS_ABORT_ERR;
      } else {
        bytes[at] = value;
      }
    }
    on_the_way_.clear();
  }

  std::vector<std::pair<uint64_t, uint8_t>> on_the_way_;
  uint64_t refused_from_ = 0, refused_end_ = 0;
  urma_cr_status_t error_ = URMA_CR_SUCCESS;
};

// One at a time: what the inline calls leave finds the cache in `current`.
struct CachedHandle {
  CachedHandle(FarMemory& far, uint64_t base, softub_cache_t policy) : cache(far, base, far.bytes.size(), policy) {
    pub.base = base;
    pub.bytes = far.bytes.size();
    pub.cache = cache.state();
    pub.path = SOFTUB_PATH_CACHED;
    current = this;
  }
  ~CachedHandle() { current = nullptr; }

  urma_cr_status_t load(uint64_t at, void* to, uint32_t count) { return softub_load(&pub, at, to, count); }
  urma_cr_status_t store(uint64_t at, const void* from, uint32_t count) { return softub_store(&pub, at, from, count); }
  uint64_t word(uint64_t at) {
    uint64_t value = 0;
    return load(at, &value, sizeof value) == URMA_CR_SUCCESS ? value : ~uint64_t{0};
  }
  urma_cr_status_t put_word(uint64_t at, uint64_t value) { return store(at, &value, sizeof value); }

  softub_aperture_t pub{};
  LineCache cache;
  static inline CachedHandle* current = nullptr;
};

}  // namespace ub::aperture::test
