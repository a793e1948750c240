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

namespace ub {

// What becomes of the value in memory. It travels in the shared page of an application (lib/ipc/app_page.h); 0 is none.
enum class AtomicOp : uint8_t {
  kCompareSwap = 1,
  kSwap,
  kFetchAdd,
  kFetchSub,
  kFetchAnd,
  kFetchOr,
  kFetchXor,
  kFetchClear,      // the bits that are set in the operand are cleared
  kFetchSignedMax,  // the larger one of the value and the operand
  kFetchSignedMin,
  kFetchMax,
  kFetchMin,
};
constexpr bool is_atomic_op(AtomicOp op) { return op >= AtomicOp::kCompareSwap && op <= AtomicOp::kFetchMin; }

struct AtomicRequest {
  std::byte* address;
  AtomicOp op;
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

namespace detail {

// The larger or smaller one of two integers, which `op` reads as signed or unsigned ones.
template <class T>
constexpr T extreme_of(AtomicOp op, T a, T b) {
  const bool is_signed = op == AtomicOp::kFetchSignedMax || op == AtomicOp::kFetchSignedMin;
  const bool larger = op == AtomicOp::kFetchMax || op == AtomicOp::kFetchSignedMax;
  // With the other sign bit, signed integers are in the order of unsigned ones.
  const T flip = is_signed ? static_cast<T>(T{1} << (8 * sizeof(T) - 1)) : T{0};
  const bool is_less = static_cast<T>(a ^ flip) < static_cast<T>(b ^ flip);
  return is_less == larger ? b : a;
}

// The CPU has no instruction for these.
template <class T>
T run_extreme(T* at, AtomicOp op, T operand) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(at, &old, extreme_of(op, old, operand), true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return old;
}

}  // namespace detail

template <class T>
T run_atomic(T* at, AtomicOp op, T operand, T compare) {
  switch (op) {
    case AtomicOp::kCompareSwap: {
      T expected = compare;
      __atomic_compare_exchange_n(at, &expected, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return expected;
    }
    case AtomicOp::kSwap:
      return __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);
    case AtomicOp::kFetchAdd:
      return __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);
    case AtomicOp::kFetchSub:
      return __atomic_fetch_sub(at, operand, __ATOMIC_SEQ_CST);
    case AtomicOp::kFetchAnd:
      return __atomic_fetch_and(at, operand, __ATOMIC_SEQ_CST);
    case AtomicOp::kFetchOr:
      return __atomic_fetch_or(at, operand, __ATOMIC_SEQ_CST);
    case AtomicOp::kFetchXor:
      return __atomic_fetch_xor(at, operand, __ATOMIC_SEQ_CST);
    case AtomicOp::kFetchClear:
      return __atomic_fetch_and(at, static_cast<T>(~operand), __ATOMIC_SEQ_CST);
    default:
      return detail::run_extreme(at, op, operand);
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

constexpr uint128 result_of(AtomicOp op, uint128 old, uint128 operand, uint128 compare) {
  switch (op) {
    case AtomicOp::kCompareSwap:
      return old == compare ? operand : old;
    case AtomicOp::kSwap:
      return operand;
    case AtomicOp::kFetchAdd:
      return old + operand;
    case AtomicOp::kFetchSub:
      return old - operand;
    case AtomicOp::kFetchAnd:
      return old & operand;
    case AtomicOp::kFetchOr:
      return old | operand;
    case AtomicOp::kFetchXor:
      return old ^ operand;
    case AtomicOp::kFetchClear:
      return old & ~operand;
    default:
      return extreme_of(op, old, operand);
  }
}

}  // namespace detail

// At this width the CPU has only a compare-and-swap, so it makes all others.
inline uint128 run_wide_atomic(uint128* at, AtomicOp op, uint128 operand, uint128 compare) {
  uint128 old = op == AtomicOp::kCompareSwap ? compare : 0;  // a guess: the first exchange tells the true value
  for (;;) {
    const uint128 seen = detail::compare_swap(at, old, detail::result_of(op, old, operand, compare));
    if (seen == old || op == AtomicOp::kCompareSwap) return seen;
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
