// SPDX-License-Identifier: Apache-2.0
//
// What a program needs to know to own a NIC of a fabric.
#include <fmt/format.h>

#include "dataplane/eid.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/config.h"
#include "tools/fabric/udp_ports.h"

namespace ub::fabric {
namespace {

std::vector<std::string> udp_environment(const Config& config, const NicConfig& nic) {
  std::string map;
  for (const NicConfig& other : config.nics) {
    if (&other == &nic) continue;
    map.append(map.empty() ? "" : ",").append(to_text(other.own)).append("=").append(to_text(other.seen));
  }
  return {"SOFTUB_PORT_KINDS=udp", "SOFTUB_DEVICE_EIDS=" + to_text(nic.own), "SOFTUB_DEVICE_EID_MAP=" + map,
          "SOFTUB_DEVICE_ID_BLOCK=" + std::to_string(kIdBlock)};
}

// The NIC is the client, which comes again by itself. Its Ethernet address is made from its IP address.
std::vector<std::string> memif_environment(const NicConfig& nic) {
  const uint32_t ip = nic.own.v4();
  return {"SOFTUB_PORT_KINDS=dpdk", "SOFTUB_PORT_MTU=4096", "SOFTUB_DPDK_SWITCHED=true",
          fmt::format("SOFTUB_DPDK_DEVICE=net_memif0,role=client,socket={},bsize=8192,"
                      "mac=02:00:{:02x}:{:02x}:{:02x}:{:02x}",
                      nic.place, ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff),
          "SOFTUB_DPDK_ADDRESSES=" + to_text(nic.own) + "/24"};
}

}  // namespace

std::vector<std::string> environment_of(const Config& config, size_t number) {
  const NicConfig& nic = config.nics[number];
  switch (nic.kind) {
    case NicKind::kUdp:
      return udp_environment(config, nic);
    case NicKind::kMemif:
      return memif_environment(nic);
    case NicKind::kInterface:
      break;
  }
  throw tools::ToolError(tools::kExitUsage,
                         "--environment: NIC \"" + nic.name + "\" is behind an interface, whose programs need none");
}

}  // namespace ub::fabric
