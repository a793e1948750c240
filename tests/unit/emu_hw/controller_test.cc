// SPDX-License-Identifier: Apache-2.0
// Congestion controllers as rules of the reference: each step, and what a run of them gives.
#include <gtest/gtest.h>

#include <string>

#include "emu_hw/models/model.h"
#include "emu_hw/rules/marking_loop.h"
#include "emu_hw/rules/window.h"

namespace ub::emu {
namespace {

Parameters caqm() {
  Parameters p;
  p.window_add = 4;
  p.window_cut = 0.1;
  p.mark_from = 97;
  p.mark_most = 100;
  return p;
}

TEST(WindowRule, marks_between_two_levels) {
  Parameters p = caqm();
  const auto chance = [&](double window) {
    p.window_start = window;
    return WindowRule(p).mark_chance();
  };
  EXPECT_EQ(chance(32), 0);
  EXPECT_EQ(chance(0.97 * 64), 0);
  EXPECT_NEAR(chance(0.985 * 64), 0.5, 1e-9);
  EXPECT_EQ(chance(64), 1);
  EXPECT_EQ(chance(100), 1);
  p = {};
  EXPECT_NEAR(chance(0.75 * 64), 0.05, 1e-9);
  EXPECT_NEAR(chance(64), 0.1, 1e-9);
  EXPECT_NEAR(chance(80), 0.1, 1e-9);
}

// From 64 packets on each packet is marked. Then one of nine, two of ten ...
TEST(WindowRule, steps_with_each_packet) {
  const Parameters p = caqm();
  WindowRule rule(p);
  for (int i = 0; i < 8; ++i) rule.packet();
  EXPECT_EQ(rule.window(), 64);
  EXPECT_EQ(rule.marked_part(), 0);
  rule.packet();
  EXPECT_NEAR(rule.window(), 64 * (1 - 0.1 / 9) + 4, 1e-9);
  const double window = rule.window();
  rule.packet();
  EXPECT_NEAR(rule.marked_part(), 0.2, 1e-9);
  EXPECT_NEAR(rule.window(), window * (1 - 0.1 * 0.2) + 4, 1e-9);
  EXPECT_EQ(rule.utilization(), 1);
}

TEST(WindowRule, forgets_old_marks) {
  Parameters p = caqm();
  p.window_start = 200;
  p.window_add = 0;
  p.mark_history = 2;
  WindowRule rule(p);
  while (rule.window() > 0.97 * 64) rule.packet();
  EXPECT_GT(rule.marked_part(), 0);
  rule.packet();
  rule.packet();
  EXPECT_EQ(rule.marked_part(), 0);
}

TEST(WindowRule, steps_with_each_round_trip) {
  Parameters p = caqm();
  p.window_start = 64.5;
  WindowRule rule(p);
  rule.round_trip();
  EXPECT_EQ(rule.marked_part(), 1);
  EXPECT_NEAR(rule.window(), 64.5 * 0.9 + 4, 1e-9);
  rule.round_trip();
  EXPECT_LT(rule.marked_part(), 1);
}

TEST(WindowRule, leaves_a_packet) {
  Parameters p = caqm();
  p.window_start = 64;
  p.window_add = 0;
  p.window_cut = 1;
  WindowRule rule(p);
  rule.packet();
  EXPECT_EQ(rule.window(), 1);
}

TEST(MarkingLoop, marks_from_the_seventeenth_packet_on) {
  const Parameters p;
  MarkingLoop loop(p);
  for (int i = 0; i < 16; ++i) loop.packet();
  EXPECT_EQ(loop.marked(), 0u);
  loop.packet();
  EXPECT_EQ(loop.marked(), 1u);
  EXPECT_EQ(loop.window_bytes(), 32768u);
  for (int i = 17; i < 25; ++i) loop.packet();
  EXPECT_EQ(loop.marked(), 9u);
  EXPECT_EQ(loop.window_bytes(), 4096u);
}

// The level at which it ends is one where packets are marked still.
TEST(MarkingLoop, marks_nothing_below_the_other_level) {
  Parameters p;
  p.loop_mark_above = 0;
  MarkingLoop loop(p);
  for (int i = 0; i < 3; ++i) loop.packet();
  EXPECT_EQ(loop.marked(), 0u);
  loop.packet();  // 256 bytes
  EXPECT_EQ(loop.marked(), 1u);
}

TEST(Controller, measures_the_last_part_of_its_samples) {
  Parameters p;
  p.operations = 160;
  p.window_add = 0;
  p.mark_most = 0;
  PointResult result = run_controller({"window", "packets", p});
  EXPECT_NEAR(result.values.at("utilization_percent"), 50, 1e-9);
  ASSERT_EQ(result.curves.size(), 1u);
  EXPECT_EQ(result.curves[0].points.size(), 10u);
  p.window_add = 1;  // 48, 64, 80, ... of 64
  p.window_capacity = 192;
  p.measured_part = 20;
  result = run_controller({"window", "packets", p});
  EXPECT_NEAR(result.values.at("utilization_percent"), (176.0 + 192) / 2 / 192 * 100, 1e-9);
  EXPECT_EQ(result.values.at("least_packets"), 48);
  EXPECT_EQ(result.values.at("most_packets"), 192);
}

std::string refusal(const Point& point) {
  try {
    run_controller(point);
  } catch (const BadPoint& error) {
    return error.what();
  }
  return "none";
}

TEST(Controller, says_what_it_has_not) {
  Parameters p;
  EXPECT_EQ(refusal({"urma", "packets", p}), "there is no stack or profile urma of controllers");
  EXPECT_EQ(refusal({"window", "bulk_read", p}),
            "workload: there is no \"bulk_read\" of controllers; there are packets, round_trips, closed_loop");
  p.mark_from = 120;
  EXPECT_EQ(refusal({"window", "packets", p}), "mark_full: is less than mark_from; give at least as much");
  p.mark_from = 50;
  p.operations = 3;
  EXPECT_EQ(run_controller({"window", "packets", p}).invalid,
            "no sample was taken; give more operations, or a smaller window_sample");
  p.window_add = 600'000;
  EXPECT_EQ(refusal({"window", "round_trips", p}),
            "the window grows beyond 1000000 packets; give a smaller window_add");
}

}  // namespace
}  // namespace ub::emu
