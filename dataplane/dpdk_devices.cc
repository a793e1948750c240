// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk_devices.h"

#include <algorithm>

#include "dataplane/eid.h"

namespace ub {
namespace {

// The one in whose networks it is, else the first.
PluginPortOptions& port_near(std::vector<PluginPortOptions>& ports, const wire::IpAddress& ip) {
  for (PluginPortOptions& port : ports) {
    for (const IpNetwork& network : port.addresses) {
      if (network.contains(ip)) return port;
    }
  }
  return ports.front();
}

bool add_address(std::vector<PluginPortOptions>& ports, const std::string& text, std::string* error) {
  const size_t at = text.find('@');
  const IpNetwork network = *parse_network(text.substr(0, at));
  if (at == std::string::npos) {
    ports.front().addresses.push_back(network);
    return true;
  }
  const std::string name = text.substr(at + 1);
  auto port = std::find_if(ports.begin(), ports.end(),
                           [&](const PluginPortOptions& p) { return dpdk_device_name(p.device) == name; });
  if (port == ports.end()) {
    *error = "dpdk.addresses: \"" + text + "\": dpdk.device has no device of the name " + name;
    return false;
  }
  port->addresses.push_back(network);
  return true;
}

}  // namespace

std::vector<std::string> dpdk_devices(const DpdkConfig& config) {
  std::vector<std::string> devices;
  std::string_view rest = config.device;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (!one.empty()) devices.emplace_back(one);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return devices;
}

std::string dpdk_device_name(const std::string& devargs) { return devargs.substr(0, devargs.find(',')); }

std::vector<PluginPortOptions> dpdk_ports(const DpdkConfig& config, std::string* error) {
  std::vector<PluginPortOptions> ports;
  for (const std::string& device : dpdk_devices(config)) {
    ports.emplace_back();
    ports.back().device = device;
    ports.back().arguments = config.arguments;
    ports.back().vlan = static_cast<uint16_t>(config.vlan);
    ports.back().switched = config.switched;
  }
  if (ports.empty() || config.addresses.empty()) {
    *error = "port.kinds has \"dpdk\": dpdk.device and dpdk.addresses must say which device and which addresses";
    return {};
  }
  for (const std::string& text : config.addresses) {
    if (!add_address(ports, text, error)) return {};
  }
  for (const PluginPortOptions& port : ports) {
    if (!port.addresses.empty()) continue;
    const std::string name = dpdk_device_name(port.device);
    *error = "DPDK device " + name + " has no address: add one such as \"10.1.0.2/24@" + name + "\" to dpdk.addresses";
    return {};
  }
  for (const std::string& text : config.gateways) {
    wire::IpAddress ip = *parse_ip(text);
    PluginPortOptions& port = port_near(ports, ip);
    (ip.is_v4() ? port.gateway_v4 : port.gateway_v6) = ip;
  }
  for (const std::string& text : config.neighbours) {
    auto neighbour = *parse_neighbour(text);
    port_near(ports, neighbour.first).neighbours.push_back(neighbour);
  }
  return ports;
}

}  // namespace ub
