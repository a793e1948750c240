// SPDX-License-Identifier: Apache-2.0
//
// Which frames are lost: at random, each by itself or in runs, and every n-th. Runs follow Gilbert's model: the link is
// good or bad, all that comes while it is bad is lost. From a run's mean length B and the share L that is lost follow
// its two numbers: bad becomes good with 1 / B, good becomes bad with L / (B (1 - L)), at each frame.
#pragma once

#include <cstdint>

#include "lib/base/prng.h"
#include "lib/impair/spec.h"

namespace ub::impair {

class Losses {
 public:
  enum class Cause : uint8_t { kNone, kRandom, kBurst, kNth };

  explicit Losses(uint64_t seed) : prng_(seed) {}

  // Another frame. If several causes choose it, the first of them has it.
  Cause next(const Spec& spec) {
    const bool nth = spec.every != 0 && ++seen_ % spec.every == 0;
    if (spec.burst == 0) {
      bad_ = false;
      if (prng_.chance(spec.loss)) return Cause::kRandom;
    } else {
      bad_ = bad_ ? !prng_.chance(1 / spec.burst) : prng_.chance(spec.loss / (spec.burst * (1 - spec.loss)));
      if (bad_) return Cause::kBurst;
    }
    return nth ? Cause::kNth : Cause::kNone;
  }

 private:
  Prng prng_;
  uint64_t seen_ = 0;  // while each n-th was to be lost
  bool bad_ = false;
};

}  // namespace ub::impair
