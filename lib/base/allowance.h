// SPDX-License-Identifier: Apache-2.0
//
// What somebody may cost others without any use: a share of their time, which he saves up to a limit. If he has used it
// up, he waits until half of it is back. So those who serve him can rest meanwhile, and do not come back for each
// crumb.
//
// Thread: one at a time.
#pragma once

#include <algorithm>

#include "lib/base/time.h"

namespace ub {

class Allowance {
 public:
  static constexpr Duration kMost = milliseconds(2);

  // The time at which some allowance is there, at the latest. A time in the past: there is some now.
  Instant ready_at() const { return ready_at_; }
  bool has_any(Instant now) const { return ready_at_ <= now; }

  // Takes `price` from the allowance, which comes back in that time.
  void charge(Instant now, Duration price) {
    used_until_ = later(used_until_, now) + price;
    if (used_until_ - now > kMost) ready_at_ = used_until_ - kMost / 2;
  }
  // Something useful came of it after all: this much of what was charged is given back.
  void give_back(Duration price) { used_until_ = used_until_ - std::min(price, used_until_ - Instant{}); }

 private:
  Instant used_until_{}, ready_at_{};
};

}  // namespace ub
