// SPDX-License-Identifier: Apache-2.0
//
// The pages of a window: for each a word of 4 bytes, which says in what state it is, in which slot of the cache it lies
// and who owns it. Whoever wants to change anything about a page claims it by exchanging its word for "busy", and
// releases it with its new word. Everybody else who needs the page waits until then.
//
//            claim        load            write fault             written back
//   absent --------> busy -------> clean ------------> dirty ----------------> clean or absent
//
// A clean page is write-protected, so its bytes are those that were loaded or written back last. A dirty page is not,
// and its twin (twins.h) has the bytes that remote memory had.
//
// Order in which a thread may wait: for a page only while it holds nothing; for a slot while it holds absent pages
// alone; for a path while it holds pages and slots. Nobody who holds a path waits for anything but its answers, so
// there is no circle. Thread: any; safe in a signal handler once it was created.
#pragma once

#include <atomic>
#include <cstdint>

#include "lib/ipc/memfd.h"
#include "lib/urma/aperture/window/patience.h"

namespace ub::aperture {

inline constexpr uint32_t kPageBytes = 4096;

enum class PageState : uint8_t { kAbsent, kBusy, kClean, kDirty };
enum class Owned : uint8_t { kNone, kRead, kWrite };

// Pages [first, end) of a window.
struct PageRange {
  uint64_t first = 0, end = 0;

  bool contains(uint64_t page) const { return first <= page && page < end; }
  uint64_t count() const { return end - first; }
};

// The word of a page, taken apart.
struct PageWord {
  PageState state = PageState::kAbsent;
  Owned owned = Owned::kNone;
  bool referenced = false;  // since the clock looked at it last, it was wanted by a fault
  uint32_t slot = 0;        // of a page that is present, below kMaxSlots; else 0

  static constexpr uint32_t kMaxSlots = 1U << 27;

  bool is_present() const { return state == PageState::kClean || state == PageState::kDirty; }

  uint32_t pack() const {
    return static_cast<uint32_t>(state) | static_cast<uint32_t>(owned) << 2 | static_cast<uint32_t>(referenced) << 4 |
           slot << 5;
  }
  static PageWord unpack(uint32_t bits) {
    return {static_cast<PageState>(bits & 3), static_cast<Owned>(bits >> 2 & 3), (bits >> 4 & 1) != 0, bits >> 5};
  }
};

class PageTable {
 public:
  // All pages are absent and owned by nobody. False: no memory.
  bool create(uint64_t pages) { return memory_.map_private(pages * sizeof(uint32_t)); }

  PageWord look(uint64_t page) const { return PageWord::unpack(word(page).load(std::memory_order_seq_cst)); }

  // True: the page was as `seen`, which was not busy, and now it is busy and the caller's.
  bool claim(uint64_t page, PageWord seen) { return replace(page, seen, {.state = PageState::kBusy}); }
  void release(uint64_t page, PageWord now) { word(page).store(now.pack(), std::memory_order_seq_cst); }

  // For the clock: changes nothing if the page is not as it was seen.
  void forget_reference(uint64_t page, PageWord seen) {
    PageWord now = seen;
    now.referenced = false;
    replace(page, seen, now);
  }

  // Until whoever claimed the page has released it. The caller holds nothing.
  void await(uint64_t page) const {
    for (Patience patience; look(page).state == PageState::kBusy;) patience.wait();
  }

 private:
  std::atomic<uint32_t>& word(uint64_t page) const {
    return static_cast<std::atomic<uint32_t>*>(static_cast<void*>(memory_.data()))[page];
  }
  bool replace(uint64_t page, PageWord seen, PageWord now) {
    uint32_t expected = seen.pack();
    return word(page).compare_exchange_strong(expected, now.pack(), std::memory_order_seq_cst);
  }

  ipc::Mapping memory_;  // its untouched parts take no memory
};

}  // namespace ub::aperture
