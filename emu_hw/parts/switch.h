// SPDX-License-Identifier: Apache-2.0
//
// A switch between all hosts of a cluster. Each host has a port, where trains wait for those that came before, and are
// marked by what waits. A train of one port passes on as it comes in, so a switch without load adds nothing but its own
// delay. The queues have no end: nothing is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/parts/fabric.h"
#include "emu_hw/parts/link.h"
#include "emu_hw/parts/transmitter.h"
#include "lib/impair/congestion_mark.h"
#include "lib/impair/queue_rules.h"

namespace ub::emu {

class Switch final : public Fabric {
 public:
  // `p` outlives it.
  Switch(Kernel& kernel, const Parameters& p, Fidelity f)
      : kernel_(kernel),
        parameters_(p),
        fidelity_(f),
        marking_{p.switch_mark_above, p.switch_mark_all_from, p.switch_mark_most} {}

  Charge pass(Operation& op, uint32_t, uint32_t to, uint32_t bytes, Train& train) override {
    const Time now = kernel_.now();
    Port& port = ports_.try_emplace(to, parameters_, to).first->second;
    const uint64_t in_front = port.transmitter.queued_bytes(now);
    most_queued_ = std::max(most_queued_, in_front + bytes);
    const double chance = impair::mark_chance(marking_, in_front);
    for (Frame& frame : train) marked_ += port.marks.chance(chance) && mark_congestion(frame.bytes);
    // It came over a link, which took as long for it.
    const Time first_bit{now.ps - time_of_bytes(parameters_, bytes).ps};
    const Span waits = port.transmitter.send(first_bit, bytes) - now;
    return {kernel_, op, {"switch", to}, fidelity_.delay(parameters_.switch_delay + waits)};
  }

  // Bytes that were at one port at most, and frames that were marked.
  uint64_t most_queued() const { return most_queued_; }
  uint64_t marked() const { return marked_; }

 private:
  struct Port {
    Port(const Parameters& p, uint32_t host)
        : transmitter(p.link_bw), marks(p.seed, "port of node " + std::to_string(host), "marks") {}
    Transmitter transmitter;
    RandomStream marks;
  };

  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
  const impair::Marking marking_;
  std::map<uint32_t, Port> ports_;  // by host
  uint64_t most_queued_ = 0, marked_ = 0;
};

}  // namespace ub::emu
