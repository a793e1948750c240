// SPDX-License-Identifier: Apache-2.0
//
// A host of the lumped fidelities: a CPU, memory, a NIC with its engine, a link, and the Core.
#pragma once

#include "emu_hw/node/node.h"
#include "emu_hw/parts/cpu.h"
#include "emu_hw/parts/link.h"
#include "emu_hw/parts/lumped_nic.h"
#include "emu_hw/parts/memory.h"
#include "emu_hw/parts/order_gate.h"
#include "emu_hw/parts/pcie.h"
#include "emu_hw/parts/psn_allocator.h"

namespace ub::emu {

struct EmulatedHost {
  EmulatedHost(Kernel& kernel, const Parameters& p, Fidelity f, uint32_t number)
      : site{kernel, p, f, number},
        cpu(site),
        memory(site),
        pcie(site),
        gate(site),
        psn(site),
        nic(site),
        link(site),
        node(kernel, number, plain_config(number, 1), p.link_delay) {}

  const Site site;
  Cpu cpu;
  Memory memory;
  Pcie pcie;
  OrderGate gate;
  PsnAllocator psn;
  LumpedNic nic;
  Link link;
  Node node;
};

}  // namespace ub::emu
