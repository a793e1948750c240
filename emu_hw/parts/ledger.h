// SPDX-License-Identifier: Apache-2.0
//
// What an operation was charged for: a chain of intervals without gaps, from its start to its end. Waiting is a line
// like any other. So the sum of the lines is the latency of the operation, by construction; where a line is missing,
// the next one is too long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

class Ledger {
 public:
  struct Name {
    std::string_view part;  // a literal
    uint32_t host;          // where; for a link, who sends
  };
  struct Line {
    Name name;
    Time until;
  };

  explicit Ledger(Time start) : start_(start) {}

  // From the end of the former line until now.
  void charge(const Name& name, Time now) {
    if (now != end()) lines_.push_back({name, now});
  }

  Time start() const { return start_; }
  Time end() const { return lines_.empty() ? start_ : lines_.back().until; }
  const std::vector<Line>& lines() const { return lines_; }
  Span span_of(size_t line) const { return lines_[line].until - (line == 0 ? start_ : lines_[line - 1].until); }
  // "bus 30, pipe 80, ...", in nanoseconds.
  std::string text() const { return text_of(start_, lines_); }
  static std::string text_of(Time start, const std::vector<Line>& lines);

 private:
  Time start_;
  std::vector<Line> lines_;
};

}  // namespace ub::emu
