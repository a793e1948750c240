// SPDX-License-Identifier: Apache-2.0
// One operation between two hosts, charged step by step. The sums are those that the OpenURMA paper prints.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "emu_hw/node/ldst_stack.h"
#include "emu_hw/node/roce_stack.h"
#include "emu_hw/node/urma_stack.h"
#include "tests/unit/emu_hw/two_hosts.h"

namespace ub::emu {
namespace {

template <class Stack>
Task complete(Kernel& kernel, Stack& stack, Operation& op) {
  kernel.begin_operation();
  Task task = stack.run(op);
  co_await task;
  EXPECT_EQ(op.ledger.end(), kernel.now());
  kernel.end_operation();
}

// RoCE that fetches each request.
Parameters fetched(Parameters p = {}) {
  p.inline_limit = 0;
  return p;
}

// How long an operation takes, in ns; and its ledger.
template <class Stack>
struct Timed {
  Timed(TwoHosts& both, Stack& its_stack) : hosts(both), stack(its_stack) {
    Node::settle({&hosts.here.node, &hosts.there.node});
  }
  uint64_t run(Verb verb, uint32_t bytes, uint64_t place = 0) {
    Operation op(++number, 1, verb, bytes, hosts.kernel.now());
    op.place = place;
    op.receiver = static_cast<uint32_t>(number % hosts.parameters.remote_jetties);
    op.is_strict = is_strict;
    spawn(hosts.kernel, complete(hosts.kernel, stack, op));
    hosts.kernel.run();
    EXPECT_EQ(hosts.kernel.open_operations(), 0u);
    ledger = op.ledger.text();
    return (op.ledger.end() - op.ledger.start()).ps / 1000;
  }
  TwoHosts& hosts;
  Stack& stack;
  uint64_t number = 0;
  bool is_strict = false;
  std::string ledger;
};

TEST(TwoHosts, ub_work_requests) {
  TwoHosts hosts;
  UrmaStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(timed.run(Verb::kRead, 64), 757u);
    EXPECT_EQ(timed.ledger,
              "cpu.post_lib 50, cpu.build 30, bus 30, nic.pipe 80, link 101, nic.pipe 80, bus 30, dram 30, "
              "nic.pipe 80, link 101, nic.pipe 80, bus 30, cpu.poll 5, cpu.poll_lib 30");
    EXPECT_EQ(timed.run(Verb::kWrite, 64), 750u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kSend, 64), 804u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kFetchAdd, 8), 750u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kCompareSwap, 8), 750u) << timed.ledger;
  }
  EXPECT_EQ(timed.run(Verb::kRead, 8), 750u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 256), 799u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 1024), 962u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 4096), 1621u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 16384), 4251u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 65536), 14776u) << timed.ledger;
}

TEST(TwoHosts, roce_by_dma) {
  TwoHosts hosts(fetched());
  RoceStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(timed.run(Verb::kRead, 64), 2236u);
    EXPECT_EQ(timed.ledger,
              "cpu.post_lib 50, cpu.build 30, pcie.doorbell 150, pcie.fetch 500, order.gate 50, nic.pipe 31, link 101, "
              "nic.pipe 31, pcie.read 500, dram 30, nic.pipe 31, link 101, nic.pipe 31, pcie.land 250, "
              "pcie.completion 250, cpu.poll 70, cpu.poll_lib 30");
    EXPECT_EQ(timed.run(Verb::kWrite, 64), 1727u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kSend, 64), 1781u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kFetchAdd, 8), 1977u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kCompareSwap, 8), 1977u) << timed.ledger;
  }
  EXPECT_EQ(timed.run(Verb::kRead, 8), 2227u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 65536), 16253u) << timed.ledger;
}

TEST(TwoHosts, roce_by_blue_flame) {
  TwoHosts hosts;
  RoceStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  EXPECT_EQ(timed.run(Verb::kRead, 64), 1736u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kWrite, 64), 1227u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kSend, 64), 1281u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kRead, 256), 2276u) << timed.ledger;
}

