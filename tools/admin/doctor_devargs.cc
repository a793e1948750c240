// SPDX-License-Identifier: Apache-2.0
//
// Devargs and arguments of DPDK, read as far as the doctor needs them. DPDK itself has the last word.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tools/admin/doctor.h"

namespace ub::tools {
namespace {

// "0000:01:00.0" or "01:00.0", as DPDK takes them; empty if it is neither.
std::string pci_address(std::string text) {
  if (text.rfind("pci:", 0) == 0) text.erase(0, 4);
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int used = 0;
  const char* s = text.c_str();
  bool whole = std::sscanf(s, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) == 4;
  if (!whole) {
    domain = 0;
    whole = std::sscanf(s, "%2x:%2x.%1x%n", &bus, &device, &function, &used) == 3;
  }
  if (!whole || s[used] != 0) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::string value_of(const std::vector<std::string>& arguments, const std::string& key) {
  for (const std::string& a : arguments)
    if (a.rfind(key + "=", 0) == 0) return a.substr(key.size() + 1);
  return "";
}

std::string socket_of(const std::string& driver, const std::vector<std::string>& arguments) {
  if (driver == "net_vhost") return value_of(arguments, "iface");
  if (driver == "net_virtio_user") return value_of(arguments, "path");
  // An abstract socket, memif's default, is in no folder.
  return value_of(arguments, "socket-abstract") == "no" ? value_of(arguments, "socket") : "";
}

}  // namespace

DeviceName parse_device(const std::string& devargs) {
  DeviceName d;
  std::vector<std::string> parts;
  std::istringstream stream(devargs);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  if (parts.empty()) {
    d.error = "dpdk.device is empty";
    return d;
  }
  if (d.pci = pci_address(parts[0]); !d.pci.empty()) {
    d.kind = DeviceName::Kind::kPci;
    return d;
  }
  d.driver = parts[0].rfind("vdev:", 0) == 0 ? parts[0].substr(5) : parts[0];
  while (!d.driver.empty() && d.driver.back() >= '0' && d.driver.back() <= '9') d.driver.pop_back();
  if (d.driver.rfind("net_", 0) != 0 && d.driver.rfind("eth_", 0) != 0) {
    d.error = fmt::format("dpdk.device = \"{}\" is neither a PCI address nor the name of a driver", devargs);
    return d;
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].find('=') != std::string::npos) continue;
    d.error = fmt::format("dpdk.device: \"{}\" is not of the form key=value", parts[i]);
    return d;
  }
  d.kind = DeviceName::Kind::kOther;
  if (d.driver == "net_af_packet" || d.driver == "net_af_xdp") {
    d.kind = d.driver == "net_af_xdp" ? DeviceName::Kind::kAfXdp : DeviceName::Kind::kAfPacket;
    d.interface = value_of(parts, "iface");
  } else if (d.driver == "net_memif" || d.driver == "net_vhost" || d.driver == "net_virtio_user") {
    d.kind = DeviceName::Kind::kSocket;
    d.socket = socket_of(d.driver, parts);
  }
  return d;
}

std::vector<uint32_t> cores_of(const std::vector<std::string>& arguments) {
  std::string list = value_of(arguments, "--lcores");
  for (size_t i = 0; i + 1 < arguments.size(); ++i)
    if (arguments[i] == "-l" || arguments[i] == "--lcores") list = arguments[i + 1];
  std::vector<uint32_t> cores;
  if (list.find_first_not_of("0123456789,-") != std::string::npos) return cores;  // groups: DPDK will say
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    unsigned low = 0, high = 0;
    const int n = std::sscanf(part.c_str(), "%u-%u", &low, &high);
    for (unsigned core = low; n >= 1 && core <= std::min(n == 2 ? high : low, 4095U); ++core) cores.push_back(core);
  }
  return cores;
}

bool wants_hugepages(const std::vector<std::string>& arguments) {
  bool asked = false;
  for (const std::string& a : arguments) {
    const std::string name = a.substr(0, a.find('='));
    if (name == "--no-huge") return false;
    asked |= name == "--in-memory" || name == "--huge-dir" || name == "--socket-mem";
  }
  return asked;
}

}  // namespace ub::tools
