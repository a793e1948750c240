// SPDX-License-Identifier: Apache-2.0
#include "dataplane/extra_paths.h"

#include <algorithm>

#include "dataplane/eid.h"
#include "dataplane/path_mapping.h"
#include "lib/transport/core_state.h"

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
             "\" is not PEER=LOCAL>REMOTE with the addresses of three hosts, of one family, as in "
             "\"10.1.0.2=10.2.0.1>10.2.0.2\"";
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

// Those of a channel: of one peer, and from one of our addresses.
bool check_count(const TransportConfig& config, const std::vector<ExtraPath>& paths, std::string* error) {
  uint64_t mapped = 0;
  for (const ExtraPath& p : paths) {
    if (p.peer == wire::IpAddress{}) continue;  // a source port
    const auto of_peer = std::ranges::count(paths, p.peer, &ExtraPath::peer);
    mapped = std::max(mapped, static_cast<uint64_t>(of_peer));
  }
  if (config.paths + mapped > config.most_paths) {
    *error = "transport.paths = " + std::to_string(config.paths) + " and transport.path_map with " +
             std::to_string(mapped) + " entries of one peer are " + std::to_string(config.paths + mapped) +
             " paths of a channel, which may have transport.most_paths = " + std::to_string(config.most_paths) +
             "; raise that, or ask for fewer";
    return false;
  }
  if (paths.size() <= kMaxExtraPaths) return true;
  *error = "transport.paths and transport.path_map are " + std::to_string(paths.size()) +
           " paths beside the usual ones, over all addresses of port.udp_bind; a NIC has room for " +
           std::to_string(kMaxExtraPaths);
  return false;
}

}  // namespace

// Mapped ones first: a channel is set up by them sooner, and a cut cable takes all ports of its address with it.
bool open_extra_paths(const TransportConfig& config, UdpPort& udp, std::vector<ExtraPath>* paths, std::string* error) {
  return std::all_of(config.path_map.begin(), config.path_map.end(),
                     [&](const std::string& text) { return add_mapped(text, udp, paths, error); }) &&
         open_source_ports(config.paths, udp, paths, error) && check_count(config, *paths, error);
}

}  // namespace ub
