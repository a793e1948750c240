// SPDX-License-Identifier: Apache-2.0
//
// Lines that are asked for ahead of their use: over a lane, whose NIC answers when somebody waits for it.
#include "lib/urma/aperture/ahead_loads.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/aperture/lane_pair.h"

namespace ub::aperture {
namespace {

constexpr uint32_t kKept = 64;

class Ahead : public testing::Test {
 protected:
  void open(uint64_t offset, uint64_t bytes) {
    program.emplace(nic, nic.add(offset, bytes), milliseconds(5));
    ahead = std::make_unique<AheadLoads>(*program->path, kBase + offset, bytes, &program->pub.path);
  }
  void SetUp() override { open(0, nic.memory.size()); }

  void ask(uint64_t at) { EXPECT_EQ(ahead->prefetch(at), URMA_CR_SUCCESS) << at; }
  urma_cr_status_t load(uint64_t at, void* to, uint32_t bytes) {
    const LoadBlock block{at, to, bytes};
    return ahead->load({&block, 1});
  }
  uint64_t word(uint64_t at) {
    uint64_t value = 0;
    EXPECT_EQ(load(at, &value, sizeof value), URMA_CR_SUCCESS) << at;
    return value;
  }
  void serve_all() {
    while (nic.drive() != 0) {
    }
  }
  uint64_t far_word(uint64_t at) const {
    uint64_t value;
    std::memcpy(&value, &nic.memory[at], sizeof value);
    return value;
  }
  void put_far(uint64_t at, uint64_t value) { std::memcpy(&nic.memory[at], &value, sizeof value); }
  softub_path_t inline_path() const { return static_cast<softub_path_t>(program->pub.path); }

  ServingNic nic;
  std::optional<Program> program;
  std::unique_ptr<AheadLoads> ahead;
};

TEST_F(Ahead, a_line_is_taken_once_and_inline_calls_pass_by_no_sooner) {
  put_far(72, 1);
  EXPECT_EQ(inline_path(), SOFTUB_PATH_LANE);
  ask(100);
  EXPECT_EQ(inline_path(), SOFTUB_PATH_AHEAD);
  nic.drive();
  put_far(72, 2);
  EXPECT_EQ(word(72), 1u) << "as old as the request";
  EXPECT_EQ(inline_path(), SOFTUB_PATH_LANE);
  EXPECT_EQ(word(72), 2u);
  EXPECT_EQ(nic.served, 2u);
}

TEST_F(Ahead, lines_are_taken_in_any_order_and_asked_for_once) {
  for (uint64_t at = 0; at < kKept * 64; at += 64) ask(at), ask(at + 63);
  for (uint64_t i = 0; i < kKept; ++i) {
    const uint64_t at = i * 7 % kKept * 64 + 8;
    EXPECT_EQ(word(at), far_word(at));
  }
  EXPECT_EQ(nic.served, kKept);
  EXPECT_EQ(inline_path(), SOFTUB_PATH_LANE);
}

TEST_F(Ahead, one_that_nobody_used_gives_way_when_it_has_come) {
  for (uint64_t at = 0; at < kKept * 64; at += 64) ask(at);
  ask(4096);  // no room yet
  serve_all();
  EXPECT_EQ(nic.served, kKept);
  word(64);   // the answers are looked at
  ask(4096);  // in the place of line 0
  ask(8192);  // in the place of line 64, which was used
  put_far(0, 7);
  put_far(4096, 8);
  EXPECT_EQ(word(4096), 8u);
  EXPECT_EQ(word(0), 7u) << "not kept any more";
  EXPECT_EQ(nic.served, kKept + 3);
}

TEST_F(Ahead, what_was_dropped_comes_to_nobody) {
  put_far(0, 1);
  for (uint64_t at = 0; at < kKept * 64; at += 64) ask(at);
  ahead->forget();
  EXPECT_EQ(inline_path(), SOFTUB_PATH_LANE);
  ask(4096);  // its place still waits for what was dropped
  put_far(0, 2);
  serve_all();
  put_far(0, 3);
  EXPECT_EQ(word(0), 3u);
  ask(4096);
  EXPECT_EQ(word(4096), far_word(4096));
}

TEST_F(Ahead, a_store_drops_the_lines_that_it_touches_alone) {
  for (uint64_t at : {0u, 64u, 128u, 192u}) ask(at);
  nic.drive();
  for (uint64_t at : {0u, 64u, 128u, 192u}) put_far(at, 7);
  const uint8_t bytes[2] = {9, 9};
  ASSERT_EQ(ahead->store({127, bytes, 2, nullptr}), URMA_CR_SUCCESS);
  EXPECT_NE(word(0), 7u);
  EXPECT_EQ(word(64), 7u);
  EXPECT_EQ(word(128) >> 8, 0u);
  EXPECT_NE(word(192), 7u);
  EXPECT_EQ(ahead->fence(), URMA_CR_SUCCESS);
}

TEST_F(Ahead, stores_between_are_counted_apart) {
  ask(0);
  const uint64_t value = 5;
  ASSERT_EQ(ahead->store({64, &value, 8, nullptr}), URMA_CR_SUCCESS);
  ask(128);
  EXPECT_EQ(ahead->fence(), URMA_CR_SUCCESS);
  put_far(0, 7);
  put_far(128, 7);
  EXPECT_NE(word(0), 7u) << "the fence took no line away";
  EXPECT_NE(word(128), 7u);
  EXPECT_EQ(far_word(64), 5u);
}

TEST_F(Ahead, the_ends_of_a_segment_within_lines) {
  nic.unregister();
  open(100, 100);  // bytes 100 to 199
  ask(0);
  ask(99);
  uint8_t byte = 0;
  EXPECT_EQ(load(0, &byte, 1), URMA_CR_SUCCESS);
  EXPECT_EQ(byte, 100);
  EXPECT_EQ(load(99, &byte, 1), URMA_CR_SUCCESS);
  EXPECT_EQ(byte, 199);
  ask(99);
  EXPECT_EQ(load(99, &byte, 2), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(ahead->prefetch(100), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(ahead->prefetch(UINT64_MAX), URMA_CR_REM_ACCESS_ABORT_ERR);
}

TEST_F(Ahead, a_refusal_is_told_by_the_load) {
  nic.unregister();
  ask(0);
  uint64_t value = 0;
  EXPECT_EQ(load(0, &value, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(ahead->fence(), URMA_CR_SUCCESS) << "no store failed";
}

TEST_F(Ahead, a_nic_that_goes_fails_what_is_under_way) {
  ask(0);
  ask(64);
  nic.serves = false;
  uint64_t value = 0;
  EXPECT_EQ(load(64, &value, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(load(0, &value, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(ahead->prefetch(128), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_TRUE(ahead->is_broken());
}

TEST_F(Ahead, more_than_a_lane_has_slots) {
  for (uint64_t i = 0; i < 1000; ++i) {
    ask(i * 64);
    if (i >= 16) {
      EXPECT_EQ(word((i - 16) * 64), far_word((i - 16) * 64));
    }
    if (i % 3 == 0) {
      ASSERT_EQ(ahead->store({65536 - 64, &i, 8, nullptr}), URMA_CR_SUCCESS);
    }
  }
  EXPECT_EQ(ahead->fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far_word(65536 - 64), 999u);
}

}  // namespace
}  // namespace ub::aperture
