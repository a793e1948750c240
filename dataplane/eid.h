// SPDX-License-Identifier: Apache-2.0
//
// Which EIDs this instance has, which IP address stands behind an EID, and from which of our addresses a peer
// is reached. Asks the kernel (interfaces, routes); sends nothing.
//
// By default an EID is an IP address (IPv4 as ::ffff:a.b.c.d), so that a peer's EID alone says where it is.
// An override table maps single EIDs to other addresses.
//
// Thread: filled once at start, then read-only and usable from any thread. Not for the data path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/neighbours.h"
#include "lib/transport/core_types.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

// "10.0.0.7" or "fd00::7" (no brackets, no scope). IPv4 also as ::ffff:10.0.0.7.
std::optional<wire::IpAddress> parse_ip(std::string_view text);
std::string to_text(const wire::IpAddress&);

inline Eid eid_of(const wire::IpAddress& ip) {
  Eid eid;
  eid.bytes = ip.bytes;
  return eid;
}
inline std::string to_text(const Eid& eid) { return to_text(wire::IpAddress{eid.bytes}); }

// "10.1.0.2/24", "fd01::2/64".
std::optional<IpNetwork> parse_network(const std::string&);
// "10.1.0.3=02:00:00:00:00:03".
std::optional<std::pair<wire::IpAddress, wire::MacAddress>> parse_neighbour(const std::string&);

// "fd00::7=10.0.0.7".
std::optional<std::pair<Eid, wire::IpAddress>> parse_eid_mapping(const std::string&);

struct LocalAddress {
  wire::IpAddress ip;
  std::string interface;
  uint32_t interface_mtu = 0;  // bytes of an IP packet
  bool up = false;
  bool loopback = false;
  bool link_local = false;  // needs a scope: cannot be an EID
};

// Every IPv4 and IPv6 address of this network namespace, in the kernel's order.
std::vector<LocalAddress> local_addresses();

// Source address of the default route, else the first global address that is up, else 127.0.0.1.
wire::IpAddress default_address();

// Payload bytes of a packet (1024, 2048, 4096 or 8192) that fit an interface of this MTU with the longest
// headers in front: 1500 gives 1024, 9000 gives 8192. An interface too small for 1024 gives 1024 too: its
// largest packets will not pass. Loopback interfaces: see UdpPortOptions::mtu.
uint32_t payload_for_interface_mtu(uint32_t interface_mtu);

struct EidOptions {
  std::vector<std::string> eids;     // IP literals, the first is the default EID; empty: default_address()
  std::vector<std::string> eid_map;  // "EID=IP"
  std::vector<wire::IpAddress> port_addresses = {};  // of ports that no kernel serves: ours, and the default if any
};

class EidTable {
 public:
  // False and a sentence in `*error` (what, where, what to do) if an entry is no EID or not an address of
  // this host.
  bool init(const EidOptions&, std::string* error);

  // Ours, dense, the first is the default.
  const std::vector<Eid>& eids() const { return eids_; }
  // Address of our EID number `index` (what its socket binds to).
  const wire::IpAddress& local_ip(size_t index) const { return local_ips_[index]; }

  // Where an EID is reached: the override, else the EID itself.
  wire::IpAddress ip_of(const Eid&) const;
  // The EID behind an address: the override that names it, else the address itself.
  Eid eid_at(const wire::IpAddress&) const;

  bool is_local(const Eid&) const;

  // Number of our EID from which `target` is reached: the kernel's choice of source if that is ours, else the
  // first of the same family with a route. Empty and `*error`: none.
  std::optional<size_t> route_to(const Eid& target, std::string* error) const;

 private:
  struct Override {
    Eid eid;
    wire::IpAddress ip;
  };
  std::vector<Eid> eids_;
  std::vector<wire::IpAddress> local_ips_;
  std::vector<Override> overrides_;
};

}  // namespace ub
