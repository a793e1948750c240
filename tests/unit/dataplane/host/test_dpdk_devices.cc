// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk_devices.h"

#include <gtest/gtest.h>

#include "dataplane/eid.h"

namespace ub {
namespace {

DpdkConfig two_devices() {
  DpdkConfig c;
  c.device = "net_memif0,role=client; 0000:01:00.0";
  c.addresses = {"10.1.0.2/24", "10.2.0.2/24@0000:01:00.0", "fd00::2/64@net_memif0"};
  return c;
}

std::string error_of(const DpdkConfig& c) {
  std::string error;
  EXPECT_TRUE(dpdk_ports(c, &error).empty());
  return error;
}

TEST(DpdkDevices, names) {
  EXPECT_EQ(dpdk_device_name("net_memif0,role=client"), "net_memif0");
  EXPECT_EQ(dpdk_device_name("0000:01:00.0"), "0000:01:00.0");
  DpdkConfig c;
  EXPECT_TRUE(dpdk_devices(c).empty());
  c.device = " net_memif0,role=client ;;net_memif1,role=server; ";
  EXPECT_EQ(dpdk_devices(c), (std::vector<std::string>{"net_memif0,role=client", "net_memif1,role=server"}));
}

TEST(DpdkDevices, addresses_go_to_the_device_they_name) {
  std::string error;
  const auto ports = dpdk_ports(two_devices(), &error);
  ASSERT_EQ(ports.size(), 2u) << error;
  EXPECT_EQ(ports[0].device, "net_memif0,role=client");
  ASSERT_EQ(ports[0].addresses.size(), 2u);
  EXPECT_EQ(ports[0].addresses[0].address, *parse_ip("10.1.0.2"));
  EXPECT_EQ(ports[0].addresses[1].address, *parse_ip("fd00::2"));
  ASSERT_EQ(ports[1].addresses.size(), 1u);
  EXPECT_EQ(ports[1].addresses[0].address, *parse_ip("10.2.0.2"));
}

TEST(DpdkDevices, gateways_and_neighbours_go_where_their_network_is) {
  DpdkConfig c = two_devices();
  c.gateways = {"10.2.0.1", "fd00::1"};
  c.neighbours = {"10.2.0.9=02:00:00:00:00:09", "10.1.0.9=02:00:00:00:01:09"};
  c.vlan = 7;
  std::string error;
  const auto ports = dpdk_ports(c, &error);
  ASSERT_EQ(ports.size(), 2u) << error;
  EXPECT_EQ(ports[1].gateway_v4, *parse_ip("10.2.0.1"));
  EXPECT_EQ(ports[0].gateway_v4, wire::IpAddress{});
  EXPECT_EQ(ports[0].gateway_v6, *parse_ip("fd00::1"));
  ASSERT_EQ(ports[0].neighbours.size(), 1u);
  EXPECT_EQ(ports[0].neighbours[0].first, *parse_ip("10.1.0.9"));
  EXPECT_EQ(ports[1].neighbours.size(), 1u);
  EXPECT_EQ(ports[0].vlan, 7);
  EXPECT_EQ(ports[1].vlan, 7);
}

TEST(DpdkDevices, refused) {
  DpdkConfig c = two_devices();
  c.addresses = {"10.1.0.2/24"};
  EXPECT_NE(error_of(c).find("0000:01:00.0 has no address"), std::string::npos) << error_of(c);
  c.addresses = {"10.1.0.2/24@net_ring0", "10.2.0.2/24"};
  EXPECT_NE(error_of(c).find("no device of the name net_ring0"), std::string::npos) << error_of(c);
  c.addresses = {};
  EXPECT_NE(error_of(c).find("dpdk.device and dpdk.addresses"), std::string::npos);
  c = two_devices();
  c.device = " ; ";
  EXPECT_NE(error_of(c).find("dpdk.device and dpdk.addresses"), std::string::npos);
}

}  // namespace
}  // namespace ub
