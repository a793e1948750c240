// SPDX-License-Identifier: Apache-2.0
//
// How a thread that drives a NIC spends its time (Regime in work_figures.h). The thread says what it did since it spoke
// last, at moments at which it knows the time anyway: while it idles, yields or sleeps.
//
// Thread: that one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "dataplane/work_figures.h"
#include "lib/base/time.h"

namespace ub {

class RegimeClock {
 public:
  void begin(Instant now) { since_ = now; }
  // All the time since the last call, until then.
  void spend(Regime regime, Instant until) {
    if (until <= since_) return;
    ns_[static_cast<size_t>(regime)] += static_cast<uint64_t>((until - since_).ns);
    since_ = until;
  }
  void copy_to(uint64_t (&out)[kRegimes]) const { std::copy(std::begin(ns_), std::end(ns_), out); }

 private:
  Instant since_{};
  uint64_t ns_[kRegimes] = {};
};

}  // namespace ub
