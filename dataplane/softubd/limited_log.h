// SPDX-License-Identifier: Apache-2.0
//
// Lines about what applications do: at most so many a second, then their number, so that an application cannot fill
// the disk.
//
// Thread: one.
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <string>

namespace ub {

class LimitedLog {
 public:
  void info(const std::string& line) { write(spdlog::level::info, line); }
  void warn(const std::string& line) { write(spdlog::level::warn, line); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint32_t kLinesPerSecond = 50;

  void write(spdlog::level::level_enum level, const std::string& line) {
    const Clock::time_point now = Clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      if (dropped_ != 0) spdlog::warn("{} more lines about applications were left out", dropped_);
      second_ = now;
      lines_ = dropped_ = 0;
    }
    if (lines_ == kLinesPerSecond) {
      ++dropped_;
      return;
    }
    ++lines_;
    spdlog::log(level, line);
  }

  Clock::time_point second_{};
  uint32_t lines_ = 0, dropped_ = 0;
};

}  // namespace ub
