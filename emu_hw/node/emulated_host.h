// SPDX-License-Identifier: Apache-2.0
//
// A host of the lumped fidelities: a CPU, memory, a NIC with its engine, a link, and the Core.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "emu_hw/node/core_config.h"
#include "emu_hw/node/node.h"
#include "emu_hw/node/service.h"
#include "emu_hw/parts/attachment.h"
#include "emu_hw/parts/context_cache.h"
#include "emu_hw/parts/cpu.h"
#include "emu_hw/parts/fabric.h"
#include "emu_hw/parts/link.h"
#include "emu_hw/parts/lumped_nic.h"
#include "emu_hw/parts/memory.h"
#include "emu_hw/parts/order_gate.h"
#include "emu_hw/parts/pcie.h"
#include "emu_hw/parts/psn_allocator.h"

namespace ub::emu {

constexpr uint32_t kMtu = 4096;

// The link between two hosts. TP bypass needs one that loses nothing.
inline LinkConfig link_config(const Parameters& p) {
  LinkConfig link;
  link.mtu = kMtu;
  link.lossless = link.bypass = p.loss != Loss::kLink;
  return link;
}

struct EmulatedHost {
  EmulatedHost(Kernel& kernel, const Parameters& p, Fidelity f, uint32_t number)
      : site{kernel, p, f, number},
        cpu(site),
        memory(site),
        pcie(site),
        attachment(site),
        gate(site),
        psn(site),
        nic(site),
        link(site),
        node(kernel, number, core_config(p, number), p.link_delay),
        service(node) {
    if (p.loss == Loss::kLink) node.lose_frames(p.loss_rate, p.seed);
  }

  // The NIC keeps contexts; the first one who needs some says how many there are.
  ContextCache& contexts(const ContextNeeds& needs) {
    if (!contexts_) contexts_.emplace(site, needs);
    return *contexts_;
  }
  // A train has come out of the link, on its way to another host.
  Charge cross_fabric(Operation& op, const EmulatedHost& to, uint32_t bytes, Train& train) {
    if (fabric == nullptr) return {site.kernel, op, {}, {}};
    return fabric->pass(op, site.host, to.site.host, bytes, train);
  }

  const Site site;
  Cpu cpu;
  Memory memory;
  Pcie pcie;
  Attachment attachment;
  OrderGate gate;
  PsnAllocator psn;
  LumpedNic nic;
  Link link;
  Node node;
  Service service;
  Fabric* fabric = nullptr;  // behind the link; null: the other host

 private:
  std::optional<ContextCache> contexts_;
};

// The hosts that a stack reaches: one, or several, which operations name by their places in the list.
struct Peers {
  Peers(EmulatedHost& only) : hosts{&only} {}
  Peers(std::vector<EmulatedHost*> all) : hosts(std::move(all)) {}

  std::vector<EmulatedHost*> hosts;
};

}  // namespace ub::emu
