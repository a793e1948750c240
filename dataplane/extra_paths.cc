// SPDX-License-Identifier: Apache-2.0
#include "dataplane/extra_paths.h"

#include <algorithm>

#include "dataplane/eid.h"
#include "dataplane/path_mapping.h"

namespace ub {
namespace {

bool open_source_ports(uint32_t paths, UdpPort& udp, std::vector<ExtraPath>* out, std::string* error) {
  for (const wire::IpAddress& ip : udp.addresses()) {
    for (uint32_t i = 1; i < paths; ++i) {
      uint16_t port;
      if (!udp.open_source_port(ip, &port, error)) {
        *error += " (transport.paths)";
        return false;
      }
      out->push_back({{}, {ip, port}, {}});
    }
  }
  return true;
}

bool add_mapped(const std::string& text, const UdpPort& udp, std::vector<ExtraPath>* out, std::string* error) {
  const std::optional<PathMapping> mapping = parse_path_mapping(text);
  if (!mapping) {
    *error = "transport.path_map: \"" + text +
             "\" is not PEER=LOCAL>REMOTE with three addresses of one family, as in \"10.1.0.2=10.2.0.1>10.2.0.2\"";
    return false;
  }
  const std::vector<wire::IpAddress>& bound = udp.addresses();
  if (std::find(bound.begin(), bound.end(), mapping->local) == bound.end()) {
    *error = "transport.path_map: \"" + text + "\": no UDP socket is bound to " + to_text(mapping->local) +
             "; list it in port.udp_bind, beside the addresses of the EIDs";
    return false;
  }
  out->push_back({mapping->peer, {mapping->local, udp.port()}, mapping->remote});
  return true;
}

}  // namespace

bool open_extra_paths(const TransportConfig& config, UdpPort& udp, std::vector<ExtraPath>* paths, std::string* error) {
  if (!open_source_ports(config.paths, udp, paths, error)) return false;
  return std::all_of(config.path_map.begin(), config.path_map.end(),
                     [&](const std::string& text) { return add_mapped(text, udp, paths, error); });
}

}  // namespace ub
