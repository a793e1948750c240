// SPDX-License-Identifier: Apache-2.0
// medium_counts.h - what a medium has counted, by name.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tools/fabric/medium.h"

namespace ub::fabric {

inline uint64_t count_of(const Medium& medium, const std::string& name) {
  for (const MediumCount& c : medium.counts()) {
    if (c.name == name) return c.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

}  // namespace ub::fabric
