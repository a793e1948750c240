// SPDX-License-Identifier: Apache-2.0
#include "dataplane/eid.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "dataplane/socket_address.h"
#include "lib/ipc/fd.h"

namespace ub {
namespace {

// Longest IP packet for a payload of MTU bytes: IPv6, partition and EID header, WRITE_NOTIFY with source and
// token, padding, ICRC; or a byte-enabled write, whose payload is at most 1024.
constexpr uint32_t kLongestHeaders = 163;
constexpr uint32_t kLongestHeaders1024 = 267;

// The source address that the kernel would use towards `target`, optionally when bound to `source`. A
// connected UDP socket knows it and sends nothing. Empty: no route.
std::optional<wire::IpAddress> source_towards(const wire::IpAddress& target, const wire::IpAddress* source) {
  ipc::Fd fd(::socket(target.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return std::nullopt;
  SocketAddress a;
  if (source != nullptr) {
    socklen_t n = fill(&a, *source, 0);
    if (::bind(fd.get(), &a.base, n) != 0) return std::nullopt;
  }
  socklen_t n = fill(&a, target, 9);
  if (::connect(fd.get(), &a.base, n) != 0) return std::nullopt;
  n = sizeof a;
  if (::getsockname(fd.get(), &a.base, &n) != 0) return std::nullopt;
  return from_sockaddr(&a.base);
}

bool is_unspecified(const wire::IpAddress& ip) {
  if (ip.is_v4()) return ip.v4() == 0;
  return std::all_of(ip.bytes.begin(), ip.bytes.end(), [](uint8_t b) { return b == 0; });
}
bool is_multicast(const wire::IpAddress& ip) {
  if (ip.is_v4()) return ip.v4() >> 28 == 0xe || ip.v4() == 0xffffffff;
  return ip.bytes[0] == 0xff;
}
bool is_link_local(const wire::IpAddress& ip) {
  return !ip.is_v4() && ip.bytes[0] == 0xfe && (ip.bytes[1] & 0xc0) == 0x80;
}

bool usable(const wire::IpAddress& ip, const std::string& text, const char* key, std::string* error) {
  const char* what = is_unspecified(ip)  ? "the unspecified address"
                     : is_multicast(ip)  ? "a multicast or broadcast address"
                     : is_link_local(ip) ? "a link-local address, which means nothing without its interface"
                                         : nullptr;
  if (what == nullptr) return true;
  *error = std::string(key) + ": \"" + text + "\" is " + what + "; use a unicast address of an interface";
  return false;
}

}  // namespace

std::optional<wire::IpAddress> parse_ip(std::string_view text) {
  std::string s(text);
  in_addr v4;
  if (::inet_pton(AF_INET, s.c_str(), &v4) == 1) return wire::IpAddress::from_v4(ntohl(v4.s_addr));
  wire::IpAddress ip;
  if (::inet_pton(AF_INET6, s.c_str(), ip.bytes.data()) == 1) return ip;
  return std::nullopt;
}

std::optional<IpNetwork> parse_network(const std::string& text) {
  size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  auto ip = parse_ip(std::string_view(text).substr(0, slash));
  const char* end = text.data() + text.size();
  unsigned bits = 0;
  auto [last, status] = std::from_chars(text.data() + slash + 1, end, bits);
  if (!ip || status != std::errc() || last != end || bits > (ip->is_v4() ? 32 : 128)) return std::nullopt;
  return IpNetwork{*ip, static_cast<uint8_t>(bits)};
}

std::optional<std::pair<wire::IpAddress, wire::MacAddress>> parse_neighbour(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  auto ip = parse_ip(std::string_view(text).substr(0, equals));
  wire::MacAddress mac;
  int used = 0;
  const char* rest = text.c_str() + equals + 1;
  int parts = std::sscanf(rest, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
                          &mac[5], &used);
  if (!ip || parts != 6 || rest[used] != 0 || (mac[0] & 1) != 0) return std::nullopt;
  return std::pair{*ip, mac};
}

std::optional<std::pair<Eid, wire::IpAddress>> parse_eid_mapping(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  auto eid = parse_ip(std::string_view(text).substr(0, equals));
  auto ip = parse_ip(std::string_view(text).substr(equals + 1));
  if (!eid || !ip) return std::nullopt;
  return std::pair{eid_of(*eid), *ip};
}

std::string to_text(const wire::IpAddress& ip) {
  char text[INET6_ADDRSTRLEN] = "";
  if (ip.is_v4()) {
    ::inet_ntop(AF_INET, ip.bytes.data() + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, ip.bytes.data(), text, sizeof text);
  }
  return text;
}

std::vector<LocalAddress> local_addresses() {
  std::vector<LocalAddress> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  ipc::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) continue;
    LocalAddress a;
    a.ip = from_sockaddr(i->ifa_addr);
    a.interface = i->ifa_name;
    a.up = (i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING);
    a.loopback = i->ifa_flags & IFF_LOOPBACK;
    a.link_local = is_link_local(a.ip);
    ifreq request{};
    std::strncpy(request.ifr_name, i->ifa_name, IFNAMSIZ - 1);
    if (fd && ::ioctl(fd.get(), SIOCGIFMTU, &request) == 0) a.interface_mtu = static_cast<uint32_t>(request.ifr_mtu);
    out.push_back(std::move(a));
  }
  ::freeifaddrs(list);
  return out;
}

wire::IpAddress default_address() {
  // Addresses for documentation: nothing more specific than the default route leads there.
  wire::IpAddress anywhere_v6;
  anywhere_v6.bytes[0] = 0x20;
  anywhere_v6.bytes[1] = 0x01;
  anywhere_v6.bytes[2] = 0x0d;
  anywhere_v6.bytes[3] = 0xb8;
  anywhere_v6.bytes[15] = 1;
  for (const wire::IpAddress& far : {wire::IpAddress::from_v4(0xc6336401), anywhere_v6}) {
    auto source = source_towards(far, nullptr);
    if (source && !is_unspecified(*source) && !is_link_local(*source) &&
        !(source->is_v4() && source->v4() >> 24 == 127))
      return *source;
  }
  for (const LocalAddress& a : local_addresses())
    if (a.up && !a.loopback && !a.link_local) return a.ip;
  return wire::IpAddress::from_v4(0x7f000001);
}

uint32_t payload_for_interface_mtu(uint32_t interface_mtu) {
  for (uint32_t payload : {8192U, 4096U, 2048U})
    if (payload + kLongestHeaders <= interface_mtu) return payload;
  static_assert(1024 + kLongestHeaders1024 <= 1500);
  return 1024;
}

bool EidTable::init(const EidOptions& options, std::string* error) {
  eids_.clear();
  local_ips_.clear();
  overrides_.clear();
  for (const std::string& entry : options.eid_map) {
    auto mapping = parse_eid_mapping(entry);
    if (!mapping) {
      *error = "device.eid_map: \"" + entry + "\" is not EID=IP with two addresses, as in \"fd00::7=10.0.0.7\"";
      return false;
    }
    const auto& [eid, ip] = *mapping;
    if (!usable(ip, entry, "device.eid_map", error)) return false;
    for (const Override& o : overrides_) {
      if (o.eid == eid) {
        *error = "device.eid_map: EID " + to_text(eid) + " is mapped twice; keep one entry";
        return false;
      }
    }
    overrides_.push_back({eid, ip});
  }
  if (options.eids.empty()) {
    std::vector<wire::IpAddress> ips = options.port_addresses;
    if (ips.empty()) ips.push_back(default_address());
    for (const wire::IpAddress& ip : ips) {
      eids_.push_back(eid_at(ip));
      local_ips_.push_back(ip);
    }
    return true;
  }
  auto locals = local_addresses();
  for (const std::string& text : options.eids) {
    auto parsed = parse_ip(text);
    if (!parsed) {
      *error = "device.eids: \"" + text + "\" is not an IPv4 or IPv6 address";
      return false;
    }
    Eid eid = eid_of(*parsed);
    wire::IpAddress ip = ip_of(eid);
    if (!usable(ip, text, "device.eids", error)) return false;
    if (is_local(eid)) {
      *error = "device.eids: \"" + text + "\" is listed twice; keep one entry";
      return false;
    }
    // The whole of 127/8 is local without being listed by the kernel.
    bool of_port =
        std::find(options.port_addresses.begin(), options.port_addresses.end(), ip) != options.port_addresses.end();
    bool here = of_port || (ip.is_v4() && ip.v4() >> 24 == 127) ||
                std::any_of(locals.begin(), locals.end(), [&](const LocalAddress& l) { return l.ip == ip; });
    if (!here) {
      *error = "device.eids: " + to_text(ip) + " is not an address of this host; see \"ip address\", or map the EID " +
               "to one with device.eid_map";
      return false;
    }
    eids_.push_back(eid);
    local_ips_.push_back(ip);
  }
  return true;
}

wire::IpAddress EidTable::ip_of(const Eid& eid) const {
  for (const Override& o : overrides_)
    if (o.eid == eid) return o.ip;
  return wire::IpAddress{eid.bytes};
}

Eid EidTable::eid_at(const wire::IpAddress& ip) const {
  for (const Override& o : overrides_)
    if (o.ip == ip) return o.eid;
  return eid_of(ip);
}

bool EidTable::is_local(const Eid& eid) const { return std::find(eids_.begin(), eids_.end(), eid) != eids_.end(); }

std::optional<size_t> EidTable::route_to(const Eid& target, std::string* error) const {
  for (size_t i = 0; i < eids_.size(); ++i)
    if (eids_[i] == target) return i;
  wire::IpAddress ip = ip_of(target);
  std::string why = "EID " + to_text(target);
  if (!usable(ip, to_text(ip), "EID", error)) return std::nullopt;
  if (auto source = source_towards(ip, nullptr))
    for (size_t i = 0; i < local_ips_.size(); ++i)
      if (local_ips_[i] == *source) return i;
  bool same_family = false;
  for (size_t i = 0; i < local_ips_.size(); ++i) {
    if (local_ips_[i].is_v4() != ip.is_v4()) continue;
    same_family = true;
    if (source_towards(ip, &local_ips_[i])) return i;
  }
  if (!same_family) {
    *error = why + ": this instance has no " + (ip.is_v4() ? "IPv4" : "IPv6") +
             " EID; add one to device.eids, or map the EID to an address with device.eid_map";
  } else {
    *error = why + ": no route to " + to_text(ip) + " from any of our EIDs; see \"ip route get " + to_text(ip) + "\"";
  }
  return std::nullopt;
}

}  // namespace ub
