/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the log of the library for programs that want their lines in the same sink (URMA API 0.9).
 *
 * Idea: ask urma_log_drop before formatting, then hand over the line. Level and sink are those set by the log
 * calls of urma_api.h.
 */
#ifndef URMA_LOG_H
#define URMA_LOG_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * Tells whether a line of this level would be suppressed. Any thread, at any time; does not block.
 *
 * @return true: do not bother to format the line.
 */
bool urma_log_drop(urma_vlog_level_t level);

/**
 * Writes a line to the current sink, whatever the log level; the library cuts it at 512 bytes. Any thread,
 * at any time, but not from within a log callback. Blocks as long as the sink does.
 *
 * @param function name of the calling function. @param line source line.
 * @param format as in printf, without newline at the end.
 */
void urma_log(const char* function, int line, urma_vlog_level_t level, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* URMA_LOG_H */
