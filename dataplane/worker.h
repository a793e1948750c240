// SPDX-License-Identifier: Apache-2.0
//
// One round of work of a NIC: frames in, doorbells, timers, frames out, events. Read it from drive() on; there is
// nothing else that moves the Core.
//
// Doorbells: a thread that posts and does not get to own the Core leaves a bit per jetty in a bitmap with a
// summary; the owner collects them. No idle queue is ever looked at.
#pragma once

#include <atomic>
#include <memory>

#include "dataplane/port.h"
#include "dataplane/tsc_clock.h"
#include "lib/transport/core.h"

namespace ub {

// Bits of jettys with something posted. Any thread sets, the owner takes.
class PostedBitmap {
 public:
  void set(uint32_t id) {
    words_[id / 64].fetch_or(uint64_t{1} << (id % 64), std::memory_order_release);
    summary_[id / 4096].fetch_or(uint64_t{1} << (id / 64 % 64), std::memory_order_release);
    any_.store(true, std::memory_order_seq_cst);
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }

  template <class Fn>
  void take(Fn fn) {
    any_.store(false, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (uint32_t s = 0; s < kIdSpace / 4096; ++s) {
      if (summary_[s].load(std::memory_order_relaxed) == 0) continue;
      uint64_t groups = summary_[s].exchange(0, std::memory_order_acquire);
      for (; groups != 0; groups &= groups - 1) {
        uint32_t word = s * 64 + static_cast<uint32_t>(std::countr_zero(groups));
        uint64_t bits = words_[word].exchange(0, std::memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) fn(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  std::atomic<bool> any_{false};
  std::atomic<uint64_t> summary_[kIdSpace / 4096] = {};
  std::atomic<uint64_t> words_[kIdSpace / 64] = {};
};

template <class Ports>
class Worker {
 public:
  Worker(const CoreConfig& config, std::byte* arena, Ports& ports) : ports_(ports), core_(config, arena, ports) {}

  Core<Ports>& core() { return core_; }
  Instant now() const { return clock_.now(); }

  // One bounded round; tells whether there was anything to do. `on_event` is called for each event.
  template <class OnEvent>
  bool drive(OnEvent&& on_event) {
    Instant now = clock_.now();
    RxFrame frames[kBurst];
    size_t received = ports_.rx_burst(now, frames, kBurst);
    for (size_t i = 0; i < received; ++i) {
      if (i + 1 < received) __builtin_prefetch(frames[i + 1].data);
      core_.on_packet(now, frames[i].link, {frames[i].data, frames[i].bytes});
    }
    ports_.rx_release();
    if (posted_.any()) posted_.take([&](uint32_t id) { core_.on_posted(now, id); });
    if (core_.next_deadline() <= now) core_.on_timer(now);
    size_t sent = core_.poll_packets(now, kTxBudget, Acks::kMayWait);
    ports_.tx_flush(now);
    report(on_event);
    return received + sent != 0;
  }

  // A doorbell of a thread that owns the Core: what it posted leaves at once.
  template <class OnEvent>
  void send_posted(uint32_t jetty, OnEvent&& on_event) {
    Instant now = clock_.now();
    core_.on_posted(now, jetty);
    core_.poll_packets(now, kTxBudget, Acks::kMayWait);
    ports_.tx_flush(now);
    report(on_event);
  }

  PostedBitmap& posted() { return posted_; }

  template <class OnEvent>
  void report(OnEvent&& on_event) {
    Event events[16];
    while (size_t n = core_.poll_events(events)) {
      for (size_t i = 0; i < n; ++i) on_event(events[i]);
    }
  }

 private:
  static constexpr size_t kTxBudget = 2 * kBurst;

  Ports& ports_;
  TscClock clock_;
  Core<Ports> core_;
  PostedBitmap posted_;
};

}  // namespace ub
