// SPDX-License-Identifier: Apache-2.0
// An application that has started DPDK itself: the port uses what is there, and says so.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <unistd.h>

#include "dataplane/plugin_port.h"

extern "C" ub::PluginPort* softub_open_port(uint32_t version, const ub::PluginPortOptions&, std::string* error);

namespace ub {
namespace {

TEST(ForeignEal, is_used) {
  std::string prefix = "--file-prefix=softub-test-" + std::to_string(getpid());
  std::vector<std::string> arguments{"test", "--no-huge",      "-m",         "64", "--no-pci", "-l", "0",
                                     prefix, "--no-telemetry", "--no-shconf"};
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  ASSERT_GE(rte_eal_init(static_cast<int>(argv.size()), argv.data()), 0);

  std::string error, notice;
  PluginPortOptions options;
  options.device = "net_ring0";
  options.addresses = {{wire::IpAddress::from_v4(0x0a090001), 24}};
  options.notice = [&](const std::string& sentence) { notice = sentence; };
  {
    std::unique_ptr<PluginPort> port(softub_open_port(kPluginPortVersion, options, &error));
    ASSERT_NE(port, nullptr) << error;
    EXPECT_EQ(notice, "");
  }
  options.mtu = 8192;  // more buffers than its 64 MiB hold
  EXPECT_EQ(softub_open_port(kPluginPortVersion, options, &error), nullptr);
  EXPECT_NE(error.find("give DPDK more"), std::string::npos) << error;
  options.mtu = 0;
  options.arguments = {"-m", "512"};
  std::unique_ptr<PluginPort> port(softub_open_port(kPluginPortVersion, options, &error));
  ASSERT_NE(port, nullptr) << error;
  EXPECT_EQ(notice, "DPDK runs in this process already: dpdk.arguments has no effect");
}

}  // namespace
}  // namespace ub