TEST(TwoHosts, loads) {
  TwoHosts hosts;
  LdstStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  stack.open();
  EXPECT_EQ(timed.run(Verb::kLoad, 64, 0u), 500u);
  EXPECT_EQ(timed.ledger,
            "cache.miss 70, bus 30, nic.pipe 27, link 101, nic.pipe 27, bus 30, dram 30, nic.pipe 27, link 101, "
            "nic.pipe 27, bus 30");
  EXPECT_EQ(timed.run(Verb::kLoad, 64, 0u), 1u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kLoad, 8, 128u), 493u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kLoad, 8, 136u), 1u) << timed.ledger;
  EXPECT_EQ(timed.run(Verb::kStore, 64, 192u), 493u) << timed.ledger;
  uint64_t place = 4096;
  const std::pair<uint32_t, uint64_t> expected[] = {
      {256, 542}, {1024, 707}, {4096, 1364}, {16384, 3996}, {65536, 14519}};
  for (const auto& [bytes, ns] : expected) {
    EXPECT_EQ(timed.run(Verb::kLoad, bytes, place), ns) << timed.ledger;
    place += bytes;
  }
}

TEST(TwoHosts, caches_by_policy) {
  const std::tuple<CachePolicy, uint64_t, uint64_t> expected[] = {
      {CachePolicy::kWriteBack, 1, 1}, {CachePolicy::kWriteThrough, 1, 435}, {CachePolicy::kUncached, 500, 493}};
  for (const auto& [policy, load_again, store_again] : expected) {
    Parameters p;
    p.cache_policy = policy;
    TwoHosts hosts(p);
    LdstStack stack(hosts.parameters, hosts.here, hosts.there);
    Timed timed(hosts, stack);
    stack.open();
    EXPECT_EQ(timed.run(Verb::kLoad, 64, 0u), 500u) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kLoad, 64, 0u), load_again) << timed.ledger;
    EXPECT_EQ(timed.run(Verb::kStore, 64, 0u), store_again) << timed.ledger;
    for (uint64_t line = 1; line <= 512; ++line) timed.run(Verb::kLoad, 64, line * 64);  // 0 leaves L1
    const uint64_t from_the_second = policy == CachePolicy::kUncached ? 500 : 4;
    EXPECT_EQ(timed.run(Verb::kLoad, 64, 0u), from_the_second) << timed.ledger;
  }
}

// The second cache sees nothing of hits in the first one, so what is used there all the time may leave it.
TEST(Cache, a_hit_refreshes_the_level_that_it_hit_alone) {
  Parameters p;
  p.l1_lines = p.l2_lines = 2;
  TwoHosts hosts(p);
  Cache cache(hosts.here.site);
  const auto takes = [&](uint64_t line) { return cache.ask(line * 64, Verb::kLoad).takes; };
  EXPECT_EQ(takes(0), p.local_dram);
  EXPECT_EQ(takes(1), p.local_dram);
  EXPECT_EQ(takes(0), p.l1);
  EXPECT_EQ(takes(2), p.local_dram);  // 1 leaves the first cache, 0 the second one
  EXPECT_EQ(takes(0), p.l1);
  EXPECT_EQ(takes(1), p.l2);
  EXPECT_EQ(takes(2), p.l2);
  EXPECT_EQ(takes(0), p.local_dram);
}

// ---- what does not fit, and what is shared ------------------------------------------------------------------------

uint64_t urma(const Parameters& p, Verb verb, bool is_strict = false) {
  TwoHosts hosts(p);
  UrmaStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  timed.is_strict = is_strict;
  timed.run(verb, 64);
  return timed.run(verb, 64);
}

uint64_t roce(const Parameters& p, Verb verb) {
  TwoHosts hosts(p);
  RoceStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  timed.run(verb, 64);
  return timed.run(verb, 64);
}

uint64_t load(const Parameters& p) {
  TwoHosts hosts(p);
  LdstStack stack(hosts.parameters, hosts.here, hosts.there);
  Timed timed(hosts, stack);
  stack.open();
  return timed.run(Verb::kLoad, 64);
}

