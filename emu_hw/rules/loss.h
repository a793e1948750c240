// SPDX-License-Identifier: Apache-2.0
//
// Loss as the reference has it (rule.loss): each operation draws once, behind its way to the target. Who loses waits
// for one more round trip of the wire (UB, selective acknowledgement), or for as many as the packets that Go-Back-N
// sends again (RoCE). What goes again is never lost. The Core sees nothing of this.
#pragma once

#include <cstdint>
#include <string>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/parts/link.h"
#include "emu_hw/parts/part.h"

namespace ub::emu {

class LossRule : public Part {
 public:
  // Of the operations of one node. `cycles`: of a way through a NIC; `round_trips`: that a loss costs.
  LossRule(const Site& site, uint64_t cycles, uint64_t round_trips)
      : Part(site),
        cycles_(cycles),
        round_trips_(round_trips),
        random_(site.parameters.seed, "node " + std::to_string(site.host), "loss") {}

  Charge draw(Operation& op) {
    const bool is_lost = parameters_.loss == Loss::kRule && random_.chance(parameters_.loss_rate);
    return wait(op, "rule.loss", is_lost ? round_trip(op.bytes_there()) * round_trips_ : Span{});
  }

 private:
  Span round_trip(uint32_t bytes) const {
    const Span pipes = fidelity_.delay(parameters_.nic_cycle * (2 * cycles_) * 2);
    const Span sending = fidelity_.delay(time_of_bytes(parameters_, bytes));
    return pipes + (parameters_.link_delay + sending) * 2;
  }

  const uint64_t cycles_, round_trips_;
  RandomStream random_;
};

}  // namespace ub::emu
