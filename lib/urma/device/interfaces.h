// SPDX-License-Identifier: Apache-2.0
// interfaces.h - which Ethernet address stands behind an IP address, as far as the kernel knows. Sends nothing.
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/urma/backends/backend.h"

namespace ub::urma {

struct InterfaceAddress {
  uint32_t prefix_len = 0;
  std::optional<MacAddress> mac;  // none: loopback, tunnels
};

// Empty: no interface of this network namespace has the address.
std::optional<InterfaceAddress> find_interface_address(const IpAddress& ip);
// Of a complete Ethernet entry in a table like /proc/net/arp.
std::optional<MacAddress> find_neighbour(const IpAddress& ip, const std::string& table_path);

}  // namespace ub::urma
