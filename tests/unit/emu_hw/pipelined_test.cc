// SPDX-License-Identifier: Apache-2.0
// A NIC that works on several operations at a time: what waits then, waits because the Core says so.
#include <gtest/gtest.h>

#include <string>

#include "emu_hw/models/model.h"
#include "tests/unit/emu_hw/one_stack.h"

namespace ub::emu {
namespace {

Parameters pipelined() {
  Parameters p;
  p.engine = Engine::kPipelined;
  return p;
}

TEST(Pipelined, one_operation_takes_as_long_as_in_a_serial_engine) {
  OneStack urma("urma", pipelined()), bf("roce", pipelined());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(urma.run(Verb::kRead, 64), 757u) << urma.ledger;
    EXPECT_EQ(urma.run(Verb::kSend, 64), 804u) << urma.ledger;
    EXPECT_EQ(bf.run(Verb::kRead, 64), 1736u) << bf.ledger;
    EXPECT_EQ(bf.run(Verb::kWrite, 64), 1227u) << bf.ledger;
  }
}

double rate(const char* stack, const char* workload, const Parameters& p) {
  const PointResult result = run_two_node({stack, workload, p});
  EXPECT_EQ(result.invalid, "");
  return result.values.at("mops");
}

TEST(Pipelined, loads_follow_each_other_from_the_caches_to_the_wire) {
  OneStack ldst("ldst", pipelined());
  EXPECT_EQ(ldst.run(Verb::kLoad, 64), 500u) << ldst.ledger;
  Parameters p = pipelined();
  for (const auto& [in_flight, ns] : {std::pair{1u, 501.0}, {4u, 500.0 / 4}, {16u, 100.0}, {64u, 100.0}}) {
    p.in_flight = in_flight;
    EXPECT_NEAR(rate("ldst", "pointer_chase", p), 1000 / ns, 0.02 * 1000 / ns) << in_flight;
  }
}

TEST(Pipelined, requests_enter_the_nic_at_its_pace) {
  Parameters p = pipelined();
  p.in_flight = 64;
  p.nic_initiation = 100;
  EXPECT_NEAR(rate("urma", "bulk_read", p), 1000 / 310.6, 1e-2);
  EXPECT_NEAR(rate("ldst", "bulk_read", p), 1000 / 310.6, 1e-2);
  EXPECT_NEAR(rate("roce", "bulk_write", p), 1000 / 310.6, 1e-2);
}

TEST(Pipelined, a_channel_of_memory_carries_one_operation_after_the_other) {
  Parameters p = pipelined();
  p.in_flight = 32;
  p.payload = 8192;
  p.memory_bw = 80;
  EXPECT_NEAR(rate("urma", "bulk_read", p), 1000 / 819.2, 1e-2);
  EXPECT_NEAR(rate("roce", "bulk_write", p), 1000 / 819.2, 1e-2);
  OneStack alone("urma", p);
  EXPECT_EQ(alone.run(Verb::kRead, 64), 757u + 6) << alone.ledger;
}

// The ledgers of two reads that are issued together.
std::pair<std::string, std::string> ledgers(bool first_is_strict, bool second_is_strict) {
  OneStack urma("urma", pipelined());
  Operation first(1, 1, Verb::kRead, 64, {}), second(2, 1, Verb::kRead, 64, {});
  first.is_strict = first_is_strict;
  second.is_strict = second_is_strict;
  urma.run({&first, &second});
  return {first.ledger.text(), second.ledger.text()};
}

const std::string kWay =
    "nic.pipe 80, link 101, nic.pipe 80, bus 30, dram 30, nic.pipe 80, link 101, nic.pipe 80, bus 30, cpu.poll 5, "
    "cpu.poll_lib 30";

TEST(Pipelined, a_read_waits_for_the_processor_alone) {
  const auto [first, second] = ledgers(false, false);
  EXPECT_EQ(first, "cpu.post_lib 50, cpu.build 30, bus 30, " + kWay);
  EXPECT_EQ(second, "nic.queue 110, cpu.post_lib 50, cpu.build 30, bus 30, " + kWay);
}

// The first answer comes 582 ns after the first request left, and the second request was posted 130 ns after that.
TEST(Pipelined, a_strict_read_waits_in_the_core_until_the_one_before_it_is_answered) {
  const auto [first, second] = ledgers(true, true);
  EXPECT_EQ(first, "cpu.post_lib 50, cpu.build 30, bus 30, order.gate 20, " + kWay);
  EXPECT_EQ(second, "nic.queue 130, cpu.post_lib 50, cpu.build 30, bus 30, order.gate 20, core 452, " + kWay);
}

TEST(Pipelined, a_read_without_order_passes_a_strict_one) {
  EXPECT_EQ(ledgers(true, false).second, "nic.queue 130, cpu.post_lib 50, cpu.build 30, bus 30, " + kWay);
  EXPECT_EQ(ledgers(false, true).second,
            "nic.queue 110, cpu.post_lib 50, cpu.build 30, bus 30, order.gate 20, " + kWay);
}

TEST(Pipelined, the_core_lets_one_strict_read_leave_for_each_round_trip) {
  Parameters p = pipelined();
  p.in_flight = 8;
  EXPECT_NEAR(rate("urma", "mixed_order", p), 1000.0 / 110, 1e-9);
  p.strict = 100;
  EXPECT_NEAR(rate("urma", "mixed_order", p), 1000.0 / 582, 1e-9);
}

std::string refusal(const char* stack, const Parameters& p) {
  try {
    run_two_node({stack, "bulk_read", p});
  } catch (const BadPoint& error) {
    return error.what();
  }
  return "none";
}

TEST(Pipelined, is_refused_where_it_means_nothing) {
  Parameters p = pipelined();
  EXPECT_EQ(refusal("swap", p), "engine = pipelined: is of ldst, urma and roce, not of swap");
  p.in_flight = 65;
  EXPECT_EQ(refusal("urma", p), "engine = pipelined: a queue takes 64 requests; give in_flight up to that");
}

}  // namespace
}  // namespace ub::emu
