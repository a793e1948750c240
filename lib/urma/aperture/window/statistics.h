// SPDX-License-Identifier: Apache-2.0
//
// What a window did, and how long its faults took. Many threads count at the same time, and others read meanwhile: a
// copy of a Count has its value of that moment. Nothing here takes a lock or is unsafe in a signal handler.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/base/histogram.h"

namespace ub::aperture {

class Count {
 public:
  Count() = default;
  Count(const Count& other) : value_(other) {}
  Count& operator=(const Count&) = delete;

  void add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  operator uint64_t() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct WindowCounters {
  Count missing_faults;    // that loaded a page
  Count write_faults;      // of pages that were present
  Count failed_faults;     // given to the program's callback, or to the handler before ours
  Count fetched_pages;     // all that were loaded
  Count prefetched_pages;  // those among them that no access had asked for yet
  Count evicted_pages;     // dropped to make room
  Count written_back_pages;
  Count written_back_lines;
  Count written_back_bytes;  // that differed
  Count failed_write_backs;  // pages that stayed dirty
  Count page_waits;          // a thread needed a page that another one was working on
  Count path_waits;          // all paths were in use
  Count slot_waits;          // all pages present were in use
};

enum class FaultKind : uint8_t {
  kMissing,  // loaded the page
  kWrite,    // made a page that was present writable
  kWaited,   // waited for the thread that did so
};
inline constexpr size_t kFaultKinds = 3;

// Nanoseconds, log-linear: values below 64 are exact, others off by less than 1.6 %.
class LatencyCounts {
 public:
  void record(uint64_t value) { buckets_[bucket_of(value)].add(); }
  void add_to(Histogram* histogram) const {
    for (size_t i = 0; i < kBuckets; ++i) histogram->record_many(middle_of(i), buckets_[i]);
  }

 private:
  static constexpr unsigned kSubBits = 5;
  static constexpr uint64_t kSub = 1U << kSubBits;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) * kSub;

  // The top kSubBits + 1 bits of a value choose its bucket.
  static size_t bucket_of(uint64_t value) {
    const auto shift = static_cast<unsigned>(std::bit_width(value | kSub)) - kSubBits - 1;
    return (static_cast<size_t>(shift) << kSubBits) + static_cast<size_t>(value >> shift);
  }
  static uint64_t middle_of(size_t bucket) {
    if (bucket < 2 * kSub) return bucket;
    const auto shift = static_cast<unsigned>(bucket >> kSubBits) - 1;
    return (((bucket & (kSub - 1)) | kSub) << shift) + ((uint64_t{1} << shift) >> 1);
  }

  std::array<Count, kBuckets> buckets_;
};

}  // namespace ub::aperture
