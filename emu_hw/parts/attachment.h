// SPDX-License-Identifier: Apache-2.0
//
// Where the NIC of UB sits: on the CPU's bus, or behind PCIe, which is crossed behind the bus then, as often as RoCE
// crosses it.
#pragma once

#include "emu_hw/parts/part.h"

namespace ub::emu {

class Attachment : public Part {
 public:
  using Part::Part;

  // A doorbell, and the NIC reads the request.
  Charge hand_over(Operation& op) const {
    return cross(op, "pcie.hand_over", parameters_.pcie_mmio_write, parameters_.pcie_dma_read);
  }
  // The target's NIC reads its memory, or writes it.
  Charge reach_memory(Operation& op) const {
    const Span once = op.reads_there() ? parameters_.pcie_dma_read : parameters_.pcie_dma_write;
    return cross(op, "pcie.reach_memory", once, {});
  }
  // The data that were read land, and the completion is written.
  Charge complete(Operation& op) const {
    const Span landing = op.brings_data() ? parameters_.pcie_dma_write : Span{};
    return cross(op, "pcie.complete", landing, parameters_.pcie_dma_write);
  }

 private:
  Charge cross(Operation& op, std::string_view line, Span once, Span again) const {
    const bool is_behind = parameters_.attach == Attach::kPcie;
    return wait(op, line, is_behind ? fidelity_.delay(once) + fidelity_.delay(again) : Span{});
  }
};

}  // namespace ub::emu
