// SPDX-License-Identifier: Apache-2.0
// Queue pairs whose packets pass a transmitter that marks them: the Core slows down, by the constants that it is given.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "emu_hw/models/model.h"
#include "emu_hw/node/core_config.h"

namespace ub::emu {
namespace {

// Two flows of which each could fill the transmitter.
Parameters flows(CongestionControl control) {
  Parameters p;
  p.roce_congestion = control;
  p.remote_jetties = 2;
  p.in_flight = 8;
  p.payload = 65536;
  p.link_bw = 100;
  p.switch_mark_above = 100'000;
  p.switch_mark_all_from = 200'000;
  p.switch_mark_most = 0.1;
  p.bottleneck_time = whole_nanoseconds(5'000'000);
  return p;
}

PointResult run(const Parameters& p) {
  PointResult result = run_bottleneck({"roce", "", p});
  EXPECT_EQ(result.invalid, "");
  return result;
}

TEST(Bottleneck, is_full_if_nobody_slows_down) {
  const PointResult result = run(flows(CongestionControl::kNone));
  EXPECT_NEAR(result.values.at("utilization_percent"), 100, 0.5);
  EXPECT_EQ(result.values.at("marked_percent"), 0);
  EXPECT_GT(result.values.at("queue_bytes"), 500'000);
  ASSERT_EQ(result.curves.size(), 1u);
  EXPECT_EQ(result.curves[0].points.size(), 50u);
}

TEST(Bottleneck, keeps_its_queue_short_if_they_do) {
  const PointResult result = run(flows(CongestionControl::kDcqcn));
  EXPECT_LT(result.values.at("utilization_percent"), 99);
  EXPECT_GT(result.values.at("utilization_percent"), 30);
  EXPECT_GT(result.values.at("marked_percent"), 0);
  EXPECT_LT(result.values.at("queue_bytes"), 500'000);
}

TEST(Bottleneck, is_full_if_nothing_is_marked) {
  Parameters p = flows(CongestionControl::kDcqcn);
  p.switch_mark_all_from = 0;
  EXPECT_NEAR(run(p).values.at("utilization_percent"), 100, 0.5);
}

// In the closed loop of the reference a flow must drop below 100 Gb/s, with g = 1/16 and timers of 55 us.
TEST(Bottleneck, a_marked_flow_falls_below_the_rate_of_the_line) {
  Parameters p = flows(CongestionControl::kDcqcn);
  p.remote_jetties = 1;
  p.dcqcn_gain_shift = 4;
  const PointResult result = run(p);
  const auto& points = result.curves[0].points;
  const auto least = std::min_element(points.begin() + 1, points.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_LT(least->second, 60);
}

TEST(Bottleneck, constants_of_a_core_are_those_of_the_parameters) {
  Parameters p;
  p.dcqcn_gain_shift = 3;
  p.dcqcn_fast_steps = 4;
  p.dcqcn_step_bytes = 5;
  p.dcqcn_step = whole_nanoseconds(6);
  p.dcqcn_least = 7;
  p.dcqcn_add = 8;
  p.dcqcn_add_much = 9;
  p.dcqcn_pause = whole_nanoseconds(10);
  p.loss_window_initial = 11;
  p.loss_window_least = 12;
  const cc::Constants constants = core_config(p, 1).congestion;
  EXPECT_EQ(constants.dcqcn.gain_shift, 3);
  EXPECT_EQ(constants.dcqcn.fast_steps, 4);
  EXPECT_EQ(constants.dcqcn.bytes_per_step, 5u);
  EXPECT_EQ(constants.dcqcn.step, nanoseconds(6));
  EXPECT_EQ(constants.dcqcn.least_kbytes_per_second, 7u * 125);
  EXPECT_EQ(constants.dcqcn.add_kbytes_per_second, 8u * 125);
  EXPECT_EQ(constants.dcqcn.add_much_kbytes_per_second, 9u * 125);
  EXPECT_EQ(constants.dcqcn.notification_pause, nanoseconds(10));
  EXPECT_EQ(constants.loss_window.initial_packets, 11);
  EXPECT_EQ(constants.loss_window.least_packets, 12);
}

TEST(Bottleneck, constants_of_dcqcn_are_obeyed) {
  const auto utilization = [](void (*change)(Parameters&)) {
    Parameters p = flows(CongestionControl::kDcqcn);
    change(p);
    return run(p).values.at("utilization_percent");
  };
  const double usual = utilization([](Parameters&) {});
  EXPECT_GT(utilization([](Parameters& p) { p.dcqcn_add = 4000; }), usual);
  EXPECT_GT(utilization([](Parameters& p) { p.dcqcn_least = 40'000; }), usual);
  EXPECT_NE(utilization([](Parameters& p) { p.dcqcn_gain_shift = 3; }), usual);
  EXPECT_NE(utilization([](Parameters& p) { p.dcqcn_step = whole_nanoseconds(300'000); }), usual);
  EXPECT_NE(utilization([](Parameters& p) { p.dcqcn_step_bytes = 100'000; }), usual);
  EXPECT_NE(utilization([](Parameters& p) { p.dcqcn_fast_steps = 1; }), usual);
  EXPECT_NE(utilization([](Parameters& p) { p.dcqcn_pause = whole_nanoseconds(5'000); }), usual);
}

std::string refusal(const std::string& stack, const Parameters& p) {
  try {
    run_bottleneck({stack, "", p});
  } catch (const BadPoint& error) {
    return error.what();
  }
  return "none";
}

TEST(Bottleneck, says_what_it_has_not) {
  Parameters p = flows(CongestionControl::kDcqcn);
  EXPECT_EQ(refusal("urma", p), "there is no stack or profile urma of a bottleneck");
  p.in_flight = 33;
  EXPECT_EQ(refusal("roce", p), "remote_jetties * in_flight: give at most 64");
  p.in_flight = 1;
  p.bottleneck_sample = whole_nanoseconds(6'000'000);
  EXPECT_EQ(refusal("roce", p), "bottleneck_sample: give a time up to bottleneck_time, and not 0");
  p.bottleneck_sample = picoseconds(1);
  EXPECT_EQ(refusal("roce", p), "bottleneck_sample: give at least bottleneck_time / 1000000");
}

}  // namespace
}  // namespace ub::emu
