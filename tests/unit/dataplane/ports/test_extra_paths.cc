// SPDX-License-Identifier: Apache-2.0
//
// What transport.paths and transport.path_map make of a UDP port: sockets and pairs of addresses.
#include "dataplane/extra_paths.h"

#include <gtest/gtest.h>

#include <set>

#include "dataplane/eid.h"
#include "dataplane/path_mapping.h"

namespace ub {
namespace {

// ---- the text --------------------------------------------------------------------------------------------------

TEST(PathMapping, is_three_addresses_of_one_family) {
  EXPECT_EQ(parse_path_mapping("10.1.0.2=10.2.0.1>10.2.0.2"),
            (PathMapping{*parse_ip("10.1.0.2"), *parse_ip("10.2.0.1"), *parse_ip("10.2.0.2")}));
  EXPECT_EQ(parse_path_mapping("fd00::2=fd01::1>fd01::2"),
            (PathMapping{*parse_ip("fd00::2"), *parse_ip("fd01::1"), *parse_ip("fd01::2")}));
}

TEST(PathMapping, is_nothing_else) {
  for (const char* text : {"", "=>", "10.1.0.2", "10.1.0.2=10.2.0.1", "10.1.0.2>10.2.0.1=10.2.0.2",
                           "10.1.0.2=10.2.0.1>", "=10.2.0.1>10.2.0.2", "10.1.0.2=>10.2.0.2",
                           "10.1.0.2=10.2.0.1>10.2.0.2>10.2.0.3", "10.1.0.2=10.2.0.1=10.2.0.2>10.2.0.3",
                           "host=10.2.0.1>10.2.0.2", " 10.1.0.2=10.2.0.1>10.2.0.2"}) {
    EXPECT_EQ(parse_path_mapping(text), std::nullopt) << text;
  }
}

TEST(PathMapping, is_not_of_both_families) {
  for (const char* text : {"fd00::2=10.2.0.1>10.2.0.2", "10.1.0.2=fd01::1>10.2.0.2", "10.1.0.2=10.2.0.1>fd01::2"}) {
    EXPECT_EQ(parse_path_mapping(text), std::nullopt) << text;
  }
}

// ---- sockets ---------------------------------------------------------------------------------------------------

struct Opened {
  UdpPort udp;
  std::vector<ExtraPath> paths;
  std::string error;

  explicit Opened(std::vector<const char*> addresses = {"127.0.0.1"}) {
    UdpPortOptions o;
    for (const char* text : addresses) o.addresses.push_back(*parse_ip(text));
    o.wanted_port = 0;
    EXPECT_TRUE(udp.open(o, &error)) << error;
  }
  bool open(const TransportConfig& config) { return open_extra_paths(config, udp, &paths, &error); }
};

TEST(ExtraPaths, are_none_by_default) {
  Opened o;
  ASSERT_TRUE(o.open({}));
  EXPECT_TRUE(o.paths.empty());
}

TEST(ExtraPaths, are_source_ports_of_every_address) {
  Opened o({"127.0.0.1", "127.0.0.2"});
  TransportConfig config;
  config.paths = 3;
  ASSERT_TRUE(o.open(config)) << o.error;
  ASSERT_EQ(o.paths.size(), 4u);
  std::set<uint16_t> first, second;
  for (const ExtraPath& p : o.paths) {
    EXPECT_EQ(p.peer, IpAddress{}) << "for every peer";
    EXPECT_EQ(p.remote, IpAddress{});
    EXPECT_NE(p.local.port, o.udp.port());
    EXPECT_NE(p.local.port, 0);
    (p.local.ip == *parse_ip("127.0.0.1") ? first : second).insert(p.local.port);
  }
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(second.size(), 2u);
}

TEST(ExtraPaths, are_pairs_of_addresses_that_are_mapped) {
  Opened o({"127.0.0.1", "127.0.0.2"});
  TransportConfig config;
  config.path_map = {"127.0.0.9=127.0.0.2>127.0.0.10"};
  ASSERT_TRUE(o.open(config)) << o.error;
  ASSERT_EQ(o.paths.size(), 1u);
  EXPECT_EQ(o.paths[0].peer, *parse_ip("127.0.0.9"));
  EXPECT_EQ(o.paths[0].local, (Endpoint{*parse_ip("127.0.0.2"), o.udp.port()}));
  EXPECT_EQ(o.paths[0].remote, *parse_ip("127.0.0.10"));
}

TEST(ExtraPaths, need_a_socket_at_our_end) {
  Opened o;
  TransportConfig config;
  config.path_map = {"127.0.0.9=127.0.0.2>127.0.0.10"};
  EXPECT_FALSE(o.open(config));
  EXPECT_EQ(o.error,
            "transport.path_map: \"127.0.0.9=127.0.0.2>127.0.0.10\": no UDP socket is bound to 127.0.0.2; list it in "
            "port.udp_bind, beside the addresses of the EIDs");
}

TEST(ExtraPaths, say_what_is_no_mapping) {
  Opened o;
  TransportConfig config;
  config.path_map = {"127.0.0.9"};
  EXPECT_FALSE(o.open(config));
  EXPECT_EQ(o.error,
            "transport.path_map: \"127.0.0.9\" is not PEER=LOCAL>REMOTE with three addresses of one family, as in "
            "\"10.1.0.2=10.2.0.1>10.2.0.2\"");
}

}  // namespace
}  // namespace ub
