/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with macros of its own for what the headers define too. Its own are in force, and nothing warns.
 * Compiled only, as C and as C++.
 */
#define EID_FMT "%u%u%u%u"
#define EID_RAW_ARGS(bytes) (bytes)[0], (bytes)[1], (bytes)[2], (bytes)[3]
#define EID_ARGS(id) EID_RAW_ARGS((id).raw)
#define MAX(a, b) ((a) < (b) ? (b) : (a))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define ROUND_UP(n, to) (((n) + (to)-1) / (to) * (to))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))
#define PAGE_SIZE 4096
#define PAGE_SHIFT 12

#include <stdio.h>
#include <ub_barrier.h>
#include <ub_get_clock.h>
#include <ub_util.h>
#include <urma_api.h>
#include <urma_log.h>
#include <urma_perf.h>
#include <urma_types_str.h>
#include <urma_ubagg.h>

/* Four arguments, as this program says, not sixteen. */
int print_eid(const urma_eid_t* eid);
int print_eid(const urma_eid_t* eid) { return printf("eid " EID_FMT "\n", EID_ARGS(*eid)); }
