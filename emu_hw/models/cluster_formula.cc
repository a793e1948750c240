// SPDX-License-Identifier: Apache-2.0
//
// A cluster as a closed form: an operation between two hosts, more for each further peer, and what fetching contexts
// again takes once those of all peers are too many for a NIC.
#include "emu_hw/models/model.h"
#include "emu_hw/models/read_latency.h"

namespace ub::emu {
namespace {

Span refetches(const Point& point) {
  const Parameters& p = point.parameters;
  const bool is_roce = point.stack == "roce";
  const uint64_t contexts = is_roce ? p.nodes * (p.nodes - 1) : 2 * p.nodes;
  if (contexts <= (is_roce ? p.roce_qp_cache : p.ub_tp_cache)) return {};
  return (is_roce ? p.pcie_dma_read : p.membus + p.local_dram) * 2;
}

}  // namespace

PointResult run_cluster_formula(const Point& point) {
  const Parameters& p = point.parameters;
  if (point.stack != "ldst" && point.stack != "urma" && point.stack != "roce")
    throw BadPoint("there is no stack " + point.stack + " of cluster_formula; there are ldst, urma, roce");
  PointResult result;
  const Span added = p.contention * (p.nodes - 1) + refetches(point);
  result.values = {{"mean_ns", read_latency_ns(point.stack, p) + added.ns()}};
  return result;
}

}  // namespace ub::emu
