// SPDX-License-Identifier: Apache-2.0
// One operation between two hosts, charged step by step. The sums are those that the OpenURMA paper prints.
#include <gtest/gtest.h>

#include "emu_hw/node/urma_stack.h"

namespace ub::emu {
namespace {

struct TwoHosts {
  explicit TwoHosts(Fidelity f = kTwoNode) : here(kernel, parameters, f, 1), there(kernel, parameters, f, 2) {
    LinkConfig link;
    link.mtu = 4096;
    link.lossless = true;
    Node::join(here.node, there.node, link);
  }
  Kernel kernel;
  Parameters parameters;
  EmulatedHost here, there;
};

Task complete(Kernel& kernel, UrmaStack& stack, Operation& op) {
  kernel.begin_operation();
  Task task = stack.run(op);
  co_await task;
  kernel.end_operation();
}

TEST(TwoHosts, a_read_takes_757_ns) {
  TwoHosts hosts;
  UrmaStack stack(hosts.parameters, hosts.here, hosts.there);
  Node::settle({&hosts.here.node, &hosts.there.node});
  for (uint64_t number = 1; number <= 3; ++number) {
    Operation read(number, 1, Verb::kRead, 64, hosts.kernel.now());
    spawn(hosts.kernel, complete(hosts.kernel, stack, read));
    hosts.kernel.run();
    EXPECT_EQ((read.ledger.end() - read.ledger.start()).ps, 757'000u) << read.ledger.text();
    EXPECT_EQ(read.ledger.text(),
              "cpu.post_lib 50, cpu.build 30, bus 30, nic.pipe 80, link 101, nic.pipe 80, bus 30, dram 30, "
              "nic.pipe 80, link 101, nic.pipe 80, bus 30, cpu.poll 5, cpu.poll_lib 30");
  }
}

TEST(TwoHosts, a_write_takes_750_ns) {
  TwoHosts hosts;
  UrmaStack stack(hosts.parameters, hosts.here, hosts.there);
  Node::settle({&hosts.here.node, &hosts.there.node});
  Operation write(1, 1, Verb::kWrite, 64, hosts.kernel.now());
  spawn(hosts.kernel, complete(hosts.kernel, stack, write));
  hosts.kernel.run();
  EXPECT_EQ((write.ledger.end() - write.ledger.start()).ps, 750'000u) << write.ledger.text();
}

}  // namespace
}  // namespace ub::emu
