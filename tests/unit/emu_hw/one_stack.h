// SPDX-License-Identifier: Apache-2.0
//
// One stack between two hosts, and operations of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "emu_hw/node/stack.h"
#include "tests/unit/emu_hw/two_hosts.h"

namespace ub::emu {

struct OneStack {
  OneStack(const char* name, const Parameters& p)
      : hosts(p), stack(make_stack(name, hosts.parameters, hosts.here, hosts.there)) {
    Node::settle({&hosts.here.node, &hosts.there.node});
    stack->open();
  }
  ~OneStack() { hosts.kernel.destroy_tasks(); }

  static Task complete(Kernel& kernel, Stack& stack, Operation& op) {
    kernel.begin_operation();
    Task task = stack.run(op);
    co_await task;
    EXPECT_EQ(op.ledger.end(), kernel.now());
    kernel.end_operation();
  }
  // How long an operation takes, in ns.
  uint64_t run(Verb verb, uint32_t bytes) {
    Operation op(++number, 1, verb, bytes, hosts.kernel.now());
    run({&op});
    ledger = op.ledger.text();
    return (op.ledger.end() - op.ledger.start()).ps / 1000;
  }
  // Issued at the same time, in that order.
  void run(const std::vector<Operation*>& operations) {
    for (Operation* op : operations) spawn(hosts.kernel, complete(hosts.kernel, *stack, *op));
    hosts.kernel.run();
    EXPECT_EQ(hosts.kernel.open_operations(), 0u);
  }
  uint64_t repeated() const { return hosts.here.node.repeated_frames() + hosts.there.node.repeated_frames(); }

  TwoHosts hosts;
  std::unique_ptr<Stack> stack;
  uint64_t number = 0;
  std::string ledger;
};

}  // namespace ub::emu
