/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in latency statistics of the data calls (URMA API 0.9).
 *
 * Idea: between start and stop each data call adds its duration to a histogram; the result is read as text.
 * Every call counts, whatever it answers: among polls those that find nothing, and a wait with all the time it
 * waited. Two looks at the clock are part of each duration; while stopped, a call pays for one branch.
 */
#ifndef URMA_PERF_H
#define URMA_PERF_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define URMA_PERF_THREAD_MAX_NUM (128u) /* threads that are recorded at least; here: all */

/* Point of measurement: UB_* below a device, BOND_* below a bonding device. */
typedef enum urma_perf_type {
  UB_JETTY_POST_SEND = 0,
  BOND_JETTY_POST_SEND = 1,
  UB_JFS_POST_SEND = 2,
  BOND_JFS_POST_SEND = 3,
  UB_JETTY_POST_RECV = 4,
  BOND_JETTY_POST_RECV = 5,
  UB_POST_JFR_RECV = 6,
  BOND_POST_JFR_RECV = 7,
  UB_POLL_JFC = 8,
  BOND_POLL_JFC = 9,
  UB_WAIT_JFC = 10,
  BOND_WAIT_JFC = 11,
  UB_ACK_JFC = 12,
  UB_REARM_JFC = 13,
  BOND_REARM_JFC = 14,
  URMA_PERF_RECORD_TYPE_MAX = 15
} urma_perf_record_type_t;

/* Statistics in numbers, times in nanoseconds. 968 bytes. */
typedef struct urma_perf_stats {
  uint64_t retry_count;
  struct {
    urma_perf_record_type_t type;
    uint64_t sample_num;
    uint64_t average;
    uint64_t mininum; /* spelling is historic, likewise below */
    uint64_t maxinum;
    uint64_t p90;
    uint64_t p99;
    uint64_t p9999;
  } type_record[URMA_PERF_RECORD_TYPE_MAX];
} urma_perf_stats_t;

/* ---- Latencies of the data calls ----------------------------------------------------------------- */

/**
 * Clears the statistics and starts recording, process-wide: all threads, 4 MiB in all. Any thread; does not block.
 * A forked child does not record until it starts anew.
 *
 * @return URMA_SUCCESS; URMA_EEXIST: already recording; URMA_ENOMEM: out of memory.
 */
urma_status_t urma_start_perf(void);

/**
 * Stops recording; the statistics stay readable. Any thread; does not block.
 *
 * @return URMA_SUCCESS; URMA_FAIL: not recording.
 */
urma_status_t urma_stop_perf(void);

/**
 * Writes the statistics as a table of text lines, in nanoseconds: a heading, then a line for each UB_* point of
 * measurement with number, average, least, largest and percentiles, all 0 until something is recorded. 2048 bytes are
 * room enough. Any thread, also while recording; does not block.
 *
 * @param perf_buf receives the text with terminating NUL.
 * @param length in: room in bytes; out: bytes written including the NUL.
 * @return URMA_SUCCESS; URMA_EINVAL: argument NULL or room too small.
 */
urma_status_t urma_get_perf_info(char* perf_buf, uint32_t* length);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* URMA_PERF_H */
