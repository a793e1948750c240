// SPDX-License-Identifier: Apache-2.0
//
// Between a NIC on the CPU's chip and memory: the on-chip bus and the memory itself.
#pragma once

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

class Memory {
 public:
  Memory(Kernel& kernel, const Parameters& p, Fidelity f) : kernel_(kernel), parameters_(p), fidelity_(f) {}

  Charge cross_bus(Operation& op) const { return {kernel_, op, "bus", fidelity_.delay(parameters_.membus)}; }
  Charge access_local(Operation& op) const {
    return {kernel_, op, "dram.local", fidelity_.delay(parameters_.local_dram)};
  }
  Charge access(Operation& op) const { return {kernel_, op, "dram", fidelity_.delay(parameters_.remote_dram)}; }

 private:
  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
};

}  // namespace ub::emu
