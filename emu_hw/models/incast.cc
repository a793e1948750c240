// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "emu_hw/models/many_hosts.h"
#include "emu_hw/workload/lock_loop.h"

namespace ub::emu {
namespace {

constexpr uint32_t kTarget = 1;

}  // namespace

PointResult run_incast(const Point& point) {
  const Parameters& p = point.parameters;
  const auto initiators = static_cast<uint32_t>(p.initiators);
  ManyHosts hosts(p, kTwoNode, initiators + 1);
  for (uint32_t host = kTarget + 1; host <= kTarget + initiators; ++host) {
    Stack& stack = hosts.add_stack(host, point.stack, {kTarget});
    if (point.workload == "lock") {
      hosts.add_program(host, std::make_unique<LockLoop>(hosts.kernel, stack, host));
      continue;
    }
    Parameters own = p;
    own.seed += host - kTarget - 1;  // each program draws for itself
    hosts.add_program(host, stack, make_workload(point.workload, own, has_loads(point.stack)));
  }
  return hosts.run();
}

}  // namespace ub::emu
