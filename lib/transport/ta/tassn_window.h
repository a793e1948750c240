// SPDX-License-Identifier: Apache-2.0
//
// Which TASSNs of a sequence context are done (UB Base Specification Rev 2.0, 7.3.3.3): all before a first one, and any
// of the kSpan numbers from there on. Both ends of a context have such a window: the target of what was executed, the
// initiator of what was answered.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/transport/tp/channel.h"

namespace ub::ta {

class TassnWindow {
 public:
  static constexpr uint32_t kSpan = 256;

  // The oldest number that is not done.
  Tassn first() const { return first_; }
  bool spans(Tassn t) const { return t.distance(first_) < kSpan; }

  // Is it one of the window, and not done?
  bool is_open(Tassn t) const { return spans(t) && !tp::test_bit(done_, slot_of(t)); }

  // The number is done. One outside the window is ignored.
  void mark(Tassn t) {
    if (!spans(t)) return;
    tp::set_bit(done_, slot_of(t));
    for (; tp::test_bit(done_, slot_of(first_)); ++first_) tp::clear_bit(done_, slot_of(first_));
  }

 private:
  static uint32_t slot_of(Tassn t) { return t.value() % kSpan; }

  uint64_t done_[kSpan / 64] = {};
  Tassn first_;
};

}  // namespace ub::ta
