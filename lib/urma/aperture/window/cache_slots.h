// SPDX-License-Identifier: Apache-2.0
//
// The places of a window's cache, one for each page that may be present. The page itself lies at its address in the
// window; its slot counts it, holds its twin (twins.h), and lets the clock of eviction go round the pages that are
// present instead of all. What a slot says of its page is changed by the thread that has claimed that page.
//
// Slots that nobody uses are a stack linked by index. Its head has a number that changes with each step, so that a
// thread that was late does not take a head that only looks like the one it saw. Thread: any; safe in a signal handler
// once it was created.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "lib/base/time.h"

namespace ub::aperture {

class CacheSlots {
 public:
  // All are free. Throws std::bad_alloc.
  void create(uint32_t count) {
    slots_ = std::vector<Slot>(count);
    written_ = std::vector<std::atomic<uint64_t>>((count + 63) / 64);
    for (uint32_t slot = count; slot > 0; --slot) give_back(slot - 1);
  }
  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }

  // A free slot, for a page that the caller has claimed. False: there is none.
  bool take(uint64_t page, uint32_t* slot) {
    uint64_t head = free_.load(std::memory_order_acquire);
    uint64_t rest;
    do {
      if (index_of(head) == 0) return false;
      // The slot may be taken by another thread meanwhile: then the head has changed, and this is not used.
      rest = next_head(head, slots_[index_of(head) - 1].next_free.load(std::memory_order_relaxed));
    } while (!free_.compare_exchange_weak(head, rest, std::memory_order_acq_rel, std::memory_order_acquire));
    *slot = index_of(head) - 1;
    slots_[*slot].page.store(page + 1, std::memory_order_seq_cst);
    return true;
  }
  // The slot's page is not present any more.
  void give_back(uint32_t slot) {
    mark_clean(slot);
    slots_[slot].page.store(0, std::memory_order_seq_cst);
    uint64_t head = free_.load(std::memory_order_relaxed);
    uint64_t now;
    do {
      slots_[slot].next_free.store(index_of(head), std::memory_order_relaxed);
      now = next_head(head, slot + 1);
    } while (!free_.compare_exchange_weak(head, now, std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  // The page that lies or will lie in a slot. It may change at once; only the page's own word is the truth.
  bool page_in(uint32_t slot, uint64_t* page) const {
    const uint64_t stored = slots_[slot].page.load(std::memory_order_seq_cst);
    *page = stored - 1;
    return stored != 0;
  }
  // The next slot for the clock to look at.
  uint32_t advance_hand() { return hand_.fetch_add(1, std::memory_order_relaxed) % count(); }

  // The slot's page becomes dirty at that time, or a flush of it is to be tried again as if it had.
  void mark_written(uint32_t slot, Instant when) {
    slots_[slot].written_at.store(when.ns, std::memory_order_relaxed);
    written_[slot / 64].fetch_or(bit_of(slot), std::memory_order_release);
  }
  void mark_clean(uint32_t slot) { written_[slot / 64].fetch_and(~bit_of(slot), std::memory_order_relaxed); }
  Instant written_at(uint32_t slot) const { return {slots_[slot].written_at.load(std::memory_order_relaxed)}; }

  template <class Fn>
  void for_each_written(Fn fn) const {
    for (uint32_t i = 0; i < written_.size(); ++i) {
      for (uint64_t bits = written_[i].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
        fn(i * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  struct Slot {
    std::atomic<uint64_t> page{0};  // plus 1; 0: none
    std::atomic<uint64_t> written_at{0};
    std::atomic<uint32_t> next_free{0};  // plus 1; 0: the last one
  };

  // A head: the number of its change, and the index of the first slot plus 1.
  static uint32_t index_of(uint64_t head) { return static_cast<uint32_t>(head); }
  static uint64_t next_head(uint64_t head, uint32_t index) { return ((head >> 32) + 1) << 32 | index; }
  static uint64_t bit_of(uint32_t slot) { return uint64_t{1} << (slot % 64); }

  std::vector<Slot> slots_;
  std::vector<std::atomic<uint64_t>> written_;  // a bit for each slot whose page is dirty
  std::atomic<uint64_t> free_{0};
  std::atomic<uint32_t> hand_{0};
};

}  // namespace ub::aperture
