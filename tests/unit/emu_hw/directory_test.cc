// SPDX-License-Identifier: Apache-2.0
// Programs on a coherent fabric: a pointer chase from its start on, and a line that one core writes and others read.
#include <gtest/gtest.h>

#include "tests/unit/emu_hw/point_of.h"

namespace ub::emu {
namespace {

double chase(const std::string& measure, const Settings& set) {
  return value("directory", measure, "directory", set, "chase");
}
double shared_line(const std::string& measure, const Settings& set) {
  return value("directory", measure, "directory", set, "shared_line");
}

// Instructions of 16 lines: the start, writes, the list, its shuffle, the links.
constexpr uint64_t kStart = 614 * 20;
constexpr uint64_t kBeforeChase = kStart + 16 * 20 + 16 * 20 + 15 * 67 + 16 * 46;

Settings sixteen(uint64_t instructions) {
  return {{"working_set", "16"}, {"chase_instructions", std::to_string(instructions)}};
}

TEST(Chase, ends_after_so_many_instructions) {
  EXPECT_EQ(chase("hops", sixteen(kBeforeChase + 29)), 0);
  EXPECT_EQ(chase("hops", sixteen(kBeforeChase + 30)), 1);
  EXPECT_EQ(chase("l1_accesses", sixteen(kStart + 19)), 614 * 5);
  EXPECT_EQ(chase("l1_accesses", sixteen(kBeforeChase + 300)), (614 + 16 + 16) * 5 + 15 * 17 + 16 * 12 + 10 * 9);
}

TEST(Chase, misses_by_its_steps) {
  EXPECT_EQ(chase("l2_misses", sixteen(kStart)), 614 + 1) << "and the stack";
  EXPECT_EQ(chase("l2_misses", sixteen(kStart + 16 * 20)), 615 + 16) << "each line is written";
  EXPECT_EQ(chase("l2_misses", sixteen(kStart + 32 * 20)), 631 + 2) << "8 numbers are in a line of the list";
  EXPECT_EQ(chase("l2_misses", sixteen(kBeforeChase)), 633 + 16) << "each line is linked";
  EXPECT_EQ(chase("l2_misses", sixteen(kBeforeChase + 3000)), 649) << "and stays";
  EXPECT_EQ(chase("l1_misses", sixteen(kBeforeChase + 3000)), 649);
}

TEST(Chase, of_more_lines_than_a_cache_has_misses_all_the_time) {
  const auto misses = [](uint64_t hops) {
    return chase("l1_misses", {{"working_set", "16"}, {"core_l1_lines", "8"},
                               {"chase_instructions", std::to_string(kBeforeChase + 30 * hops)}});
  };
  EXPECT_EQ(misses(200) - misses(100), 100);
}

TEST(Chase, mean_is_that_of_hits_and_misses) {
  const double misses = 649, accesses = chase("l1_accesses", sixteen(kBeforeChase + 3000));
  const double missed = chase("miss_cycles", sixteen(kBeforeChase + 3000)) * misses;
  EXPECT_NEAR(missed, 615 * 1674.0 + 16 * 1214 + 2 * 1674 + 16 * 1227, 1e-6);
  EXPECT_NEAR(chase("mean_cycles", sixteen(kBeforeChase + 3000)), (missed + 3 * (accesses - misses)) / accesses, 1e-9);
}

constexpr double kFromMemory = 837;  // ns

TEST(SharedLine, begins_when_all_cores_have_started) {
  const uint64_t starts = 614 + 3 * 115;
  const auto until = [](double ns) { return Settings{{"nodes", "3"}, {"shared_line_run", std::to_string(ns)}}; };
  EXPECT_EQ(shared_line("misses", until(kFromMemory * starts - 1)), starts);
  EXPECT_EQ(shared_line("miss_ns", until(kFromMemory * starts)), kFromMemory * starts / (starts + 3));
}

TEST(SharedLine, is_written_after_each_pause) {
  const Settings set = {{"nodes", "2"}, {"shared_write_pause", "50 us"}, {"shared_line_run", "2 ms"}};
  const double time = 2e6 - 844 * kFromMemory;
  EXPECT_NEAR(shared_line("writes", set), time / 51'000, 1);
  EXPECT_NEAR(shared_line("misses", set), 844 + 2 * time / 51'000, 2) << "a miss of each core for each write";
}

TEST(SharedLine, is_dearer_with_more_cores) {
  const auto cores = [](const char* nodes) {
    return shared_line("miss_ns", {{"nodes", nodes}, {"shared_line_run", "3 ms"}});
  };
  EXPECT_LT(cores("2"), cores("4"));
  EXPECT_LT(cores("4"), cores("8"));
}

TEST(SharedLine, beside_it_ub_has_no_other_hosts_to_ask) {
  EXPECT_EQ(value("directory", "miss_ns", "ldst", {{"nodes", "128"}}, "shared_line"), 500);
  EXPECT_EQ(value("directory", "miss_ns", "urma", {{"link_delay", "1000"}}, "shared_line"), 757 + 2 * 900);
}

TEST(Directory, says_what_it_cannot_do) {
  EXPECT_EQ(refusal_of("directory", "cxl"),
            "there is no stack cxl of directory; there are directory, ldst, urma");
  EXPECT_EQ(refusal_of("directory", "directory", {}, "chess"),
            "workload: there is no \"chess\" of directory; there are chase, shared_line");
  EXPECT_EQ(refusal_of("directory", "directory", {{"shared_write_pause", "0"}}, "shared_line"),
            "shared_write_pause = 0: a core that may write would write for ever; give at least 0.001 ns");
  EXPECT_EQ(refusal_of("directory", "directory", {{"l3_lines", "100"}}, "chase"),
            "l3_lines = 100: give a multiple of 16");
}

}  // namespace
}  // namespace ub::emu
