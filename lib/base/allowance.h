// SPDX-License-Identifier: Apache-2.0
//
// What somebody may cost others without any use: a share of the time, saved up to a limit. Whoever has used it up waits
// until half of it is back, so that whoever serves him rests meanwhile and does not come back for each crumb.
//
// Thread: one at a time.
#pragma once

#include <algorithm>

#include "lib/base/time.h"

namespace ub {

class Allowance {
 public:
  static constexpr Duration kMost = milliseconds(2);

  // When there is some, at the latest; in the past: now.
  Instant ready_at() const { return ready_at_; }
  bool has_any(Instant now) const { return ready_at_ <= now; }

  // `price`: in this time it comes back.
  void charge(Instant now, Duration price) {
    used_until_ = later(used_until_, now) + price;
    if (used_until_ - now > kMost) ready_at_ = used_until_ - kMost / 2;
  }
  // Something useful came of it: so much is not charged after all.
  void give_back(Duration price) { used_until_ = used_until_ - std::min(price, used_until_ - Instant{}); }

 private:
  Instant used_until_{}, ready_at_{};
};

}  // namespace ub
