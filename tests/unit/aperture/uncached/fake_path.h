// SPDX-License-Identifier: Apache-2.0
//
// Remote memory that is an array, and paths to it that note each access and can fail. A store is seen by other paths
// when it was fenced, and not before. Words that are naturally aligned are read and written whole. Nothing allocates,
// since paths are used in signal handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/urma/aperture/remote_path.h"

namespace ub::aperture::test {

enum class Kind : uint8_t { kLoad, kStore, kAtomic };
struct Noted {
  Kind kind;
  uint64_t at;
  uint32_t bytes;
  bool operator==(const Noted&) const = default;
};

class FakeMemory {
 public:
  explicit FakeMemory(size_t bytes) : words_(bytes / sizeof(uint64_t) + 2) {}

  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  void copy_out(uint64_t at, void* to, size_t bytes) { copy(static_cast<std::byte*>(to), data() + at, bytes, true); }
  void copy_in(uint64_t at, const void* from, size_t bytes) {
    copy(data() + at, static_cast<const std::byte*>(from), bytes, false);
  }

 private:
  // Word by word, as far as the remote end is aligned.
  static void copy(std::byte* to, const std::byte* from, size_t bytes, bool remote_is_source) {
    while (bytes != 0) {
      const auto remote = reinterpret_cast<uintptr_t>(remote_is_source ? from : to);
      size_t word = 8;
      while (word > bytes || remote % word != 0) word /= 2;
      switch (word) {
        case 8:
          copy_word<uint64_t>(to, from, remote_is_source);
          break;
        case 4:
          copy_word<uint32_t>(to, from, remote_is_source);
          break;
        case 2:
          copy_word<uint16_t>(to, from, remote_is_source);
          break;
        default:
          copy_word<uint8_t>(to, from, remote_is_source);
          break;
      }
      to += word;
      from += word;
      bytes -= word;
    }
  }
  template <class T>
  static void copy_word(std::byte* to, const std::byte* from, bool remote_is_source) {
    T value;
    if (remote_is_source) {
      value = __atomic_load_n(reinterpret_cast<const T*>(from), __ATOMIC_RELAXED);
      std::memcpy(to, &value, sizeof value);
    } else {
      std::memcpy(&value, from, sizeof value);
      __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELAXED);
    }
  }

  std::vector<uint64_t> words_;
};

class FakePath final : public RemotePath {
 public:
  static constexpr size_t kMostNoted = 64;

  explicit FakePath(FakeMemory& memory) : memory_(memory) {}

  // The next access of the kind, and those after it, fail so often.
  std::atomic<uint32_t> failing_loads{0}, failing_stores{0}, failing_fences{0}, failing_atomics{0};
  std::atomic<urma_cr_status_t> failure{URMA_CR_REM_ACCESS_ABORT_ERR};
  bool signal_safe = true;
  // Called in the middle of each access, while the path is claimed.
  std::atomic<void (*)()> inside{nullptr};
  // How often each kind was asked for; and the first accesses since forget().
  std::atomic<uint64_t> loads{0}, stores{0}, fences{0}, atomics{0};
  std::atomic<bool> in_use{false}, used_twice{false};
  Noted noted[kMostNoted];
  size_t noted_count = 0;

  void forget() {
    noted_count = 0;
    loads = stores = fences = atomics = 0;
  }
  std::vector<Noted> accesses() const { return {noted, noted + noted_count}; }
  bool has_unfenced() const { return waiting_ != 0; }

  urma_cr_status_t load(std::span<const LoadBlock> blocks) override {
    Use use(*this);
    loads.fetch_add(1);
    if (take(failing_loads)) return failure;
    land();
    for (const LoadBlock& block : blocks) {
      note(Kind::kLoad, block.at, block.bytes);
      memory_.copy_out(block.at, block.to, block.bytes);
    }
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t store(const StoreBlock& block) override {
    Use use(*this);
    stores.fetch_add(1);
    if (take(failing_stores)) return failure;
    note(Kind::kStore, block.at, block.bytes);
    if (waiting_ == kMostWaiting) land();
    Waiting& to = queue_[waiting_++];
    to.at = block.at;
    to.bytes = block.bytes;
    std::memcpy(to.data, block.from, block.bytes);
    for (uint32_t i = 0; i < block.bytes; ++i)
      to.enabled[i] = block.enables == nullptr || (block.enables[i / 64] >> i % 64 & 1) != 0;
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t fence() override {
    Use use(*this);
    fences.fetch_add(1);
    if (take(failing_fences)) {
      waiting_ = 0;
      return failure;
    }
    land();
    return URMA_CR_SUCCESS;
  }
  urma_cr_status_t atomic(const RemoteAtomic& request, uint64_t* old) override {
    Use use(*this);
    atomics.fetch_add(1);
    if (take(failing_atomics)) return failure;
    land();
    note(Kind::kAtomic, request.at, request.bytes);
    if ((request.bytes != 4 && request.bytes != 8) || request.at % request.bytes != 0) return URMA_CR_REM_OPERATION_ERR;
    *old = static_cast<uint64_t>(
        run_atomic({memory_.data() + request.at, request.op, request.bytes, request.operand, request.compare}));
    return URMA_CR_SUCCESS;
  }
  bool is_signal_safe() const override { return signal_safe; }
  bool is_broken() const override { return false; }

 private:
  static constexpr size_t kMostWaiting = 16;
  struct Waiting {
    uint64_t at;
    uint32_t bytes;
    std::byte data[512];
    bool enabled[512];
  };
  struct Use {
    explicit Use(FakePath& path) : path_(path) {
      if (path_.in_use.exchange(true)) path_.used_twice = true;
      if (auto* function = path_.inside.load()) function();
    }
    ~Use() { path_.in_use = false; }
    FakePath& path_;
  };

  static bool take(std::atomic<uint32_t>& count) {
    uint32_t before = count.load();
    while (before != 0 && !count.compare_exchange_weak(before, before - 1)) {
    }
    return before != 0;
  }
  void note(Kind kind, uint64_t at, uint32_t bytes) {
    if (noted_count < kMostNoted) noted[noted_count++] = {kind, at, bytes};
  }
  // Runs of bytes that are enabled, so that whole words are written whole.
  void land() {
    for (size_t i = 0; i < waiting_; ++i) {
      const Waiting& w = queue_[i];
      for (uint32_t begin = 0; begin < w.bytes;) {
        uint32_t end = begin;
        while (end < w.bytes && w.enabled[end]) ++end;
        if (end != begin) memory_.copy_in(w.at + begin, w.data + begin, end - begin);
        begin = end + 1;
      }
    }
    waiting_ = 0;
  }

  FakeMemory& memory_;
  Waiting queue_[kMostWaiting];
  size_t waiting_ = 0;
};

}  // namespace ub::aperture::test
