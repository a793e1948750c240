// SPDX-License-Identifier: Apache-2.0
// Coherent fabrics, step by step: sets of a cache, and what each kind of miss takes and changes.
#include <gtest/gtest.h>

#include <memory>

#include "emu_hw/coherent/core.h"

namespace ub::emu {
namespace {

TEST(SetCache, forgets_what_it_used_longest_ago) {
  SetCache cache(4, 2);  // even lines, and odd ones
  EXPECT_EQ(cache.insert(0, Right::kRead), std::nullopt);
  EXPECT_EQ(cache.insert(2, Right::kRead), std::nullopt);
  EXPECT_EQ(cache.insert(1, Right::kRead), std::nullopt);
  EXPECT_EQ(cache.touch(0), Right::kRead);
  EXPECT_EQ(cache.insert(4, Right::kWrite), 2u);
  EXPECT_EQ(cache.touch(2), Right::kNone);
  EXPECT_EQ(cache.touch(0), Right::kRead);
  EXPECT_EQ(cache.touch(4), Right::kWrite);
  EXPECT_EQ(cache.touch(1), Right::kRead);
}

TEST(SetCache, has_a_line_once) {
  SetCache cache(2, 2);
  EXPECT_EQ(cache.insert(0, Right::kRead), std::nullopt);
  EXPECT_EQ(cache.insert(0, Right::kWrite), std::nullopt);
  EXPECT_EQ(cache.insert(1, Right::kRead), std::nullopt);
  EXPECT_EQ(cache.touch(0), Right::kWrite);
}

TEST(SetCache, restricts_rights_and_gives_none) {
  SetCache cache(2, 2);
  cache.insert(0, Right::kRead);
  cache.insert(1, Right::kWrite);
  cache.restrict_to(0, Right::kWrite);
  EXPECT_EQ(cache.touch(0), Right::kRead);
  cache.restrict_to(1, Right::kRead);
  EXPECT_EQ(cache.touch(1), Right::kRead);
  cache.restrict_to(1, Right::kNone);
  EXPECT_EQ(cache.touch(1), Right::kNone);
  EXPECT_EQ(cache.insert(3, Right::kRead), std::nullopt);  // in its place
  EXPECT_EQ(cache.touch(0), Right::kRead);
}

constexpr uint64_t kLink = 200;
constexpr uint64_t kMemory = 60;

// What a request of a core takes until the directory is looked at, and from its answer until it is acknowledged.
constexpr uint64_t kThere = 3 + kLink + 6 + kLink, kBack = 4 * kLink;
constexpr uint64_t kDirectory = 5;
// What it takes to ask another core.
constexpr uint64_t kAsk = 4 * kLink + 6 + 3 + kDirectory;

class Coherent : public testing::Test {
 protected:
  void make(uint32_t cores) {
    home_ = std::make_unique<Home>(kernel_, p_);
    for (uint32_t i = 0; i < cores; ++i) cores_.push_back(std::make_unique<CoherentCore>(kernel_, p_, *home_, i));
  }
  ~Coherent() override { kernel_.destroy_tasks(); }

  // Misses at the same time; in cycles, until the last one has ended.
  uint64_t miss(const std::vector<uint32_t>& of, Access access, uint64_t line) {
    const Time begin = kernel_.now();
    for (const uint32_t core : of) spawn(kernel_, cores_[core]->miss(access, line));
    kernel_.run();
    return (kernel_.now() - begin).ps / 500;
  }
  uint64_t miss(uint32_t core, Access access, uint64_t line) { return miss(std::vector{core}, access, line); }
  bool hits(uint32_t core, Access access, uint64_t line) { return cores_[core]->hits(access, line); }

