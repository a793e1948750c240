// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/device/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <netinet/in.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace ub::urma {
namespace {

// Of an IPv4 or IPv6 socket address; a network mask has the same form.
std::optional<IpAddress> ip_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  IpAddress ip;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, address, sizeof v4);
    return IpAddress::from_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  memcpy(&v6, address, sizeof v6);
  memcpy(ip.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  return ip;
}

uint32_t prefix_of(const sockaddr* mask, bool v4) {
  std::optional<IpAddress> ip = ip_of(mask);
  if (!ip) return v4 ? 32 : 128;
  uint32_t bits = 0;
  for (size_t i = v4 ? 12 : 0; i < ip->bytes.size(); ++i) bits += static_cast<uint32_t>(std::popcount(ip->bytes[i]));
  return bits;
}

// An address may have a label of its own, as in "eth0:1".
std::string_view interface_of(const ifaddrs& entry) {
  std::string_view name(entry.ifa_name);
  return name.substr(0, name.find(':'));
}

std::optional<MacAddress> mac_of(const ifaddrs* list, std::string_view interface) {
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_PACKET || interface_of(*at) != interface) continue;
    sockaddr_ll link;
    memcpy(&link, at->ifa_addr, sizeof link);
    MacAddress mac;
    if (link.sll_hatype != ARPHRD_ETHER || link.sll_halen != mac.size()) continue;
    memcpy(mac.data(), link.sll_addr, mac.size());
    return mac;
  }
  return std::nullopt;
}

}  // namespace

std::optional<InterfaceAddress> find_interface_address(const IpAddress& ip) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (ip_of(at->ifa_addr) != ip) continue;
    return InterfaceAddress{prefix_of(at->ifa_netmask, ip.is_v4()), mac_of(list, interface_of(*at))};
  }
  return std::nullopt;
}

std::optional<MacAddress> find_neighbour(const IpAddress& ip, const std::string& table_path) {
  std::unique_ptr<FILE, int (*)(FILE*)> table(fopen(table_path.c_str(), "re"), fclose);
  if (table == nullptr) return std::nullopt;
  char line[256];
  while (fgets(line, sizeof line, table.get()) != nullptr) {
    char address[64];
    unsigned type = 0, flags = 0;
    MacAddress mac;
    in_addr v4;
    int parts = sscanf(line, "%63s 0x%x 0x%x %2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", address, &type, &flags, &mac[0],
                       &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]);
    if (parts != 9 || type != ARPHRD_ETHER || (flags & ATF_COM) == 0) continue;
    if (inet_pton(AF_INET, address, &v4) == 1 && IpAddress::from_v4(ntohl(v4.s_addr)) == ip) return mac;
  }
  return std::nullopt;
}

}  // namespace ub::urma
