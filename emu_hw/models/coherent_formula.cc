// SPDX-License-Identifier: Apache-2.0
//
// Coherent fabrics as closed forms, and UB beside them.
#include <algorithm>

#include "emu_hw/models/model.h"
#include "emu_hw/models/read_latency.h"

namespace ub::emu {
namespace {

Span round_trip(const Parameters& p) { return p.fabric_hop * 2; }

// A load. Lines that the directory does not know cost a way there and back, the sharers' answers, and once more a way.
double load_ns(const Parameters& p) {
  const double base = (p.fabric_access + round_trip(p)).ns();
  if (p.fabric_lines <= p.fabric_directory) return base;
  const auto lines = static_cast<double>(p.fabric_lines), unknown = lines - static_cast<double>(p.fabric_directory);
  return base + unknown / lines * (round_trip(p) * 2 + p.fabric_answer * p.fabric_sharers).ns();
}

// A write of a line that all peers have read.
double shared_write_ns(const Parameters& p) {
  return (p.fabric_write + p.fabric_invalidate * (p.nodes - 1) + round_trip(p) + p.fabric_answer * p.nodes).ns();
}

// A load of UB, on a fabric that stands still when it loses a packet.
std::map<std::string, double> lossless(const Parameters& p) {
  const double stall = p.fabric_stall.ns(), base = read_latency_ns("ldst", p);
  const double mean = base + p.loss_rate * stall;
  return {{"mean_ns", mean}, {"p99_ns", p.loss_rate >= 0.01 ? stall : base}, {"mops", 1000 / mean}};
}

}  // namespace

PointResult run_coherent_formula(const Point& point) {
  const Parameters& p = point.parameters;
  PointResult result;
  if (point.stack == "coherent") {
    result.values = {{"load_ns", load_ns(p)}, {"shared_write_ns", shared_write_ns(p)}};
  } else if (point.stack == "ldst" || point.stack == "urma") {
    const double base = read_latency_ns(point.stack, p);
    result.values = {{"load_ns", base}, {"shared_write_ns", base}};
  } else if (point.stack == "lossless") {
    result.values = lossless(p);
  } else {
    throw BadPoint("there is no stack " + point.stack +
                   " of coherent_formula; there are coherent, ldst, urma, lossless");
  }
  return result;
}

}  // namespace ub::emu
