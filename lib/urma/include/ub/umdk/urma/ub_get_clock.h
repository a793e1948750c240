/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycle counter of the processor (URMA API 0.9).
 *
 * Idea: a counter that costs a few nanoseconds to read and runs at a constant rate; its rate is measured
 * once.
 */
#ifndef UB_GET_CLOCK_H
#define UB_GET_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/** Reads the counter: TSC on x86-64, virtual timer on AArch64. Any thread; never blocks. */
static inline uint64_t get_cycles(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
  return ((uint64_t)high << 32) | low;
#elif defined(__aarch64__)
  uint64_t value;
  __asm__ __volatile__("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
  return value;
#else
#error "get_cycles: processor not supported"
#endif
}

/**
 * Counts of get_cycles per microsecond. The first call in a process BLOCKS for about 60 ms on x86-64; the
 * result is remembered. Any thread.
 *
 * @param warn report on stderr if two measurements do not agree.
 * @return rate, > 0.
 */
double get_cpu_mhz(bool warn);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* UB_GET_CLOCK_H */
