// SPDX-License-Identifier: Apache-2.0
//
// Threads that do everything that a window allows at the same time, checked against a model. Each thread has bytes of
// its own on every page, between those of the others; it knows what it wrote there, and finds exactly that again.
// Several windows over the same memory share the threads. Loads and stores may fail for a while: then accesses are
// tried again until they succeed. In the end remote memory has what the model has.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/prng.h"
#include "lib/urma/aperture/window/cached_window.h"
#include "lib/urma/clock.h"
#include "tests/unit/aperture/window/fake_memory.h"

namespace ub::aperture::test {

struct StressOptions {
  uint64_t seed = 1;
  uint32_t threads = 3;
  uint32_t windows = 1;
  uint32_t paths = 2;  // of each window
  uint64_t pages = 24;
  uint64_t cache_pages = 8;
  uint64_t operations = 1000;  // of each thread
  WritePolicy policy = WritePolicy::kWriteThrough;
  bool failures = false;
};

class Stress {
 public:
  explicit Stress(const StressOptions& options)
      : options_(options), memory_(options.pages * kPageBytes - 1000), model_(memory_.size()) {
    Prng(options.seed).fill(model_.data(), model_.size());
    for (uint64_t at = 0; at < model_.size(); ++at) memory_.set(at, model_[at]);
    memory_.hesitates = true;
  }

  // "" or what went wrong.
  std::string run() {
    for (uint32_t i = 0; i < options_.windows; ++i) {
      if (!add_window()) return why_;
    }
    std::vector<std::thread> threads;
    for (uint32_t id = 0; id < options_.threads; ++id) threads.emplace_back([this, id] { work(id); });
    std::thread trouble([this] { make_trouble(); });
    for (std::thread& thread : threads) thread.join();
    done_ = true;
    trouble.join();
    if (failed_) return why_;
    for (auto& window : windows_) {
      if (window->close() != URMA_CR_SUCCESS) return "closing fails";
    }
    for (uint64_t at = 0; at < model_.size(); ++at) {
      if (memory_.get(at) != model_[at]) return "remote byte " + std::to_string(at) + " is wrong";
    }
    return memory_.misused ? "two threads used one path" : "";
  }

  WindowCounters counters(uint32_t window) const { return windows_[window]->counters(); }

 private:
  bool add_window() {
    CachedWindowOptions options;
    options.segment_bytes = memory_.size();
    options.bytes = options_.pages * kPageBytes;
    options.cache_bytes = options_.cache_pages * kPageBytes;
    options.policy = options_.policy;
    std::vector<std::unique_ptr<RemotePath>> paths;
    for (uint32_t i = 0; i < options_.paths; ++i) paths.push_back(std::make_unique<FakePath>(memory_));
    WindowError error;
    windows_.push_back(CachedWindow::create(options, std::move(paths), &error));
    why_ = error.why;
    if (windows_.back() == nullptr) return false;
    windows_.back()->on_fault([](const softub_fault_t*, void*) { return true; }, nullptr);
    return true;
  }

  struct Worker {
    uint32_t id;
    CachedWindow& window;
    Prng random;
  };

  void work(uint32_t id) {
    Worker worker = {id, *windows_[id % options_.windows], Prng(options_.seed * 1000 + id)};
    for (uint64_t i = 0; i < options_.operations && !failed_; ++i) {
      const uint64_t choice = worker.random.below(100);
      if (choice < 40) {
        write_some(worker);
      } else if (choice < 80) {
        read_some(worker);
      } else if (choice < 84) {
        go_through(worker);
      } else {
        call(worker, choice);
      }
    }
  }

  // A byte of the thread's own.
  uint64_t own_place(Worker& worker) const {
    const uint64_t at = worker.random.below(memory_.size() / options_.threads);
    return at * options_.threads + worker.id;
  }
  volatile std::byte& byte_at(const Worker& worker, uint64_t at) const {
    return *static_cast<volatile std::byte*>(worker.window.data() + at);
  }
  void check(const Worker& worker, uint64_t at) {
    const std::byte value = byte_at(worker, at);
    if (value == model_[at] || failed_.exchange(true)) return;
    why_ = "thread " + std::to_string(worker.id) + " finds " + std::to_string(static_cast<int>(value)) + " and not " +
           std::to_string(static_cast<int>(model_[at])) + " at byte " + std::to_string(at % kPageBytes) + " of page " +
           std::to_string(at / kPageBytes);
  }

  void write_some(Worker& worker) {
    uint64_t at = own_place(worker);
    for (uint64_t i = worker.random.below(20); i < 20 && at < model_.size(); ++i, at += options_.threads) {
      model_[at] = static_cast<std::byte>(worker.random.next_u32());
      byte_at(worker, at) = model_[at];
    }
  }
  void read_some(Worker& worker) {
    for (int i = 0; i < 3; ++i) check(worker, own_place(worker));
  }
  // Page by page, as faults in a row.
  void go_through(Worker& worker) {
    const uint64_t step = kPageBytes / options_.threads * options_.threads;
    for (uint64_t at = own_place(worker), i = 0; at < model_.size() && i < 6; at += step, ++i) check(worker, at);
  }
  void call(Worker& worker, uint64_t choice) {
    const uint64_t at = worker.random.below(model_.size());
    const uint64_t bytes = worker.random.below(std::min(model_.size() - at, 4 * uint64_t{kPageBytes}));
    void* start = worker.window.data() + at;
    switch (choice) {
      case 84:
      case 85:
        worker.window.sync(start, bytes, kSyncFlush);
        break;
      case 86:
      case 87:
      case 88:
        worker.window.sync(start, bytes, kSyncInvalidate);
        break;
      case 89:
        worker.window.sync(start, bytes, kSyncPrefetch);
        break;
      case 90:
        worker.window.sync(start, bytes, kSyncResident);
        break;
      case 91:
        worker.window.sync(start, bytes, kSyncWritable);
        break;
      case 92:
        worker.window.sync(start, bytes, kSyncInvalidate | kSyncWritable);
        break;
      case 93:
        worker.window.own(start, bytes, Owned::kNone);
        break;
      case 94:
        worker.window.own(start, bytes, Owned::kRead);
        break;
      case 95:
        worker.window.own(start, bytes, Owned::kWrite);
        break;
      case 96:
        worker.window.close();
        break;
      default:
        worker.window.flush_due({static_cast<uint64_t>(urma::now_ns())});
    }
  }

  // Reads what is counted, and lets parts of remote memory fail now and then.
  void make_trouble() {
    Prng random(options_.seed + 77);
    while (!done_) {
      if (options_.failures) {
        BadPlaces& bad = random.chance(0.5) ? memory_.bad_loads : memory_.bad_stores;
        bad.set(random.below(memory_.size()), random.below(3 * kPageBytes), URMA_CR_ACK_TIMEOUT_ERR);
        for (int i = 0; i < 20; ++i) std::this_thread::yield();
        bad.heal();
      }
      Histogram& histogram = *read_;
      for (auto& window : windows_) window->add_latencies(FaultKind::kMissing, &histogram);
      for (auto& window : windows_) evicted_ = window->counters().evicted_pages;
      std::this_thread::yield();
    }
  }

  const StressOptions options_;
  FakeMemory memory_;
  std::vector<std::byte> model_;  // each byte belongs to a thread
  std::vector<std::unique_ptr<CachedWindow>> windows_;
  std::unique_ptr<Histogram> read_ = std::make_unique<Histogram>();
  uint64_t evicted_ = 0;
  std::atomic<bool> failed_{false}, done_{false};
  std::string why_;
};

}  // namespace ub::aperture::test
