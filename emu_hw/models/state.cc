// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "emu_hw/models/core_bytes.h"
#include "emu_hw/models/model.h"
#include "emu_hw/models/paper_records.h"
#include "emu_hw/models/populations.h"

namespace ub::emu {
namespace {

// Of the state of a NIC: UB has a record of each thing, RoCE one of each pair.
template <class Jetty>
uint64_t ub_bytes(const Parameters& p) {
  return (sizeof(Jetty) + sizeof(paper::MemoryRegion)) * applications(p) + sizeof(paper::TpChannel) * remote_hosts(p);
}
uint64_t roce_bytes(const Parameters& p) {
  return sizeof(paper::QueuePair) * applications(p) * remote_hosts(p) + sizeof(paper::MemoryRegion) * applications(p);
}

// The same of this project's Core. UB imports each remote jetty once.
uint64_t ub_core_bytes(const Parameters& p) {
  const CoreBytes each = core_bytes(p);
  return (each.jetty + each.segment) * applications(p) + (each.peer + each.import) * remote_hosts(p);
}
uint64_t roce_core_bytes(const Parameters& p) {
  const CoreBytes each = core_bytes(p);
  return each.connection * applications(p) * remote_hosts(p) + each.segment * applications(p);
}

// Objects of the library of a host. The reference counts no contexts, which each process has one of.
uint64_t ub_host_bytes(const Parameters& p) {
  using namespace paper;
  const uint64_t own = sizeof(HostJetty) + sizeof(HostJfc) + sizeof(HostSegment);
  return (own + (sizeof(HostRemoteSegment) + sizeof(HostTarget)) * remote_hosts(p)) * applications(p);
}
uint64_t roce_host_bytes(const Parameters& p) {
  using namespace paper;
  const uint64_t each = sizeof(HostQueuePair) + sizeof(HostCompletionQueue);
  return (sizeof(HostMemoryRegion) + each * remote_hosts(p)) * applications(p);
}

template <class Record>
uint64_t size_of(const Parameters&) {
  return sizeof(Record);
}

struct Entry {
  std::string_view stack;
  uint64_t (*bytes)(const Parameters&);
  uint64_t (*roce)(const Parameters&);  // what it is compared with
};

constexpr Entry kEntries[] = {
    {"ub", ub_bytes<paper::Jetty>, roce_bytes},
    {"ub_full", ub_bytes<paper::FullJetty>, roce_bytes},
    {"roce", roce_bytes, roce_bytes},
    {"ub_core", ub_core_bytes, roce_core_bytes},
    {"roce_core", roce_core_bytes, roce_core_bytes},
    {"ub_host", ub_host_bytes, roce_host_bytes},
    {"roce_host", roce_host_bytes, roce_host_bytes},
    {"jetty", size_of<paper::Jetty>, size_of<paper::QueuePair>},
    {"jetty_full", size_of<paper::FullJetty>, size_of<paper::QueuePair>},
    {"channel", size_of<paper::TpChannel>, size_of<paper::QueuePair>},
    {"region", size_of<paper::MemoryRegion>, size_of<paper::QueuePair>},
    {"qp", size_of<paper::QueuePair>, size_of<paper::QueuePair>},
};

// The tables have ratios with one digit behind the point.
double to_tenths(double ratio) { return std::round(ratio * 10) / 10; }

}  // namespace

PointResult run_state(const Point& point) {
  for (const Entry& entry : kEntries) {
    if (entry.stack != point.stack) continue;
    const auto bytes = static_cast<double>(entry.bytes(point.parameters));
    PointResult result;
    result.values = {{"bytes", bytes},
                     {"ratio", to_tenths(static_cast<double>(entry.roce(point.parameters)) / bytes)}};
    return result;
  }
  throw BadPoint("there is no stack " + point.stack + " of state; emu_hw/models/state.cc lists all");
}

}  // namespace ub::emu
