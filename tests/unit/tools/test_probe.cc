// SPDX-License-Identifier: Apache-2.0
//
// The probe's promise to end.
#include <gtest/gtest.h>

#include "tools/common/probe.h"

namespace ub::tools {
namespace {

TEST(Probe, ends_and_is_plausible) {
  const C2cProbe probe = probe_c2c();
  if (!probe.valid) GTEST_SKIP() << "fewer than two CPUs";
  EXPECT_GT(probe.min_ns, 1);
  EXPECT_LE(probe.min_ns, probe.median_ns);
}

TEST(Probe, cpu_that_does_not_exist) {
  EXPECT_FALSE(probe_c2c(allowed_cpus().front(), 1023).valid);
  EXPECT_FALSE(probe_c2c(-1, allowed_cpus().front()).valid);
  EXPECT_FALSE(probe_c2c(0, 0).valid);
}

}  // namespace
}  // namespace ub::tools
