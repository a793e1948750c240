// SPDX-License-Identifier: Apache-2.0
// Links that lose frames: the Core repeats them, and the ledger says what the operation waited for.
#include <gtest/gtest.h>

#include <string>

#include "emu_hw/models/model.h"
#include "emu_hw/parts/frame_loss.h"
#include "tests/unit/emu_hw/one_stack.h"

namespace ub::emu {
namespace {

Parameters lossy(double rate) {
  Parameters p;
  p.loss = Loss::kLink;
  p.loss_rate = rate;
  return p;
}

// A seed with which the links lose these frames of the initiator, then of the target: "x." is the first of two.
uint64_t seed_that_loses(double rate, std::string_view here, std::string_view there) {
  const auto fits = [&](uint64_t seed, uint32_t node, std::string_view wanted) {
    FrameLoss loss(rate, seed, node);
    for (const char each : wanted)
      if (loss.draw() != (each == 'x')) return false;
    return true;
  };
  for (uint64_t seed = 1;; ++seed)
    if (fits(seed, 1, here) && fits(seed, 2, there)) return seed;
}

TEST(LossyLink, costs_nothing_if_it_loses_nothing) {
  OneStack urma("urma", lossy(0)), bf("roce", lossy(0));
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(urma.run(Verb::kRead, 64), 757u) << urma.ledger;
    EXPECT_EQ(urma.run(Verb::kWrite, 64), 750u) << urma.ledger;
    EXPECT_EQ(urma.run(Verb::kSend, 64), 804u) << urma.ledger;
    EXPECT_EQ(urma.run(Verb::kFetchAdd, 8), 750u) << urma.ledger;
    EXPECT_EQ(urma.run(Verb::kRead, 65536), 14776u) << urma.ledger;
    EXPECT_EQ(bf.run(Verb::kRead, 64), 1736u) << bf.ledger;
    EXPECT_EQ(bf.run(Verb::kWrite, 64), 1227u) << bf.ledger;
    EXPECT_EQ(bf.run(Verb::kSend, 64), 1281u) << bf.ledger;
  }
  EXPECT_EQ(urma.repeated() + bf.repeated(), 0u);
}

TEST(LossyLink, a_request_of_roce_goes_again_when_its_timer_fires) {
  Parameters p = lossy(0.3);
  p.seed = seed_that_loses(0.3, "x.....", "......");
  OneStack bf("roce", p);
  const uint64_t timer = 4096u << 14;
  EXPECT_EQ(bf.run(Verb::kRead, 64), 1736u + timer);
  EXPECT_EQ(bf.ledger,
            "cpu.post_lib 50, cpu.build 30, pcie.doorbell 150, order.gate 50, core 67108864, nic.pipe 31, link 101, "
            "nic.pipe 31, pcie.read 500, dram 30, nic.pipe 31, link 101, nic.pipe 31, pcie.land 250, "
            "pcie.completion 250, cpu.poll 70, cpu.poll_lib 30");
  EXPECT_EQ(bf.run(Verb::kRead, 64), 1736u) << bf.ledger;
  EXPECT_EQ(bf.repeated(), 1u);
  p.roce_timeout = 1;
  EXPECT_EQ(OneStack("roce", p).run(Verb::kRead, 64), 1736u + (4096u << 1));
}

TEST(LossyLink, a_ub_channel_waits_for_rto_min_if_it_knows_no_round_trip) {
  Parameters p = lossy(0.3);
  p.seed = seed_that_loses(0.3, "x........", ".........");
  p.rto_min = whole_nanoseconds(100'000);
  OneStack urma("urma", p);
  EXPECT_EQ(urma.run(Verb::kRead, 64), 757u + 100'000) << urma.ledger;
  EXPECT_EQ(urma.repeated(), 1u);
  p.rto_min = whole_nanoseconds(200'000);
  EXPECT_EQ(OneStack("urma", p).run(Verb::kRead, 64), 757u + 200'000);
}

// 15 of 16 frames come with the first train, the other one with a second train, which pays for itself alone.
TEST(LossyLink, an_answer_may_come_in_several_trains) {
  Parameters p = lossy(0.1);
  p.seed = seed_that_loses(0.1, "......", "...x................");
  OneStack urma("urma", p);
  const uint64_t ns = urma.run(Verb::kRead, 65536);
  EXPECT_EQ(urma.repeated(), 1u) << urma.ledger;
  EXPECT_NE(urma.ledger.find("nic.pipe 6038, link 1328, nic.pipe 6038, core "), std::string::npos) << urma.ledger;
  EXPECT_NE(urma.ledger.find(", nic.pipe 472, link 181, nic.pipe 472, bus 30"), std::string::npos) << urma.ledger;
  EXPECT_GT(ns, 14776u);
}

// The bytes of the target, and each message once.
TEST(LossyLink, all_verbs_end_whatever_is_lost) {
  for (const char* name : {"urma", "roce"}) {
    OneStack pair(name, lossy(0.2));
    for (int again = 0; again < 20; ++again) {
      for (const Verb verb : {Verb::kRead, Verb::kWrite, Verb::kSend, Verb::kFetchAdd, Verb::kCompareSwap})
        EXPECT_GT(pair.run(verb, verb == Verb::kFetchAdd || verb == Verb::kCompareSwap ? 8 : 16384), 0u);
    }
    EXPECT_GT(pair.repeated(), 20u) << name;
  }
}

TEST(LossyLink, runs_are_the_same_with_the_same_seed_alone) {
  const auto total = [](uint64_t seed) {
    Parameters p = lossy(0.05);
    p.seed = seed;
    p.operations = 300;
    const PointResult result = run_two_node({"urma", "bulk_read", p});
    EXPECT_EQ(result.invalid, "");
    return result.values.at("mean_ns");
  };
  EXPECT_EQ(total(1), total(1));
  EXPECT_NE(total(1), total(2));
}

TEST(LossyLink, loads_and_swap_devices_need_one_that_loses_nothing) {
  for (const char* stack : {"ldst", "swap"}) {
    try {
      run_two_node({stack, "bulk_read", lossy(0.1)});
      FAIL();
    } catch (const BadPoint& error) {
      EXPECT_EQ(error.what(), "loss = link: " + std::string(stack) +
                                  " does not repeat lost frames; choose urma or roce, or loss = rule");
    }
  }
}

}  // namespace
}  // namespace ub::emu
