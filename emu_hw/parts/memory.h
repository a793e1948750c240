// SPDX-License-Identifier: Apache-2.0
//
// Between a NIC on the CPU's chip and memory: the on-chip bus and the memory itself, whose channel carries the bytes of
// one operation after those of another, if it has a rate.
#pragma once

#include <optional>

#include "emu_hw/parts/part.h"
#include "emu_hw/parts/transmitter.h"

namespace ub::emu {

class Memory : public Part {
 public:
  explicit Memory(const Site& site) : Part(site) {
    if (parameters_.memory_bw != 0) channel_.emplace(parameters_.memory_bw);
  }

  Charge cross_bus(Operation& op) const { return take(op, "bus", parameters_.membus); }
  Charge access_local(Operation& op) const { return take(op, "dram.local", parameters_.local_dram); }
  Charge access(Operation& op) {
    const Time now = kernel_.now();
    const Span transfer = channel_ ? channel_->send(now, op.bytes) - now : Span{};
    return take(op, "dram", parameters_.remote_dram + transfer);
  }

 private:
  std::optional<Transmitter> channel_;
};

}  // namespace ub::emu
