// SPDX-License-Identifier: Apache-2.0
// Where log lines go: the callback registered last, else syslog, else (warnings and worse) the standard error. URMA API
// 0.9, 6.11.
#include "lib/urma/log.h"

#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_log.h"

namespace ub::urma {
namespace {

constexpr size_t kLineBytes = 512;
constexpr size_t kTagBytes = 64;

// At most one of the two is set. Two words rather than a pair under a lock: a line written while the sink
// changes may go to either.
std::atomic<urma_log_cb_t> plain_sink{nullptr};
std::atomic<urma_loc_log_cb> located_sink{nullptr};

thread_local char thread_tag[kTagBytes] = "-";

urma_vlog_level_t level_from_environment() {
  static constexpr struct {
    const char* name;
    urma_vlog_level_t level;
  } kNames[] = {{"fatal", URMA_VLOG_LEVEL_CRIT},
                {"error", URMA_VLOG_LEVEL_ERR},
                {"warning", URMA_VLOG_LEVEL_WARNING},
                {"info", URMA_VLOG_LEVEL_INFO},
                {"debug", URMA_VLOG_LEVEL_DEBUG}};
  const char* wanted = getenv("URMA_LOG_LEVEL");
  if (wanted != nullptr) {
    for (const auto& entry : kNames) {
      if (strcmp(wanted, entry.name) == 0) return entry.level;
    }
  }
  return URMA_VLOG_LEVEL_INFO;
}

// Functions, not globals: a line may be written before the initialisers of this file ran.
std::atomic<int>& current_level() {
  static std::atomic<int> level{level_from_environment()};
  return level;
}

const char* separator() {
  static const char* const text = [] {
    const char* wanted = getenv("URMA_LOG_SEPARATOR");
    return wanted != nullptr ? strdup(wanted) : "";
  }();
  return text;
}

// A container often has no system log: what went wrong must be told somewhere.
void write_to_system(urma_vlog_level_t level, const char* text) {
  static const bool has_syslog = access("/dev/log", F_OK) == 0;
  if (has_syslog) {
    syslog(LOG_USER | level, "%s", text);
  } else if (level <= URMA_VLOG_LEVEL_WARNING) {
    fputs(text, stderr);
  }
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

void write_line(const char* file, const char* function, int line, urma_vlog_level_t level, const char* format,
                va_list args) {
  char text[kLineBytes];
  if (auto sink = located_sink.load(std::memory_order_acquire)) {
    vsnprintf(text, sizeof text, format, args);
    sink(level, file, function, line, text);
    return;
  }
  int used = snprintf(text, sizeof text, "[URMA][liburma][thread_id=%ld][%s][%s:%s:%d]%s", syscall(SYS_gettid),
                      thread_tag, file, function, line, separator());
  size_t at = used > 0 ? static_cast<size_t>(used) : 0;
  if (at < sizeof text - 2) vsnprintf(text + at, sizeof text - at - 1, format, args);
  // One line per message, whatever was cut.
  size_t end = strlen(text);
  if (end > sizeof text - 2) end = sizeof text - 2;
  text[end] = '\n';
  text[end + 1] = '\0';
  if (auto sink = plain_sink.load(std::memory_order_acquire)) {
    sink(level, text);
  } else {
    write_to_system(level, text);
  }
}

}  // namespace

bool log_enabled(urma_vlog_level_t level) {
  return static_cast<int>(level) <= current_level().load(std::memory_order_relaxed);
}

void log_line(const char* file, const char* function, int line, urma_vlog_level_t level, const char* format, ...) {
  va_list args;
  va_start(args, format);
  write_line(base_name(file), function, line, level, format, args);
  va_end(args);
}

}  // namespace ub::urma

using namespace ub::urma;

urma_status_t urma_register_log_func(urma_log_cb_t func) {
  if (func == nullptr) return URMA_EINVAL;
  plain_sink.store(func, std::memory_order_release);
  located_sink.store(nullptr, std::memory_order_release);
  return URMA_SUCCESS;
}

urma_status_t urma_register_loc_log_func(urma_loc_log_cb func) {
  if (func == nullptr) return URMA_EINVAL;
  located_sink.store(func, std::memory_order_release);
  plain_sink.store(nullptr, std::memory_order_release);
  return URMA_SUCCESS;
}

urma_status_t urma_unregister_log_func(void) {
  located_sink.store(nullptr, std::memory_order_release);
  plain_sink.store(nullptr, std::memory_order_release);
  return URMA_SUCCESS;
}

urma_vlog_level_t urma_log_get_level(void) {
  return static_cast<urma_vlog_level_t>(current_level().load(std::memory_order_relaxed));
}

void urma_log_set_level(urma_vlog_level_t level) {
  auto value = static_cast<unsigned>(level);
  if (value < URMA_VLOG_LEVEL_MAX) current_level().store(static_cast<int>(value), std::memory_order_relaxed);
}

const char* urma_log_get_thread_tag(void) { return thread_tag; }

void urma_log_set_thread_tag(const char* tag) {
  if (tag == nullptr || strlen(tag) >= kTagBytes) return;
  memmove(thread_tag, tag, strlen(tag) + 1);
}

bool urma_log_drop(urma_vlog_level_t level) { return !log_enabled(level); }

void urma_log(const char* function, int line, urma_vlog_level_t level, const char* format, ...) {
  if (function == nullptr || format == nullptr) return;
  auto wanted = static_cast<unsigned>(level);
  if (wanted >= URMA_VLOG_LEVEL_MAX) level = URMA_VLOG_LEVEL_DEBUG;  // callbacks index a table with it
  va_list args;
  va_start(args, format);
  write_line("-", function, line, level, format, args);
  va_end(args);
}
