// SPDX-License-Identifier: Apache-2.0
// EIDs and network addresses. URMA API 0.9, 5.11. An EID is an IP address, but for those that device.eid_map gives
// another one.
#include <cstdlib>
#include <cstring>

#include "lib/urma/device/eid.h"
#include "lib/urma/device/interfaces.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

constexpr char kNeighbourTable[] = "/proc/net/arp";

IpAddress ip_of(const Eid& eid) {
  for (const EidMapping& mapping : Library::get().eid_map()) {
    if (mapping.eid == eid) return mapping.ip;
  }
  return IpAddress{eid.bytes};
}

Eid eid_at(const IpAddress& ip) {
  for (const EidMapping& mapping : Library::get().eid_map()) {
    if (mapping.ip == ip) return mapping.eid;
  }
  Eid eid;
  eid.bytes = ip.bytes;
  return eid;
}

// False: no IP address, or the one that means none.
bool read(const urma_net_addr_t& from, IpAddress* ip) {
  switch (from.sin_family) {
    case AF_INET:
      *ip = IpAddress::from_v4(ntohl(from.in4.s_addr));
      return from.in4.s_addr != 0;
    case AF_INET6:
      memcpy(ip->bytes.data(), &from.in6, sizeof from.in6);
      return *ip != IpAddress{};
    default:
      return false;
  }
}

urma_net_addr_t write(const IpAddress& ip) {
  urma_net_addr_t out{};
  if (ip.is_v4()) {
    out.sin_family = AF_INET;
    out.in4.s_addr = htonl(ip.v4());
    out.prefix_len = 32;
  } else {
    out.sin_family = AF_INET6;
    memcpy(&out.in6, ip.bytes.data(), sizeof out.in6);
    out.prefix_len = 128;
  }
  return out;
}

// With what the interface knows that has the address, if there is one.
urma_net_addr_t describe(const IpAddress& ip) {
  urma_net_addr_t out = write(ip);
  if (auto found = find_interface_address(ip)) {
    out.prefix_len = found->prefix_len;
    if (found->mac) memcpy(out.mac, found->mac->data(), sizeof out.mac);
  }
  return out;
}

urma_status_t give(const MacAddress& from, uint8_t* mac) {
  memcpy(mac, from.data(), from.size());
  return URMA_SUCCESS;
}

}  // namespace

urma_net_addr_info_t* urma_get_net_addr_list(urma_context_t* ctx, uint32_t* cnt) {
  if (live<Context>(ctx) == nullptr || cnt == nullptr) return fail(EINVAL);
  *cnt = 0;
  const auto& eids = Library::get().eids();
  if (eids.empty()) return fail(EIO);
  auto* list = static_cast<urma_net_addr_info_t*>(calloc(eids.size(), sizeof(urma_net_addr_info_t)));
  if (list == nullptr) return fail(ENOMEM);
  for (uint32_t i = 0; i < eids.size(); ++i) list[i] = {describe(ip_of(eids[i])), i};
  *cnt = static_cast<uint32_t>(eids.size());
  return list;
}

void urma_free_net_addr_list(urma_net_addr_info_t* net_addr_list) { free(net_addr_list); }

urma_status_t urma_get_eid_by_ip(const urma_context_t* ctx, const urma_net_addr_t* net_addr, urma_eid_t* eid) {
  IpAddress ip;
  if (live<Context>(ctx) == nullptr || net_addr == nullptr || eid == nullptr || !read(*net_addr, &ip)) {
    return URMA_EINVAL;
  }
  *eid = eid_of(eid_at(ip));
  return URMA_SUCCESS;
}

urma_status_t urma_get_ip_by_eid(const urma_context_t* ctx, const urma_eid_t* eid, urma_net_addr_t* net_addr) {
  if (live<Context>(ctx) == nullptr || eid == nullptr || net_addr == nullptr) return URMA_EINVAL;
  if (eid_of(*eid) == Eid{}) return URMA_EINVAL;
  *net_addr = write(ip_of(eid_of(*eid)));
  return URMA_SUCCESS;
}

urma_status_t urma_get_smac(const urma_context_t* ctx, uint8_t* mac) {
  if (live<Context>(ctx) == nullptr || mac == nullptr) return URMA_EINVAL;
  auto found = find_interface_address(ip_of(eid_of(ctx->eid)));
  if (found && found->mac) return give(*found->mac, mac);
  URMA_LOG_ERROR("no MAC address: EID " EID_FMT " is not on an Ethernet interface of the kernel", EID_ARGS(ctx->eid));
  return URMA_ENOPERM;
}

// An address of this host is reached without a neighbour: frames would go to the interface that has it.
urma_status_t urma_get_dmac(const urma_context_t* ctx, const urma_net_addr_t* net_addr, uint8_t* mac) {
  IpAddress ip;
  if (live<Context>(ctx) == nullptr || net_addr == nullptr || mac == nullptr || !read(*net_addr, &ip)) {
    return URMA_EINVAL;
  }
  const urma_eid_t shown = eid_of(Eid{ip.bytes});
  if (auto own = find_interface_address(ip)) {
    if (own->mac) return give(*own->mac, mac);
    URMA_LOG_ERROR("no MAC address: " EID_FMT " is not on an Ethernet interface", EID_ARGS(shown));
    return URMA_ENOPERM;
  }
  if (!ip.is_v4()) {
    URMA_LOG_ERROR("no MAC address of " EID_FMT ": IPv6 neighbours are not looked up", EID_ARGS(shown));
    return URMA_ENOPERM;
  }
  if (auto neighbour = find_neighbour(ip, kNeighbourTable)) return give(*neighbour, mac);
  URMA_LOG_ERROR("no MAC address of " EID_FMT ": it is not in %s; has this host talked to it?", EID_ARGS(shown),
                 kNeighbourTable);
  return URMA_FAIL;
}
