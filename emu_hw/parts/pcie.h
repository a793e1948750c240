// SPDX-License-Identifier: Apache-2.0
//
// A NIC at the other end of PCIe: doorbells, and the NIC's reads and writes of memory.
#pragma once

#include "emu_hw/parts/part.h"

namespace ub::emu {

class Pcie : public Part {
 public:
  using Part::Part;

  Charge ring_doorbell(Operation& op) const { return take(op, "pcie.doorbell", parameters_.pcie_mmio_write); }
  Charge fetch_request(Operation& op) const { return take(op, "pcie.fetch", parameters_.pcie_dma_read); }
  Charge read(Operation& op) const { return take(op, "pcie.read", parameters_.pcie_dma_read); }
  Charge write(Operation& op) const { return take(op, "pcie.write", parameters_.pcie_dma_write); }
  Charge land(Operation& op) const { return take(op, "pcie.land", parameters_.pcie_dma_write); }
  Charge write_completion(Operation& op) const { return take(op, "pcie.completion", parameters_.pcie_dma_write); }
};

}  // namespace ub::emu
