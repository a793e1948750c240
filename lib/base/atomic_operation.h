// SPDX-License-Identifier: Apache-2.0
//
// The atomics of the transaction layer, carried out by the CPU on naturally aligned native integers of 1, 2, 4, 8
// or 16 bytes. Those of 16 bytes need a CPU that has an instruction for them (has_wide_atomics).
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/base/uint128.h"
#include "lib/base/work_queue.h"

namespace ub {

struct AtomicRequest {
  std::byte* address;
  WrOp op;          // kCompareSwap .. kFetchXor
  uint32_t bytes;   // 1, 2, 4, 8 or 16
  uint128 operand;  // the value to swap in, or the operand
  uint128 compare;
};

inline bool has_wide_atomics() {
#if defined(__x86_64__)
  static const bool has = [] {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
  }();
  return has;
#else
  return true;
#endif
}

// Can this machine carry out atomics of this width?
inline bool is_atomic_width(uint32_t bytes) {
  return std::has_single_bit(bytes) && (bytes <= 8 || (bytes == 16 && has_wide_atomics()));
}

template <class T>
T run_atomic(T* at, WrOp op, T operand, T compare) {
  switch (op) {
    case WrOp::kCompareSwap: {
      T expected = compare;
      __atomic_compare_exchange_n(at, &expected, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return expected;
    }
    case WrOp::kSwap:
      return __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);
    case WrOp::kFetchAdd:
      return __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);
    case WrOp::kFetchSub:
      return __atomic_fetch_sub(at, operand, __ATOMIC_SEQ_CST);
    case WrOp::kFetchAnd:
      return __atomic_fetch_and(at, operand, __ATOMIC_SEQ_CST);
    case WrOp::kFetchOr:
      return __atomic_fetch_or(at, operand, __ATOMIC_SEQ_CST);
    default:
      return __atomic_fetch_xor(at, operand, __ATOMIC_SEQ_CST);
  }
}

namespace detail {

// It is a function of its own, because clang loses the instruction where it inlines it into a function without the
// target attribute.
#if defined(__x86_64__)
[[gnu::target("cx16"), gnu::noinline]]
#endif
inline uint128
compare_swap(uint128* at, uint128 expected, uint128 desired) {
  return __sync_val_compare_and_swap(at, expected, desired);
}

constexpr uint128 result_of(WrOp op, uint128 old, uint128 operand, uint128 compare) {
  switch (op) {
    case WrOp::kCompareSwap:
      return old == compare ? operand : old;
    case WrOp::kSwap:
      return operand;
    case WrOp::kFetchAdd:
      return old + operand;
    case WrOp::kFetchSub:
      return old - operand;
    case WrOp::kFetchAnd:
      return old & operand;
    case WrOp::kFetchOr:
      return old | operand;
    default:
      return old ^ operand;
  }
}

}  // namespace detail

// At this width the CPU has only a compare-and-swap, so it makes all others.
inline uint128 run_wide_atomic(uint128* at, WrOp op, uint128 operand, uint128 compare) {
  uint128 old = op == WrOp::kCompareSwap ? compare : 0;  // a guess: the first exchange tells the true value
  for (;;) {
    const uint128 seen = detail::compare_swap(at, old, detail::result_of(op, old, operand, compare));
    if (seen == old || op == WrOp::kCompareSwap) return seen;
    old = seen;
  }
}

template <class T>
T run_atomic_of(const AtomicRequest& r) {
  return run_atomic(reinterpret_cast<T*>(r.address), r.op, static_cast<T>(r.operand), static_cast<T>(r.compare));
}

// Returns the value that was there before.
inline uint128 run_atomic(const AtomicRequest& r) {
  switch (r.bytes) {
    case 16:
      return run_wide_atomic(reinterpret_cast<uint128*>(r.address), r.op, r.operand, r.compare);
    case 8:
      return run_atomic_of<uint64_t>(r);
    case 4:
      return run_atomic_of<uint32_t>(r);
    case 2:
      return run_atomic_of<uint16_t>(r);
    default:
      return run_atomic_of<uint8_t>(r);
  }
}

}  // namespace ub
