// SPDX-License-Identifier: Apache-2.0
//
// An open loop: operations arrive by a Poisson process, whether others have ended or not. As in the reference the gaps
// are cut to whole nanoseconds, and one that finds no room among those in flight waits for it.
#pragma once

#include "emu_hw/kernel/clock_domain.h"
#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class PoissonArrivals {
 public:
  // At Parameters::offered_rate, which is not 0.
  explicit PoissonArrivals(const Parameters& p)
      : mean_ps_(1e6 / p.offered_rate), random_(p.seed, "program", "arrivals") {}

  // Between an issue and the next one.
  Span gap() { return cut_to_nanoseconds(cut_to_picoseconds(random_.exponential(mean_ps_), "the next arrival")); }

 private:
  const double mean_ps_;
  RandomStream random_;
};

}  // namespace ub::emu
