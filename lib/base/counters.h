// SPDX-License-Identifier: Apache-2.0
// counters.h - the counters of one instance: an array indexed by the enum that counters.def expands to. They are plain
// integers with a single writer. Readers in other threads may see a value late, but never a torn one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub {

enum class Counter : uint16_t {
#define UB_COUNTER(id, name, help) id,
#include "lib/base/counters.def"
#undef UB_COUNTER
};

inline constexpr const char* kCounterNames[] = {
#define UB_COUNTER(id, name, help) name,
#include "lib/base/counters.def"
#undef UB_COUNTER
};

inline constexpr const char* kCounterHelp[] = {
#define UB_COUNTER(id, name, help) help,
#include "lib/base/counters.def"
#undef UB_COUNTER
};

inline constexpr size_t kCounterCount = sizeof kCounterNames / sizeof kCounterNames[0];

constexpr const char* counter_name(Counter c) { return kCounterNames[static_cast<size_t>(c)]; }
constexpr const char* counter_help(Counter c) { return kCounterHelp[static_cast<size_t>(c)]; }

struct Counters {
  uint64_t v[kCounterCount] = {};

  void add(Counter c, uint64_t n = 1) { v[static_cast<size_t>(c)] += n; }
  uint64_t operator[](Counter c) const { return v[static_cast<size_t>(c)]; }
};

}  // namespace ub
