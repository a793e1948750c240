// SPDX-License-Identifier: Apache-2.0
// EIDs, IP addresses and MAC addresses. What needs an Ethernet interface skips itself without one.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "lib/transport/wire/network_header.h"
#include "lib/urma/device/interfaces.h"
#include "tests/unit/urma_api/fixture.h"

namespace ub::test {
namespace {

using urma::find_interface_address;
using urma::find_neighbour;

urma_net_addr_t v4(const char* text) {
  urma_net_addr_t out{};
  out.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &out.in4), 1);
  return out;
}
urma_net_addr_t v6(const char* text) {
  urma_net_addr_t out{};
  out.sin_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &out.in6), 1);
  return out;
}
urma_eid_t eid(const char* text) {
  urma_eid_t out{};
  EXPECT_EQ(urma_str_to_eid(text, &out), 0);
  return out;
}
Eid core_eid(const char* text) {
  Eid out;
  urma_eid_t from = eid(text);
  memcpy(out.bytes.data(), from.raw, sizeof from.raw);
  return out;
}
wire::IpAddress ip(const char* text) { return wire::IpAddress{core_eid(text).bytes}; }

bool same(const urma_eid_t& a, const urma_eid_t& b) { return memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

class Addresses : public UrmaTest {
 protected:
  void TearDown() override {
    UrmaTest::TearDown();
    settings = {};
  }
  // Starts the library again; our first EID is found at this address now.
  void restart_at(const char* address) {
    UrmaTest::TearDown();
    settings.eid_map = {{FakeBackend::eid(1), ip(address)}};
    UrmaTest::SetUp();
  }
  // An IPv4 address of an Ethernet interface of this host.
  static std::optional<std::string> ethernet_address() {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return std::nullopt;
    std::optional<std::string> found;
    for (const ifaddrs* at = list; at != nullptr && !found; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      char text[INET_ADDRSTRLEN];
      inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
      auto interface = find_interface_address(ip(text));
      if (interface && interface->mac) found = text;
    }
    freeifaddrs(list);
    return found;
  }
};

TEST_F(Addresses, an_eid_is_an_address) {
  urma_net_addr_t address = v4("10.0.0.7");
  urma_eid_t got{};
  EXPECT_EQ(urma_get_eid_by_ip(ctx, &address, &got), URMA_SUCCESS);
  EXPECT_TRUE(same(got, eid("10.0.0.7")));
  urma_net_addr_t back{};
  EXPECT_EQ(urma_get_ip_by_eid(ctx, &got, &back), URMA_SUCCESS);
  EXPECT_EQ(back.sin_family, AF_INET);
  EXPECT_EQ(back.in4.s_addr, address.in4.s_addr);
  EXPECT_EQ(back.prefix_len, 32u);

  address = v6("fd00::7");
  EXPECT_EQ(urma_get_eid_by_ip(ctx, &address, &got), URMA_SUCCESS);
  EXPECT_TRUE(same(got, eid("fd00::7")));
  EXPECT_EQ(urma_get_ip_by_eid(ctx, &got, &back), URMA_SUCCESS);
  EXPECT_EQ(back.sin_family, AF_INET6);
  EXPECT_EQ(memcmp(&back.in6, &address.in6, sizeof back.in6), 0);
  EXPECT_EQ(back.prefix_len, 128u);

  address = v6("::ffff:10.0.0.7");  // the same address in the other family
  EXPECT_EQ(urma_get_eid_by_ip(ctx, &address, &got), URMA_SUCCESS);
  EXPECT_TRUE(same(got, eid("10.0.0.7")));
}

TEST_F(Addresses, the_map_of_the_configuration_is_obeyed) {
  UrmaTest::TearDown();
  settings.eid_map = {{core_eid("fd00::7"), ip("10.0.0.7")}};
  UrmaTest::SetUp();
  urma_net_addr_t address = v4("10.0.0.7"), back{};
  urma_eid_t got{};
  EXPECT_EQ(urma_get_eid_by_ip(ctx, &address, &got), URMA_SUCCESS);
  EXPECT_TRUE(same(got, eid("fd00::7")));
  EXPECT_EQ(urma_get_ip_by_eid(ctx, &got, &back), URMA_SUCCESS);
  EXPECT_EQ(back.sin_family, AF_INET);
  EXPECT_EQ(back.in4.s_addr, address.in4.s_addr);
}

TEST_F(Addresses, bad_arguments) {
  urma_net_addr_t address = v4("10.0.0.7"), none = v4("0.0.0.0"), none6 = v6("::"), unix_address = address;
  unix_address.sin_family = AF_UNIX;
  urma_eid_t got = eid("10.0.0.7"), no_eid{};
  uint8_t mac[URMA_MAC_BYTES];
  EXPECT_EQ(urma_get_eid_by_ip(nullptr, &address, &got), URMA_EINVAL);
  EXPECT_EQ(urma_get_eid_by_ip(ctx, nullptr, &got), URMA_EINVAL);
  EXPECT_EQ(urma_get_eid_by_ip(ctx, &address, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_get_dmac(nullptr, &address, mac), URMA_EINVAL);
  EXPECT_EQ(urma_get_dmac(ctx, nullptr, mac), URMA_EINVAL);
  EXPECT_EQ(urma_get_dmac(ctx, &address, nullptr), URMA_EINVAL);
  for (const urma_net_addr_t* bad : {&none, &none6, &unix_address}) {
    EXPECT_EQ(urma_get_eid_by_ip(ctx, bad, &got), URMA_EINVAL);
    EXPECT_EQ(urma_get_dmac(ctx, bad, mac), URMA_EINVAL);
  }
  EXPECT_EQ(urma_get_ip_by_eid(nullptr, &got, &address), URMA_EINVAL);
  EXPECT_EQ(urma_get_ip_by_eid(ctx, nullptr, &address), URMA_EINVAL);
  EXPECT_EQ(urma_get_ip_by_eid(ctx, &got, nullptr), URMA_EINVAL);
  EXPECT_EQ(urma_get_ip_by_eid(ctx, &no_eid, &address), URMA_EINVAL);
  EXPECT_EQ(urma_get_smac(nullptr, mac), URMA_EINVAL);
  EXPECT_EQ(urma_get_smac(ctx, nullptr), URMA_EINVAL);
  uint32_t count = 1;
  EXPECT_EQ(urma_get_net_addr_list(nullptr, &count), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(urma_get_net_addr_list(ctx, nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  urma_free_net_addr_list(nullptr);
}

TEST_F(Addresses, the_list_has_one_entry_for_each_eid) {
  uint32_t count = 0;
  urma_net_addr_info_t* list = urma_get_net_addr_list(ctx, &count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 2u);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(list[i].index, i);
    EXPECT_EQ(list[i].netaddr.sin_family, AF_INET);
    EXPECT_EQ(ntohl(list[i].netaddr.in4.s_addr), 0x0a000001u + i);
  }
  urma_free_net_addr_list(list);
  urma_device_attr_t attr{};
  ASSERT_EQ(urma_query_device(device, &attr), URMA_SUCCESS);
  EXPECT_EQ(attr.dev_cap.max_netaddr_cnt, count);
}

TEST_F(Addresses, loopback_has_a_prefix_but_no_mac) {
  restart_at("127.0.0.1");
  uint32_t count = 0;
  urma_net_addr_info_t* list = urma_get_net_addr_list(ctx, &count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(ntohl(list[0].netaddr.in4.s_addr), 0x7f000001u);
  EXPECT_EQ(list[0].netaddr.prefix_len, 8u);
  urma_free_net_addr_list(list);
  uint8_t mac[URMA_MAC_BYTES];
  urma_net_addr_t address = v4("127.0.0.1");
  EXPECT_EQ(urma_get_smac(ctx, mac), URMA_ENOPERM);
  EXPECT_EQ(urma_get_dmac(ctx, &address, mac), URMA_ENOPERM);
}

TEST_F(Addresses, an_interface_gives_its_mac) {
  std::optional<std::string> own = ethernet_address();
  if (!own) GTEST_SKIP() << "no Ethernet interface with an IPv4 address";
  restart_at(own->c_str());
  uint8_t smac[URMA_MAC_BYTES]{}, dmac[URMA_MAC_BYTES]{}, zero[URMA_MAC_BYTES]{};
  EXPECT_EQ(urma_get_smac(ctx, smac), URMA_SUCCESS);
  EXPECT_NE(memcmp(smac, zero, sizeof smac), 0);
  urma_net_addr_t address = v4(own->c_str());
  EXPECT_EQ(urma_get_dmac(ctx, &address, dmac), URMA_SUCCESS);
  EXPECT_EQ(memcmp(smac, dmac, sizeof smac), 0);
  uint32_t count = 0;
  urma_net_addr_info_t* list = urma_get_net_addr_list(ctx, &count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(memcmp(list[0].netaddr.mac, smac, sizeof smac), 0);
  urma_free_net_addr_list(list);
}

TEST_F(Addresses, unknown_peers_have_no_mac) {
  uint8_t mac[URMA_MAC_BYTES];
  urma_net_addr_t nobody = v4("0.0.0.1"), nobody6 = v6("2001:db8::1");  // never anybody's
  EXPECT_EQ(urma_get_dmac(ctx, &nobody, mac), URMA_FAIL);
  EXPECT_EQ(urma_get_dmac(ctx, &nobody6, mac), URMA_ENOPERM);
}

TEST_F(Addresses, neighbours_are_read_from_the_table) {
  char path[] = "/tmp/neighbours-XXXXXX";
  int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  FILE* table = fdopen(fd, "w");
  fputs("IP address       HW type     Flags       HW address            Mask     Device\n", table);
  fputs("10.0.0.1         0x1         0x2         02:00:00:00:00:01     *        eth0\n", table);
  fputs("10.0.0.2         0x1         0x0         00:00:00:00:00:00     *        eth0\n", table);
  fputs("10.0.0.3         0x17        0x2         02:00:00:00:00:03     *        tunl0\n", table);
  fputs("10.0.0.4 nonsense\n", table);
  fputs("10.0.0.10        0x1         0x6         02:00:00:00:00:0a     *        eth0\n", table);
  fclose(table);
  EXPECT_EQ(find_neighbour(ip("10.0.0.1"), path), (wire::MacAddress{2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(find_neighbour(ip("10.0.0.10"), path), (wire::MacAddress{2, 0, 0, 0, 0, 10}));
  EXPECT_EQ(find_neighbour(ip("10.0.0.2"), path), std::nullopt);  // being asked for
  EXPECT_EQ(find_neighbour(ip("10.0.0.3"), path), std::nullopt);  // not Ethernet
  EXPECT_EQ(find_neighbour(ip("10.0.0.4"), path), std::nullopt);
  EXPECT_EQ(find_neighbour(ip("10.0.0.5"), path), std::nullopt);
  unlink(path);
  EXPECT_EQ(find_neighbour(ip("10.0.0.1"), path), std::nullopt);
}

}  // namespace
}  // namespace ub::test
