// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/ub_emu/progress.h"

#include <unistd.h>

#include <cstdio>

namespace ub::emu {
namespace {

constexpr size_t kCells = 30;

std::string text_of(double seconds) {
  const auto whole = static_cast<unsigned>(seconds + 0.5);
  return whole < 100 ? std::to_string(whole) + " s" : std::to_string((whole + 30) / 60) + " min";
}

}  // namespace

Progress::Progress() : is_shown_(isatty(STDERR_FILENO) == 1) {}

void Progress::wipe() const {
  if (is_shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(size_t ended, size_t all, const std::string& what) const {
  if (!is_shown_) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
  const double left = took.count() / static_cast<double>(ended) * static_cast<double>(all - ended);
  const size_t full = kCells * ended / all;
  std::fprintf(stderr, "\r[%s%s] %zu of %zu points, about %s left; %s\033[K", std::string(full, '#').c_str(),
               std::string(kCells - full, '.').c_str(), ended, all, text_of(left).c_str(), what.c_str());
}

}  // namespace ub::emu
