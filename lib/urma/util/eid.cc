// SPDX-License-Identifier: Apache-2.0
//
// EIDs from numbers and text.
//
// Idea: an EID is 16 bytes in network order; an IPv4 address occupies the last four behind 00 00 ff ff, so a
// v4-mapped EID and the IPv6 text ::ffff:a.b.c.d are the same bytes.
#include <arpa/inet.h>
#include <endian.h>

#include <cerrno>
#include <cstring>

#include "ub_util.h"
#include "urma_types.h"

namespace {

constexpr size_t kShortestText = 3;  // "::1"

void set_mapped(uint32_t addr_be, urma_eid_t* eid) {
  eid->in4.reserved = 0;
  eid->in4.prefix = htobe32(URMA_IPV4_MAP_IPV6_PREFIX);
  eid->in4.addr = addr_be;
}

}  // namespace

extern "C" void urma_u32_to_eid(uint32_t ipv4, urma_eid_t* eid) {
  if (eid == nullptr) return;
  set_mapped(htobe32(ipv4), eid);
}

extern "C" int urma_str_to_eid(const char* buf, urma_eid_t* eid) {
  if (buf == nullptr || eid == nullptr || strnlen(buf, kShortestText) < kShortestText) return -EINVAL;

  in6_addr v6;
  if (inet_pton(AF_INET6, buf, &v6) == 1) {
    static_assert(sizeof(v6) == sizeof(eid->raw));
    memcpy(eid->raw, &v6, sizeof(v6));
    return 0;
  }
  in_addr v4;
  if (inet_pton(AF_INET, buf, &v4) == 1) {
    set_mapped(v4.s_addr, eid);
    return 0;
  }
  uint32_t number;
  if (ub_str_to_u32(buf, &number) != 0) return -EINVAL;
  urma_u32_to_eid(number, eid);
  return 0;
}
