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
            "transport.path_map: \"127.0.0.9\" is not PEER=LOCAL>REMOTE with the addresses of three hosts, of one "
            "family, as in \"10.1.0.2=10.2.0.1>10.2.0.2\"");
}

TEST(ExtraPaths, no_mapping_has_an_address_that_no_host_has) {
  for (const char* mapping :
       {"0.0.0.0=127.0.0.1>127.0.0.10", "127.0.0.9=127.0.0.1>224.0.0.1", "127.0.0.9=127.0.0.1>255.255.255.255",
        "127.0.0.9=0.0.0.0>127.0.0.10", "::=fd00::1>fd00::2", "fd00::9=fd00::1>::", "fd00::9=fd00::1>ff02::1"}) {
    Opened o;
    TransportConfig config;
    config.path_map = {mapping};
    EXPECT_FALSE(o.open(config)) << mapping;
    EXPECT_NE(o.error.find("is not PEER=LOCAL>REMOTE"), std::string::npos) << o.error;
  }
}

// A channel of that peer has the first path, the ports and the mapped ones.
TEST(ExtraPaths, are_no_more_than_a_channel_may_have) {
  TransportConfig config;
  config.path_map = {"127.0.0.9=127.0.0.1>127.0.0.10", "127.0.0.9=127.0.0.1>127.0.0.11",
                     "127.0.0.8=127.0.0.1>127.0.0.12"};
  config.paths = 6;
  config.most_paths = 8;
  Opened fits;
  EXPECT_TRUE(fits.open(config)) << fits.error;
  EXPECT_EQ(fits.paths.size(), 8u);
  EXPECT_EQ(fits.paths[0].peer, *parse_ip("127.0.0.9")) << "mapped ones first";
  config.paths = 7;
  Opened too_many;
  EXPECT_FALSE(too_many.open(config));
  EXPECT_EQ(too_many.error,
            "transport.paths = 7 and transport.path_map with 2 entries of one peer are 9 paths of a channel, which may "
            "have transport.most_paths = 8; raise that, or ask for fewer");
  config.paths = config.most_paths = 1;
  Opened none;
  EXPECT_FALSE(none.open(config)) << "a mapping that nobody could use";
}

TEST(ExtraPaths, are_no_more_than_a_core_has_room_for) {
  TransportConfig config;
  config.paths = config.most_paths = 64;
  Opened o({"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"});
  EXPECT_FALSE(o.open(config));
  EXPECT_NE(o.error.find("are 315 paths beside the usual ones"), std::string::npos) << o.error;
  EXPECT_NE(o.error.find("a NIC has room for 256"), std::string::npos) << o.error;
}

}  // namespace
}  // namespace ub
