// SPDX-License-Identifier: Apache-2.0
//
// What lies behind the link of a host, on the way to another one: nothing, a rule, or a switch.
#pragma once

#include "emu_hw/parts/frame.h"
#include "emu_hw/parts/part.h"

namespace ub::emu {

class Fabric {
 public:
  virtual ~Fabric() = default;
  // A train of an operation comes out of the link of host `from`, charged for so many bytes, on its way to host `to`.
  virtual Charge pass(Operation&, uint32_t from, uint32_t to, uint32_t bytes, Train&) = 0;
};

}  // namespace ub::emu
