// SPDX-License-Identifier: Apache-2.0
// log.h - log lines of liburma itself; the public side (sinks, levels) is in log.cc.
// Never on the data path, except to explain a refusal.
#pragma once

#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

bool log_enabled(urma_vlog_level_t level);
void log_line(const char* file, const char* function, int line, urma_vlog_level_t level, const char* format, ...)
    __attribute__((format(printf, 5, 6)));

}  // namespace ub::urma

#define URMA_LOG_AT(level, ...)                                                                                 \
  do {                                                                                                          \
    if (::ub::urma::log_enabled(level)) ::ub::urma::log_line(__FILE__, __func__, __LINE__, level, __VA_ARGS__); \
  } while (0)
#define URMA_LOG_ERROR(...) URMA_LOG_AT(URMA_VLOG_LEVEL_ERR, __VA_ARGS__)
#define URMA_LOG_INFO(...) URMA_LOG_AT(URMA_VLOG_LEVEL_INFO, __VA_ARGS__)
#define URMA_LOG_DEBUG(...) URMA_LOG_AT(URMA_VLOG_LEVEL_DEBUG, __VA_ARGS__)
