// SPDX-License-Identifier: Apache-2.0
//
// The NIC's cache of contexts: connections, channels, endpoints. What is not there is fetched from memory before the
// operation goes on.
//
// Which contexts an operation needs is a rule of the reference (rule.context_population): the hosts have a number of
// them, which are used in turn, and each operation needs one at each end. So all hit while they fit, and none when they
// do not.
#pragma once

#include <cstdint>

#include "emu_hw/parts/lru_set.h"
#include "emu_hw/parts/part.h"

namespace ub::emu {

// A channel for each host and an endpoint for each application and peer (UB); a connection for each pair (RoCE).
struct ContextNeeds {
  uint64_t capacity;    // of the cache
  uint64_t population;  // of contexts
  Span refetch;
};

inline ContextNeeds roce_contexts(const Site& site) {
  const Parameters& p = site.parameters;
  return {p.roce_qp_cache, p.active_connections * p.active_connections * p.remote_jetties, p.pcie_dma_read};
}
inline ContextNeeds ub_contexts(const Site& site) {
  const Parameters& p = site.parameters;
  if (p.ub_state == UbState::kPairs) return roce_contexts(site);
  const uint64_t channels = 2 * p.active_connections;
  if (!site.fidelity.has_two_node_spills) return {p.ub_tp_cache, channels, p.membus + p.remote_dram};
  return {p.ub_tp_cache, channels + p.remote_jetties, p.membus + p.local_dram};
}

class ContextCache : public Part {
 public:
  // All contexts have been used once.
  ContextCache(const Site& site, const ContextNeeds& needs) : Part(site), needs_(needs), present_(needs.capacity) {
    const uint64_t first = needs.population > needs.capacity ? needs.population - needs.capacity : 0;
    for (uint64_t i = first; i < needs.population; ++i) present_.insert(i);
  }

  Charge touch(Operation& op) {
    const uint64_t name = next_++ % needs_.population;
    const bool is_there = present_.touch(name);
    if (!is_there) present_.insert(name);
    return take(op, "contexts", is_there ? Span{} : needs_.refetch);
  }

 private:
  const ContextNeeds needs_;
  LruSet present_;
  uint64_t next_ = 0;
};

}  // namespace ub::emu
