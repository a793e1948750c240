// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/eid.h"

namespace ub {
namespace {

Eid eid(const char* text) { return eid_of(*parse_ip(text)); }

TEST(Eid, parse_and_print) {
  EXPECT_EQ(to_text(*parse_ip("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_text(*parse_ip("::ffff:10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_text(*parse_ip("fd00::7")), "fd00::7");
  for (const char* bad : {"", "10.1.2", "10.1.2.3 ", "fe80::1%eth0", "host", "[::1]"})
    EXPECT_FALSE(parse_ip(bad)) << bad;
}

TEST(Eid, payload_for_interface_mtu) {
  EXPECT_EQ(payload_for_interface_mtu(1280), 1024u);
  EXPECT_EQ(payload_for_interface_mtu(1500), 1024u);
  EXPECT_EQ(payload_for_interface_mtu(2210), 1024u);
  EXPECT_EQ(payload_for_interface_mtu(2211), 2048u);
  EXPECT_EQ(payload_for_interface_mtu(4500), 4096u);
  EXPECT_EQ(payload_for_interface_mtu(8300), 4096u);
  EXPECT_EQ(payload_for_interface_mtu(9000), 8192u);
  EXPECT_EQ(payload_for_interface_mtu(65536), 8192u);
}

TEST(Eid, default_is_an_address_of_this_host) {
  std::string error;
  EidTable t;
  ASSERT_TRUE(t.init({}, &error)) << error;
  ASSERT_EQ(t.eids().size(), 1u);
  bool found = to_text(t.eids()[0]) == "127.0.0.1";
  for (const LocalAddress& a : local_addresses()) found |= a.ip == t.local_ip(0);
  EXPECT_TRUE(found) << to_text(t.eids()[0]);
}

TEST(Eid, init__names_the_mistake) {
  struct {
    EidOptions options;
    const char* says;
  } cases[] = {
      {{{"10.0.0"}, {}}, "not an IPv4 or IPv6"},   {{{"0.0.0.0"}, {}}, "unspecified"},
      {{{"224.0.0.1"}, {}}, "multicast"},          {{{"fe80::1"}, {}}, "link-local"},
      {{{"192.0.2.77"}, {}}, "not an address of"}, {{{"127.0.0.1", "127.0.0.1"}, {}}, "twice"},
      {{{}, {"fd00::7"}}, "not EID=IP"},           {{{}, {"fd00::7=127.0.0.1", "fd00::7=127.0.0.2"}}, "mapped twice"},
  };
  for (auto& c : cases) {
    EidTable t;
    std::string error;
    EXPECT_FALSE(t.init(c.options, &error));
    EXPECT_NE(error.find(c.says), std::string::npos) << error;
  }
}

TEST(Eid, override_and_route) {
  EidTable t;
  std::string error;
  ASSERT_TRUE(t.init({{"fd00::7", "127.0.0.3"}, {"fd00::7=127.0.0.2", "fd00::9=127.0.0.9"}}, &error)) << error;
  EXPECT_EQ(to_text(t.local_ip(0)), "127.0.0.2");
  EXPECT_EQ(to_text(t.ip_of(eid("fd00::9"))), "127.0.0.9");
  EXPECT_EQ(to_text(t.eid_at(*parse_ip("127.0.0.9"))), "fd00::9");
  EXPECT_TRUE(t.is_local(eid("fd00::7")));
  EXPECT_EQ(t.route_to(eid("127.0.0.3"), &error), 1u);
  EXPECT_EQ(t.route_to(eid("fd00::9"), &error), 0u);
  EXPECT_EQ(t.route_to(eid("fd00::7"), &error), 0u);
  EXPECT_FALSE(t.route_to(eid("::2"), &error));
  EXPECT_NE(error.find("no IPv6 EID"), std::string::npos) << error;
}

}  // namespace
}  // namespace ub
