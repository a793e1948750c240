/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop-watch that counts cycles (URMA API 0.9).
 *
 * Idea: one record per thread and place, so that measuring needs no atomics; times are converted to
 * nanoseconds when they are read.
 */
#ifndef UB_PERF_CYCLE_H
#define UB_PERF_CYCLE_H

#include "ub_get_clock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ub_perf_cycle {
  uint64_t count; /* measurements */
  uint64_t total; /* cycles, likewise below */
  uint64_t min;
  uint64_t max;
  uint64_t start;
} ub_perf_cycle_t;

/** Forgets all measurements. */
static inline void ub_perf_cycle_reset(ub_perf_cycle_t* perf) {
  perf->count = 0;
  perf->total = 0;
  perf->min = UINT64_MAX;
  perf->max = 0;
  perf->start = 0;
}

/** Starts a measurement. */
static inline void ub_perf_cycle_begin(ub_perf_cycle_t* perf) { perf->start = get_cycles(); }

/** Ends the measurement begun last. */
static inline void ub_perf_cycle_end(ub_perf_cycle_t* perf) {
  uint64_t spent = get_cycles() - perf->start;
  perf->count++;
  perf->total += spent;
  if (spent < perf->min) perf->min = spent;
  if (spent > perf->max) perf->max = spent;
}

/** Converts cycles to nanoseconds; the first use in a process BLOCKS as get_cpu_mhz does. */
static inline double ub_perf_cycle_to_ns(uint64_t cycles) { return (double)cycles * 1000.0 / get_cpu_mhz(false); }

/** Mean time in nanoseconds, 0 without measurements. */
static inline double ub_perf_cycle_average_ns(const ub_perf_cycle_t* perf) {
  return perf->count == 0 ? 0.0 : ub_perf_cycle_to_ns(perf->total) / (double)perf->count;
}

#ifdef __cplusplus
}
#endif

#endif /* UB_PERF_CYCLE_H */
