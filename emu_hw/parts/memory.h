// SPDX-License-Identifier: Apache-2.0
//
// Between a NIC on the CPU's chip and memory: the on-chip bus and the memory itself.
#pragma once

#include "emu_hw/parts/part.h"

namespace ub::emu {

class Memory : public Part {
 public:
  using Part::Part;

  Charge cross_bus(Operation& op) const { return take(op, "bus", parameters_.membus); }
  Charge access_local(Operation& op) const { return take(op, "dram.local", parameters_.local_dram); }
  Charge access(Operation& op) const { return take(op, "dram", parameters_.remote_dram); }
};

}  // namespace ub::emu