TEST(TwoHosts, contexts_that_do_not_fit_are_fetched_at_both_ends) {
  for (const auto& [connections, roce_spills, ub_spills] :
       {std::tuple{22u, false, false}, {23u, true, false}, {1023u, true, false}, {1024u, true, true}}) {
    Parameters p;
    p.active_connections = connections;
    EXPECT_EQ(roce(fetched(p), Verb::kRead), roce_spills ? 3236u : 2236u) << connections;
    EXPECT_EQ(roce(p, Verb::kRead), roce_spills ? 2736u : 1736u) << connections;
    EXPECT_EQ(urma(p, Verb::kRead), ub_spills ? 957u : 757u) << connections;
    EXPECT_EQ(load(p), ub_spills ? 700u : 500u) << connections;
  }
}

// Of the lines of a ledger with that name, the hosts in their order.
std::vector<uint32_t> hosts_of(const char* stack_name, Verb verb, const Parameters& p, std::string_view part) {
  TwoHosts hosts(p);
  const auto stack = make_stack(stack_name, hosts.parameters, hosts.here, hosts.there);
  Node::settle({&hosts.here.node, &hosts.there.node});
  stack->open();
  Operation op(1, 1, verb, 64, hosts.kernel.now());
  spawn(hosts.kernel, complete(hosts.kernel, *stack, op));
  hosts.kernel.run();
  std::vector<uint32_t> numbers;
  for (const Ledger::Line& line : op.ledger.lines())
    if (line.name.part == part) numbers.push_back(line.name.host);
  return numbers;
}

TEST(TwoHosts, each_step_is_charged_where_it_is_made) {
  Parameters p;
  p.active_connections = 1024;
  using Hosts = std::vector<uint32_t>;
  for (const auto& [stack, verb] : {std::pair{"ldst", Verb::kLoad}, {"urma", Verb::kRead}, {"roce", Verb::kRead}}) {
    EXPECT_EQ(hosts_of(stack, verb, p, "contexts"), (Hosts{1, 2})) << stack;
    EXPECT_EQ(hosts_of(stack, verb, p, "nic.pipe"), (Hosts{1, 2, 2, 1})) << stack;
    EXPECT_EQ(hosts_of(stack, verb, p, "link"), (Hosts{1, 2})) << stack;
    EXPECT_EQ(hosts_of(stack, verb, p, "dram"), (Hosts{2})) << stack;
  }
  EXPECT_EQ(hosts_of("urma", Verb::kRead, p, "bus"), (Hosts{1, 2, 1}));
  EXPECT_EQ(hosts_of("ldst", Verb::kLoad, p, "bus"), (Hosts{1, 2, 1}));
  EXPECT_EQ(hosts_of("roce", Verb::kRead, p, "pcie.read"), (Hosts{2}));
}

TEST(TwoHosts, messages_to_many) {
  for (const auto& [receivers, roce_ns] : {std::pair{1u, 1781u}, {2u, 1981u}, {512u, 1981u}, {1024u, 2981u}}) {
    Parameters p;
    p.remote_jetties = receivers;
    EXPECT_EQ(urma(p, Verb::kSend), 804u) << receivers;
    EXPECT_EQ(roce(fetched(p), Verb::kSend), roce_ns) << receivers;
  }
}

TEST(TwoHosts, jettys_share_the_numbers_of_a_channel) {
  Parameters p;
  p.jetties_per_tp = 64;
  EXPECT_EQ(urma(p, Verb::kRead), 757u + 63 * 5);
  EXPECT_EQ(load(p), 500u + 63 * 5);
}

TEST(TwoHosts, strict_order_costs_what_asks_for_it) {
  EXPECT_EQ(urma({}, Verb::kWrite, true), 770u);
  Parameters without;
  without.roce_so_overhead = {};
  EXPECT_EQ(roce(fetched(without), Verb::kRead), 2186u);
}

TEST(TwoHosts, a_loss_costs_round_trips_by_rule) {
  Parameters p;
  p.loss_rate = 1;
  EXPECT_EQ(load(p), 500u + 301);
  EXPECT_EQ(urma(p, Verb::kRead), 757u + 512);
  EXPECT_EQ(roce(fetched(p), Verb::kRead), 2236u + 10016);
}

}  // namespace
}  // namespace ub::emu
