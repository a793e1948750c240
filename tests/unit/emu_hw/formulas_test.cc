// SPDX-License-Identifier: Apache-2.0
// Formulas: each term of them by itself, and the step where each of them begins.
#include <gtest/gtest.h>

#include "emu_hw/models/core_bytes.h"
#include "tests/unit/emu_hw/point_of.h"

namespace ub::emu {
namespace {

double bytes(const std::string& stack, uint64_t n, uint64_t m) {
  return value("state", "bytes", stack,
               {{"active_connections", std::to_string(n)}, {"remote_hosts", std::to_string(m)}});
}

TEST(State, grows_with_each_thing_or_with_pairs) {
  EXPECT_EQ(bytes("ub", 2, 1) - bytes("ub", 1, 1), 20 + 32);
  EXPECT_EQ(bytes("ub", 1, 2) - bytes("ub", 1, 1), 56);
  EXPECT_EQ(bytes("ub_full", 2, 1) - bytes("ub_full", 1, 1), 48 + 32);
  EXPECT_EQ(bytes("roce", 5, 8) - bytes("roce", 5, 7), 5 * 512);
  EXPECT_EQ(bytes("roce", 6, 7) - bytes("roce", 5, 7), 7 * 512 + 32);
  EXPECT_EQ(bytes("ub_host", 2, 3) - bytes("ub_host", 1, 3), 192 + 3 * 24);
  EXPECT_EQ(bytes("roce_host", 2, 3) - bytes("roce_host", 1, 3), 48 + 3 * 504);
}

TEST(State, has_as_many_hosts_as_applications_if_it_is_not_told) {
  EXPECT_EQ(value("state", "bytes", "ub", {{"active_connections", "8"}}), bytes("ub", 8, 8));
}

TEST(State, of_the_core_is_that_of_its_records) {
  const CoreBytes each = core_bytes({});
  for (const uint64_t one : {each.jetty, each.segment, each.import, each.peer, each.connection}) EXPECT_GT(one, 16u);
  EXPECT_EQ(bytes("ub_core", 3, 2) - bytes("ub_core", 2, 2), static_cast<double>(each.jetty + each.segment));
  EXPECT_EQ(bytes("ub_core", 2, 3) - bytes("ub_core", 2, 2), static_cast<double>(each.peer + each.import));
  EXPECT_EQ(bytes("roce_core", 2, 3) - bytes("roce_core", 2, 2), 2 * static_cast<double>(each.connection));
}

// A host with more receivers has more records of them, and none of them is larger.
TEST(State, of_the_core_is_that_of_one_record) {
  Parameters many;
  many.remote_jetties = 7;
  const CoreBytes one = core_bytes({}), of_many = core_bytes(many);
  EXPECT_EQ(one.import, of_many.import);
  EXPECT_EQ(one.connection, of_many.connection);
}

TEST(State, ratio_has_one_digit) {
  EXPECT_EQ(value("state", "ratio", "ub", {{"active_connections", "8"}}), 38.2);
}

TEST(State, says_what_it_cannot_do) {
  EXPECT_EQ(refusal_of("state", "urma"), "there is no stack urma of state; emu_hw/models/state.cc lists all");
}

double in_fabric(const std::string& measure, const std::string& stack, uint64_t peers) {
  return value("fabric_state", measure, stack, {{"nodes", std::to_string(peers)}});
}

TEST(FabricState, grows_as_each_fabric_does) {
  EXPECT_EQ(in_fabric("bytes", "ub", 9) - in_fabric("bytes", "ub", 8), 136);
  EXPECT_EQ(in_fabric("bytes", "roce", 9), 81 * 512);
  EXPECT_EQ(in_fabric("bytes", "directory", 16), 1e6 * (2 + 8));
  EXPECT_EQ(in_fabric("bytes", "directory", 4), 1e6 * 8.5);
}

TEST(FabricState, fits_up_to_a_limit) {
  EXPECT_EQ(in_fabric("fits", "nvlink", 40), 1);
  EXPECT_EQ(in_fabric("fits", "nvlink", 41), 0);
  EXPECT_EQ(in_fabric("fits", "cxl_mem", 32), 1);
  EXPECT_EQ(in_fabric("fits", "cxl_mem", 33), 0);
  EXPECT_EQ(in_fabric("fits", "ub", 4096), 1);
  EXPECT_EQ(refusal_of("fabric_state", "cxl"),
            "there is no stack cxl of fabric_state; there are ub, roce, directory, nvlink, cxl_mem");
}

double in_cluster(const std::string& stack, const Settings& set) {
  return value("cluster_formula", "mean_ns", stack, set);
}

TEST(ClusterFormula, adds_to_what_two_hosts_take) {
  EXPECT_EQ(in_cluster("ldst", {{"nodes", "3"}}), 500 + 2 * 12.5);
  EXPECT_EQ(in_cluster("urma", {{"link_delay", "150"}}), 757 + 2 * 50 + 12.5);
  EXPECT_EQ(in_cluster("roce", {{"nodes", "3"}, {"contention", "10"}}), 1736 + 2 * 10);
}

TEST(ClusterFormula, contexts_are_fetched_again_once_they_are_too_many) {
  EXPECT_EQ(in_cluster("roce", {{"nodes", "23"}}), 1736 + 22 * 12.5);  // 506 of 512
  EXPECT_EQ(in_cluster("roce", {{"nodes", "24"}}), 1736 + 23 * 12.5 + 2 * 500);
  EXPECT_EQ(in_cluster("roce", {{"nodes", "23"}, {"roce_qp_cache", "505"}}), 1736 + 22 * 12.5 + 2 * 500);
  EXPECT_EQ(in_cluster("urma", {{"nodes", "1024"}}), 757 + 1023 * 12.5);
  EXPECT_EQ(in_cluster("urma", {{"nodes", "1025"}}), 757 + 1024 * 12.5 + 2 * (30 + 70));
  EXPECT_EQ(refusal_of("cluster_formula", "swap"),
            "there is no stack swap of cluster_formula; there are ldst, urma, roce");
}

double coherent(const std::string& measure, const Settings& set) {
  return value("coherent_formula", measure, "coherent", set);
}

TEST(CoherentFormula, a_load_is_dearer_once_the_directory_is_full) {
  EXPECT_EQ(coherent("load_ns", {{"fabric_directory", "64"}, {"fabric_lines", "64"}}), 80 + 2 * 150);
  EXPECT_EQ(coherent("load_ns", {{"fabric_directory", "64"}, {"fabric_lines", "128"}}),
            80 + 2 * 150 + 0.5 * (4 * 150 + 72 * 8));
}

TEST(CoherentFormula, a_shared_write_is_dearer_with_each_peer) {
  EXPECT_EQ(coherent("shared_write_ns", {{"nodes", "2"}}), 100 + 50 + 2 * 150 + 2 * 8);
  EXPECT_EQ(coherent("shared_write_ns", {{"nodes", "3"}}) - coherent("shared_write_ns", {{"nodes", "2"}}), 50 + 8);
}

TEST(CoherentFormula, ub_has_no_directory) {
  EXPECT_EQ(value("coherent_formula", "load_ns", "ldst", {{"fabric_lines", "1e9"}}), 500);
  EXPECT_EQ(value("coherent_formula", "shared_write_ns", "urma", {{"nodes", "1000"}}), 757);
}

TEST(CoherentFormula, a_lossless_fabric_stands_still) {
  const auto lossless = [](const char* measure, const char* rate) {
    return value("coherent_formula", measure, "lossless", {{"loss_rate", rate}});
  };
  EXPECT_EQ(lossless("mops", "0"), 2);
  EXPECT_NEAR(lossless("mops", "0.01"), 0.095, 0.0005);
  EXPECT_EQ(lossless("mean_ns", "0.001"), 500 + 1000);
  EXPECT_EQ(lossless("p99_ns", "0.0099"), 500);
  EXPECT_EQ(lossless("p99_ns", "0.01"), 1e6);
  EXPECT_EQ(refusal_of("coherent_formula", "cxl"),
            "there is no stack cxl of coherent_formula; there are coherent, ldst, urma, lossless");
}

}  // namespace
}  // namespace ub::emu
