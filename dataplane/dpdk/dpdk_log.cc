// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/dpdk_log.h"

#include <rte_log.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

namespace ub::dpdk {
namespace {

constexpr size_t kMostBytes = 500;

void set_driver_level(uint32_t level) {
  for (const char* pattern : {"pmd.net.memif", "pmd.net.virtio.*"}) rte_log_set_level_pattern(pattern, level);
}

bool wants_log(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](auto& a) { return a.starts_with("--log-level"); });
}

// Lives for ever: a thread that logs may hold the stream longer than a capture lasts.
struct Tap {
  std::mutex mutex;
  std::string heard;
  bool listening = false;
  bool hushed = false;
  FILE* before = nullptr;  // DPDK's stream
  FILE* stream = nullptr;

  Tap() {
    cookie_io_functions_t functions{};
    functions.write = [](void* tap, const char* text, size_t bytes) {
      static_cast<Tap*>(tap)->write(text, bytes);
      return static_cast<ssize_t>(bytes);
    };
    stream = fopencookie(this, "w", functions);
  }
  void write(const char* text, size_t bytes) {
    std::lock_guard lock(mutex);
    if (listening) {
      heard.append(text, bytes);
    } else {
      std::fwrite(text, 1, bytes, stderr);
    }
  }
};

Tap& tap() {
  static Tap* const tap = new Tap;
  return *tap;
}

}  // namespace

LogCapture::LogCapture(const std::vector<std::string>& arguments) {
  Tap& t = tap();
  if (t.stream == nullptr || wants_log(arguments)) return;
  t.before = rte_log_get_stream();
  {
    std::lock_guard lock(t.mutex);
    t.heard.clear();
    t.listening = true;
  }
  rte_openlog_stream(t.stream);
  if (std::exchange(t.hushed, false)) set_driver_level(RTE_LOG_NOTICE);
}

LogCapture::~LogCapture() {
  Tap& t = tap();
  if (!t.listening) return;
  // Before rte_eal_init there is none of DPDK's own, and the standard error stands in.
  rte_openlog_stream(t.before == stderr ? nullptr : t.before);
  std::lock_guard lock(t.mutex);
  t.listening = false;
}

void hush_drivers(const std::vector<std::string>& arguments) {
  if (wants_log(arguments)) return;
  tap().hushed = true;
  set_driver_level(RTE_LOG_CRIT);
}

std::string LogCapture::text() {
  Tap& t = tap();
  std::lock_guard lock(t.mutex);
  std::string lines;
  lines.swap(t.heard);
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  if (lines.empty()) return lines;
  if (lines.size() > kMostBytes) lines.erase(0, std::max(lines.size() - kMostBytes, lines.find('\n') + 1));
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos;) lines.replace(at, 1, "; ");
  return ": " + lines;
}

}  // namespace ub::dpdk
