// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "apps/file_copy/transfer.h"
#include "tools/common/probe.h"

namespace ub::apps {

Progress::Progress(std::string name, uint64_t total)
    : name_(std::move(name)), total_(total), started_ns_(tools::monotonic_ns()), terminal_(isatty(2) != 0) {}

Progress::~Progress() { end(); }

void Progress::at(uint64_t bytes) {
  if (!terminal_) return;
  const uint64_t now = tools::monotonic_ns();
  if (now - shown_ns_ < 200'000'000) return;
  shown_ns_ = now;
  dirty_ = true;
  fmt::print(stderr, "\r\033[K{}  {} of {}  {:.0f} %  {}/s", name_, amount_text(static_cast<double>(bytes)),
             amount_text(static_cast<double>(total_)),
             total_ != 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(total_) : 100.0,
             amount_text(static_cast<double>(bytes) / seconds()));
}

double Progress::end() {
  if (dirty_) fmt::print(stderr, "\r\033[K");
  dirty_ = false;
  return seconds();
}

double Progress::seconds() const { return static_cast<double>(tools::monotonic_ns() - started_ns_ + 1) / 1e9; }

std::string amount_text(double bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : bytes < 10 ? 2 : 1, kUnits[unit]);
}

}  // namespace ub::apps