  Kernel kernel_;
  Parameters p_;
  std::unique_ptr<Home> home_;
  std::vector<std::unique_ptr<CoherentCore>> cores_;
};

TEST_F(Coherent, a_line_comes_from_memory_once) {
  make(1);
  EXPECT_EQ(miss(0, Access::kRead, 1), kThere + kDirectory + 2 * kLink + kMemory + kBack);
  EXPECT_TRUE(hits(0, Access::kRead, 1));
  EXPECT_TRUE(hits(0, Access::kWrite, 1)) << "nobody else has it";
  EXPECT_FALSE(hits(0, Access::kRead, 2));
}

TEST_F(Coherent, the_second_cache_has_what_the_first_one_forgot) {
  p_.core_l1_lines = 8;
  make(1);
  for (uint64_t line = 0; line < 9; ++line) miss(0, Access::kRead, line);
  EXPECT_FALSE(hits(0, Access::kRead, 0));
  EXPECT_EQ(miss(0, Access::kRead, 0), 3 + 6 + 6 + 3 * kLink);
  EXPECT_EQ(cores_[0]->l1_misses(), 10u);
  EXPECT_EQ(cores_[0]->l2_misses(), 9u);
}

TEST_F(Coherent, what_the_second_cache_forgets_goes_home_and_is_gone_from_the_first_one) {
  p_.core_l2_lines = 8;
  p_.l3_lines = 16;
  make(1);
  for (uint64_t line = 0; line < 9; ++line) miss(0, Access::kWrite, line);
  EXPECT_FALSE(hits(0, Access::kRead, 0));
  EXPECT_EQ(miss(0, Access::kRead, 0), kThere + kDirectory + 13 + kBack);
}

TEST_F(Coherent, the_home_forgets_as_well) {
  p_.core_l2_lines = 8;
  p_.l3_lines = 16;
  make(1);
  for (uint64_t line = 0; line < 25; ++line) miss(0, Access::kRead, line);
  EXPECT_EQ(miss(0, Access::kRead, 0), kThere + kDirectory + 2 * kLink + kMemory + kBack);
}

TEST_F(Coherent, a_whole_line_is_written_past_the_caches_of_the_core) {
  make(2);
  miss(1, Access::kRead, 1);
  EXPECT_EQ(miss(0, Access::kWholeLine, 2), kThere + kDirectory + kBack);
  EXPECT_FALSE(hits(0, Access::kRead, 2));
  EXPECT_EQ(miss(0, Access::kRead, 2), kThere + kDirectory + 13 + kBack);
  EXPECT_EQ(miss(0, Access::kWholeLine, 1), kThere + kDirectory + kAsk + kBack);
  EXPECT_FALSE(hits(1, Access::kRead, 1));
}

TEST_F(Coherent, who_may_write_is_asked_by_readers_and_may_read_from_then_on) {
  make(2);
  miss(0, Access::kWrite, 1);
  EXPECT_EQ(miss(1, Access::kRead, 1), kThere + kDirectory + kAsk + kBack);
  EXPECT_TRUE(hits(0, Access::kRead, 1));
  EXPECT_FALSE(hits(0, Access::kWrite, 1));
  EXPECT_FALSE(hits(1, Access::kWrite, 1));
}

TEST_F(Coherent, a_third_reader_gets_it_from_the_home) {
  make(3);
  miss(0, Access::kWrite, 1);
  miss(1, Access::kRead, 1);
  EXPECT_EQ(miss(2, Access::kRead, 1), kThere + kDirectory + 13 + kBack);
}

TEST_F(Coherent, readers_are_asked_at_the_same_time_and_answer_one_after_the_other) {
  make(4);
  for (uint32_t core = 0; core < 4; ++core) miss(core, Access::kRead, 1);
  EXPECT_EQ(miss(0, Access::kWrite, 1), kThere + kDirectory + kAsk + 2 * kDirectory + kBack);
  for (uint32_t core = 1; core < 4; ++core) EXPECT_FALSE(hits(core, Access::kRead, 1));
  EXPECT_TRUE(hits(0, Access::kWrite, 1));
}

TEST_F(Coherent, who_writes_without_having_read_needs_the_content) {
  make(3);
  miss(0, Access::kRead, 1);
  miss(1, Access::kRead, 1);
  EXPECT_EQ(miss(2, Access::kWrite, 1), kThere + kDirectory + kAsk + kDirectory + 13 + kBack);
}

TEST_F(Coherent, a_line_is_busy_until_its_answer_is_acknowledged) {
  make(3);
  miss(2, Access::kWholeLine, 1);
  const uint64_t first = kThere + kDirectory + 13 + kBack;
  EXPECT_EQ(miss({0, 1}, Access::kRead, 1), first + kDirectory + kAsk + kBack);
}

TEST_F(Coherent, other_lines_are_not_busy) {
  make(2);
  spawn(kernel_, cores_[0]->miss(Access::kRead, 1));
  EXPECT_EQ(miss(1, Access::kRead, 2), kThere + 2 * kDirectory + 2 * kLink + kMemory + kBack);
}

TEST_F(Coherent, latencies_are_summed) {
  make(1);
  const uint64_t cycles = miss(0, Access::kRead, 1) + miss(0, Access::kRead, 2);
  EXPECT_EQ(cores_[0]->missed().ps, cycles * 500);
}

}  // namespace
}  // namespace ub::emu
