// SPDX-License-Identifier: Apache-2.0
//
// Which fabrics are accepted, from files and from the command line, and what is said of others.
#include "tools/fabric/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "dataplane/eid.h"
#include "tests/unit/fabric/two_nics.h"

namespace ub::fabric {
namespace {

std::string complaint_about(std::vector<Draft::Nic> nics) {
  Draft draft;
  draft.nics = std::move(nics);
  return complaint([&] { finish(draft); });
}

class FabricFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "/softub-fabric-" + std::to_string(::getpid()) + "-" + test->name() + ".toml";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Draft load(const std::string& text) {
    std::ofstream(path_) << text;
    Draft draft;
    load_file(path_, &draft);
    return draft;
  }
  std::string refusal(const std::string& text) {
    return complaint([&] { load(text); });
  }

  std::string path_;
};

TEST_F(FabricFile, has_nics_and_links_in_the_order_of_its_lines) {
  const Config config = finish(load(R"(
seed = 7
paths = 2
spray = "packet"
control = "/tmp/x.sock"
[nics]
z = "udp"
a = "udp 127.1.0.1 127.2.0.1"
[links]
"z>a" = "delay=5us"
"*>*" = "loss=1%"
)"));
  ASSERT_EQ(config.nics.size(), 2u);
  EXPECT_EQ(config.nics[0].name, "z");
  EXPECT_EQ(to_text(config.nics[1].own), "127.1.0.1");
  EXPECT_EQ(to_text(config.nics[1].seen), "127.2.0.1");
  ASSERT_EQ(config.settings.size(), 2u);
  EXPECT_EQ(config.settings[0].links, "z>a");
  EXPECT_EQ(config.settings[1].text, "loss=1%");
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.paths, 2u);
  EXPECT_EQ(config.spray, Spray::kPacket);
  EXPECT_EQ(config.control, "/tmp/x.sock");
}

TEST_F(FabricFile, with_a_mistake_is_refused_with_its_place) {
  EXPECT_TRUE(has(refusal("seed = 1\nsede = 2\n"), {path_ + ":2:1:", "sede", "nics"}));
  EXPECT_TRUE(has(refusal("paths = 17\n"), {":1:", "1 to 16"}));
  EXPECT_TRUE(has(refusal("spray = \"both\"\n"), {"\"flow\" or \"packet\""}));
  EXPECT_TRUE(has(refusal("[nics]\na = 5\n"), {":2:", "expected a string"}));
  EXPECT_TRUE(has(refusal("nics = 3\n"), {"nics is a table"}));
  EXPECT_TRUE(has(refusal("[nics\n"), {path_ + ":1:"}));
}

TEST_F(FabricFile, that_is_not_there_is_named) {
  Draft draft;
  EXPECT_TRUE(has(complaint([&] { load_file("/nowhere/f.toml", &draft); }), {"/nowhere/f.toml"}));
}

TEST_F(FabricFile, that_is_a_directory_is_named_as_such) {
  Draft draft;
  EXPECT_EQ(complaint([&] { load_file("/tmp", &draft); }), "/tmp: is a directory, not a file");
}

TEST_F(FabricFile, with_a_long_mistake_shows_no_more_than_its_beginning) {
  EXPECT_LT(refusal(std::string(1 << 20, 'x') + " = 1\n").size(), 400u);
}

TEST(FabricConfig, a_seed_has_64_bits_and_no_sign) {
  EXPECT_EQ(parse_seed("0", "--seed"), 0u);
  EXPECT_EQ(parse_seed("18446744073709551615", "--seed"), UINT64_MAX);
  for (const char* text : {"-1", "+1", "18446744073709551616", "1.5", "0x1", "1 ", ""}) {
    EXPECT_TRUE(
        has(complaint([&] { parse_seed(text, "--seed"); }), {"--seed: seed", text, "0 to 18446744073709551615"}))
        << text;
  }
}

TEST(FabricConfig, gives_each_nic_two_addresses_of_its_own_if_it_names_none) {
  const Config config = over_udp({"a", "b", "c"});
  EXPECT_EQ(to_text(config.nics[2].own), "127.77.1.3");
  EXPECT_EQ(to_text(config.nics[2].seen), "127.77.2.3");
}

TEST(FabricConfig, joins_udp_or_what_a_switch_can_join_but_not_both) {
  EXPECT_TRUE(
      has(complaint_about({{"a", "udp", "--nic"}, {"b", "interface eth0", "--nic"}}), {"NIC \"b\"", "not both"}));
  EXPECT_TRUE(has(complaint_about({{"a", "memif", "--nic"}, {"b", "udp", "--nic"}}), {"NIC \"b\"", "not both"}));
  EXPECT_EQ(complaint_about({{"a", "interface eth1", "--nic"}, {"b", "interface eth0", "--nic"}}), "");
  EXPECT_EQ(complaint_about({{"a", "interface eth1", "--nic"}, {"b", "memif", "--nic"}}), "");
}

TEST(FabricConfig, a_memif_nic_has_a_socket_of_its_name_unless_it_names_another) {
  Draft draft;
  draft.nics = {{"a", "memif", ""}, {"b", "memif my/wire-2", ""}};
  const Config config = finish(draft);
  EXPECT_EQ(config.nics[0].place, "softub-fabric-a");
  EXPECT_EQ(config.nics[1].place, "my/wire-2");
}

TEST(FabricConfig, joins_no_more_memif_nics_than_dpdk_has_devices) {
  std::vector<Draft::Nic> nics;
  for (size_t i = 0; i <= kMostMemifNics; ++i) nics.push_back({"n" + std::to_string(i), "memif", ""});
  EXPECT_TRUE(has(complaint_about(nics), {"up to 32 NICs over memif, not 33"}));
  nics.back().text = "interface eth0";
  EXPECT_EQ(complaint_about(nics), "");
}

TEST(FabricConfig, refuses_what_cannot_be_told_apart) {
  EXPECT_TRUE(has(complaint_about({{"a", "udp", ""}, {"a", "udp", ""}}), {"the name a is given twice"}));
  EXPECT_TRUE(has(complaint_about({{"a", "udp 127.0.0.1 127.0.0.2", ""}, {"b", "udp 127.0.0.3 127.0.0.1", ""}}),
                  {"the address 127.0.0.1 is given twice"}));
  EXPECT_TRUE(
      has(complaint_about({{"a", "interface e", ""}, {"b", "interface e", ""}}), {"the interface e is given twice"}));
  EXPECT_TRUE(has(complaint_about({{"a", "memif s", ""}, {"b", "memif s", ""}}), {"the socket s is given twice"}));
}

TEST(FabricConfig, says_what_a_nic_may_be) {
  EXPECT_TRUE(has(complaint_about({{"a", "shm", "--nic"}}), {"--nic: NIC \"a\"", "interface NAME", "memif SOCKET"}));
  EXPECT_TRUE(has(complaint_about({{"a", "memif x y", "--nic"}}), {"--nic: NIC \"a\"", "memif SOCKET"}));
  EXPECT_TRUE(has(complaint_about({{"a", "memif x,id=7", "--nic"}}), {"the name of a socket", "letters"}));
  EXPECT_TRUE(has(complaint_about({{"a", "memif " + std::string(101, 'x'), "--nic"}}), {"up to 100"}));
  EXPECT_TRUE(has(complaint_about({{"a", "udp 1.2.3 4.5.6.7", ""}}), {"\"1.2.3\" is no IP address"}));
  EXPECT_TRUE(has(complaint_about({{"a", "udp 127.0.0.1 ::1", ""}}), {"the other IPv6"}));
  EXPECT_TRUE(has(complaint_about({{"a>b", "udp", ""}}), {"letters"}));
  EXPECT_TRUE(has(complaint_about({{"a", "udp", ""}}), {"2 to 64 NICs, not 1"}));
}

TEST(FabricConfig, environment_maps_every_other_nic_to_where_the_fabric_stands_for_it) {
  const Config config = over_udp({"a", "b", "c"});
  EXPECT_EQ(environment_of(config, 1),
            (std::vector<std::string>{"SOFTUB_PORT_KINDS=udp", "SOFTUB_DEVICE_EIDS=127.77.1.2",
                                      "SOFTUB_DEVICE_EID_MAP=127.77.1.1=127.77.2.1,127.77.1.3=127.77.2.3",
                                      "SOFTUB_DEVICE_ID_BLOCK=3"}));
}

TEST(FabricConfig, environment_of_a_memif_nic_has_its_socket_and_addresses_of_its_own) {
  Draft draft;
  draft.nics = {{"a", "memif", ""}, {"b", "memif wire", ""}, {"c", "interface eth0", ""}};
  const Config config = finish(draft);
  EXPECT_EQ(environment_of(config, 1),
            (std::vector<std::string>{
                "SOFTUB_PORT_KINDS=dpdk", "SOFTUB_PORT_MTU=4096",
                "SOFTUB_DPDK_SWITCHED=true",
                "SOFTUB_DPDK_DEVICE=net_memif0,role=client,socket=wire,bsize=8192,mac=02:00:0a:4d:01:02",
                "SOFTUB_DPDK_ADDRESSES=10.77.1.2/24"}));
  EXPECT_TRUE(has(complaint([&] { environment_of(config, 2); }), {"NIC \"c\" is behind an interface"}));
}

}  // namespace
}  // namespace ub::fabric
