// SPDX-License-Identifier: Apache-2.0
//
// Which TASSNs of a sequence context are done (UB Base Specification Rev 2.0, 7.3.3.3): all before a first one, and any
// of the kSpan numbers from there on. Both ends of a context have such a window: the target of what was executed, the
// initiator of what was answered.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"

namespace ub::ta {

class TassnWindow {
 public:
  static constexpr uint32_t kSpan = 256;

  // The oldest number that is not done.
  Tassn first() const { return first_; }
  bool spans(Tassn t) const { return t.distance(first_) < kSpan; }

  // The number is done. One outside the window is ignored.
  void mark(Tassn t) {
    if (!spans(t)) return;
    word_of(t) |= bit_of(t);
    while ((word_of(first_) & bit_of(first_)) != 0) {
      word_of(first_) &= ~bit_of(first_);
      ++first_;
    }
  }

 private:
  static uint64_t bit_of(Tassn t) { return uint64_t{1} << (t.value() % 64); }
  uint64_t& word_of(Tassn t) { return done_[t.value() % kSpan / 64]; }

  uint64_t done_[kSpan / 64] = {};
  Tassn first_;
};

}  // namespace ub::ta
