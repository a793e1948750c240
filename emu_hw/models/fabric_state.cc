// SPDX-License-Identifier: Apache-2.0
//
// State of a host in fabrics of more and more hosts, and where a fabric ends.
#include "emu_hw/models/model.h"
#include "emu_hw/models/paper_records.h"

namespace ub::emu {
namespace {

constexpr uint64_t kTagBytes = 8;  // of an entry of a directory, beside a bit for each host

uint64_t ub_bytes(const Parameters& p) {
  return (sizeof(paper::FullJetty) + sizeof(paper::MemoryRegion) + sizeof(paper::TpChannel)) * p.nodes;
}
uint64_t roce_bytes(const Parameters& p) { return sizeof(paper::QueuePair) * p.nodes * p.nodes; }
uint64_t directory_bytes(const Parameters& p) {
  return p.fabric_shared_lines * p.nodes / 8 + p.fabric_shared_lines * kTagBytes;
}
uint64_t nvlink_bytes(const Parameters& p) { return p.fabric_window * p.nodes; }

bool always(const Parameters&) { return true; }
bool nvlink_fits(const Parameters& p) { return nvlink_bytes(p) <= p.host_memory; }
bool is_in_range(const Parameters& p) { return p.nodes <= p.fabric_ranges; }
uint64_t none(const Parameters&) { return 0; }

struct Entry {
  std::string_view stack;
  uint64_t (*bytes)(const Parameters&);
  bool (*fits)(const Parameters&);
};
constexpr Entry kEntries[] = {
    {"ub", ub_bytes, always},
    {"roce", roce_bytes, always},
    {"directory", directory_bytes, always},
    {"nvlink", nvlink_bytes, nvlink_fits},
    {"cxl_mem", none, is_in_range},
};

}  // namespace

PointResult run_fabric_state(const Point& point) {
  for (const Entry& entry : kEntries) {
    if (entry.stack != point.stack) continue;
    PointResult result;
    result.values = {{"bytes", static_cast<double>(entry.bytes(point.parameters))},
                     {"fits", entry.fits(point.parameters) ? 1 : 0}};
    return result;
  }
  throw BadPoint("there is no stack " + point.stack +
                 " of fabric_state; there are ub, roce, directory, nvlink, cxl_mem");
}

}  // namespace ub::emu
