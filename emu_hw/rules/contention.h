// SPDX-License-Identifier: Apache-2.0
//
// What the hosts of a cluster cost each other, as the reference has it (rule.contention): each train is later by some
// time for each host but the one that sends it, whether these send or not.
#pragma once

#include "emu_hw/parts/fabric.h"

namespace ub::emu {

class ContentionRule final : public Fabric {
 public:
  ContentionRule(Kernel& kernel, const Parameters& p, Fidelity f, uint64_t hosts)
      : kernel_(kernel), span_(f.delay(p.contention * (hosts - 1))) {}

  Charge pass(Operation& op, uint32_t from, uint32_t, uint32_t, Train&) override {
    return {kernel_, op, {"rule.contention", from}, span_};
  }

 private:
  Kernel& kernel_;
  const Span span_;
};

}  // namespace ub::emu
