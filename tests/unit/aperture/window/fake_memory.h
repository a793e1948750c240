// SPDX-License-Identifier: Apache-2.0
//
// Remote memory of a test, and paths to it. Loads and fences can be held at a gate, places can be made to fail, and all
// is counted. What was stored lands at the next fence and not before, as late as a path may be; without a fence it is
// lost. A path says if two threads use it at the same time. Nothing in a path takes memory, as it runs in a signal
// handler.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/spinlock.h"

namespace ub::aperture::test {

// Whoever passes waits while it is shut.
class Gate {
 public:
  void shut() { shut_ = true; }
  void open() { shut_ = false; }
  void pass() {
    ++waiting_;
    while (shut_) ::sched_yield();
    --waiting_;
  }
  // While it is shut: so many came and wait.
  uint32_t waiting() const { return waiting_; }

 private:
  std::atomic<bool> shut_{false};
  std::atomic<uint32_t> waiting_{0};
};

// Places [first, end) answer with an error.
struct BadPlaces {
  std::atomic<uint64_t> first{0}, end{0};
  std::atomic<urma_cr_status_t> cause{URMA_CR_SUCCESS};

  void set(uint64_t from, uint64_t bytes, urma_cr_status_t why) {
    cause = why;  // before they are bad
    first = from;
    end = from + bytes;
  }
  void heal() { first = end = 0; }
  bool holds(uint64_t at, uint64_t bytes) const { return at < end && first < at + bytes; }
};

class FakeMemory {
 public:
  explicit FakeMemory(size_t bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size(); }
  std::byte get(uint64_t at) {
    std::lock_guard guard(lock_);
    return bytes_[at];
  }
  void set(uint64_t at, std::byte value) {
    std::lock_guard guard(lock_);
    bytes_[at] = value;
  }

  Gate loads, fences;
  BadPlaces bad_loads, bad_stores;
  std::atomic<uint64_t> load_calls{0}, loaded_blocks{0}, stores{0}, fence_calls{0}, stored_bytes{0};
  std::atomic<bool> misused{false};    // two threads on one path, or a path that was destroyed while in use
  std::atomic<bool> hesitates{false};  // gives the CPU away here and there

 private:
  friend class FakePath;
  urma::SpinLock lock_;
  std::vector<std::byte> bytes_;
};

class FakePath final : public RemotePath {
 public:
  explicit FakePath(FakeMemory& memory) : memory_(memory) { on_the_way_.reserve(kMostOnTheWay); }
  ~FakePath() override {
    if (used_) memory_.misused = true;
  }

  urma_cr_status_t load(std::span<const LoadBlock> blocks) override {
    const Use use(*this);
    ++memory_.load_calls;
    memory_.loads.pass();
    for (const LoadBlock& block : blocks) {
      if (block.bytes == 0 || block.bytes > kMaxBlockBytes) memory_.misused = true;
      if (block.at + block.bytes > memory_.size()) return URMA_CR_REM_ACCESS_ABORT_ERR;
      if (memory_.bad_loads.holds(block.at, block.bytes)) return memory_.bad_loads.cause;
      std::lock_guard guard(memory_.lock_);
      std::memcpy(block.to, memory_.bytes_.data() + block.at, block.bytes);
      ++memory_.loaded_blocks;
    }
    hesitate();
    return URMA_CR_SUCCESS;
  }

  urma_cr_status_t store(const StoreBlock& block) override {
    const Use use(*this);
    ++memory_.stores;
    if (block.bytes == 0 || block.bytes > kMaxBlockBytes) memory_.misused = true;
    if (block.at + block.bytes > memory_.size()) return URMA_CR_REM_ACCESS_ABORT_ERR;
    for (uint32_t i = 0; i < block.bytes; ++i) {
      if (block.enables != nullptr && (block.enables[i / 64] >> (i % 64) & 1) == 0) continue;
      if (on_the_way_.size() == kMostOnTheWay) land();
      on_the_way_.emplace_back(block.at + i, static_cast<const std::byte*>(block.from)[i]);
    }
    hesitate();
    return URMA_CR_SUCCESS;
  }

  urma_cr_status_t fence() override {
    const Use use(*this);
    ++memory_.fence_calls;
    memory_.fences.pass();
    hesitate();
    land();
    return std::exchange(error_, URMA_CR_SUCCESS);
  }

  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t*) override { return URMA_CR_UNSUPPORTED_OPCODE_ERR; }
  bool is_signal_safe() const override { return is_signal_safe_; }
  bool is_broken() const override { return false; }

  bool is_signal_safe_ = true;

 private:
  static constexpr size_t kMostOnTheWay = 64 * 4096;

  struct Use {
    explicit Use(FakePath& p) : path(p) {
      if (path.used_.exchange(true)) path.memory_.misused = true;
    }
    ~Use() { path.used_ = false; }
    FakePath& path;
  };

  void land() {
    std::lock_guard guard(memory_.lock_);
    for (const auto& [at, value] : on_the_way_) {
      if (memory_.bad_stores.holds(at, 1)) {
        if (error_ == URMA_CR_SUCCESS) error_ = memory_.bad_stores.cause;
        continue;
      }
      memory_.bytes_[at] = value;
      ++memory_.stored_bytes;
    }
    on_the_way_.clear();
  }
  void hesitate() {
    if (memory_.hesitates && ++steps_ % 3 == 0) ::sched_yield();
  }

  FakeMemory& memory_;
  std::vector<std::pair<uint64_t, std::byte>> on_the_way_;
  urma_cr_status_t error_ = URMA_CR_SUCCESS;
  uint32_t steps_ = 0;
  std::atomic<bool> used_{false};
};

}  // namespace ub::aperture::test
