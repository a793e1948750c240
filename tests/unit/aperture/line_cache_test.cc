// SPDX-License-Identifier: Apache-2.0
//
// The line cache of a handle: which loads and stores reach the memory, what is sent back and when, what is dropped.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "tests/unit/aperture/cached_handle.h"

namespace ub::aperture {
namespace {

using test::CachedHandle;
using test::FarMemory;

constexpr uint64_t kBase = 0x7000'0000;
constexpr uint64_t kSetStride = uint64_t{SOFTUB_CACHE_SETS} * kLineBytes;  // lines so far apart share a set

sigjmp_buf left;  // where a handler of a fault jumps to

class LineCacheTest : public testing::Test {
 protected:
  void put_far(uint64_t at, uint64_t value) { std::memcpy(&far.bytes[at], &value, sizeof value); }
  uint64_t far_word(uint64_t at) const {
    uint64_t value;
    std::memcpy(&value, &far.bytes[at], sizeof value);
    return value;
  }
  void TearDown() override { EXPECT_EQ(far.wrong_calls, 0u); }

  FarMemory far{65536};
};

class WriteBack : public LineCacheTest {
 protected:
  CachedHandle handle{far, kBase, SOFTUB_CACHE_WRITE_BACK};
  LineCache& cache = handle.cache;
};

class WriteThrough : public LineCacheTest {
 protected:
  CachedHandle handle{far, kBase, SOFTUB_CACHE_WRITE_THROUGH};
  LineCache& cache = handle.cache;
};

// ---- loads -------------------------------------------------------------------------------------------------------

TEST_F(WriteBack, a_line_is_loaded_once_and_old_until_it_is_invalidated) {
  put_far(128, 1);
  EXPECT_EQ(handle.word(128), 1u);
  put_far(128, 2);
  EXPECT_EQ(handle.word(128), 1u);
  EXPECT_EQ(handle.word(136), 0u);
  EXPECT_EQ(far.loads, 1u);
  EXPECT_EQ(cache.sync(0, SOFTUB_TO_THE_END, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.word(128), 2u);
  EXPECT_EQ(far.loads, 2u);
  const softub_cache_counts_t counts = cache.counts();
  EXPECT_EQ(counts.hits, 2u);
  EXPECT_EQ(counts.misses, 2u);
  EXPECT_EQ(counts.evictions, 0u);
}

TEST_F(WriteBack, of_a_range_only_its_lines_are_invalidated) {
  for (uint64_t at = 0; at < 512; at += 64) handle.word(at);
  for (uint64_t at = 0; at < 512; at += 64) put_far(at, 7);
  EXPECT_EQ(cache.sync(127, 66, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);  // bytes 127 to 192
  for (uint64_t at = 0; at < 512; at += 64) EXPECT_EQ(handle.word(at), at >= 64 && at <= 192 ? 7u : 0u) << at;
}

// More lines than the cache has sets, but not all of the segment.
TEST_F(WriteBack, a_long_range_is_invalidated_too) {
  for (uint64_t at : {0u, 64u, 32768u, 65472u}) handle.word(at);
  for (uint64_t at : {0u, 64u, 32768u, 65472u}) put_far(at, 7);
  EXPECT_EQ(cache.sync(64, 65536 - 128, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.word(0), 0u);
  EXPECT_EQ(handle.word(64), 7u);
  EXPECT_EQ(handle.word(32768), 7u);
  EXPECT_EQ(handle.word(65472), 0u);
}

TEST_F(WriteBack, a_load_across_two_lines_keeps_both) {
  put_far(60, 0x1122334455667788);
  EXPECT_EQ(handle.word(60), 0x1122334455667788u);
  EXPECT_EQ(handle.word(60), 0x1122334455667788u);
  EXPECT_EQ(far.loads, 2u);
  EXPECT_EQ(cache.counts().hits, 2u);
}

TEST_F(WriteBack, long_loads_take_what_is_there_and_keep_nothing) {
  handle.put_word(4096, 77);
  std::array<uint8_t, 8192> bytes;
  ASSERT_EQ(handle.load(1, bytes.data(), bytes.size()), URMA_CR_SUCCESS);
  uint64_t word;
  std::memcpy(&word, &bytes[4095], sizeof word);
  EXPECT_EQ(word, 77u);
  EXPECT_EQ(far.loads, 1u);
  EXPECT_EQ(far.loaded_bytes, 8192u);
  handle.word(64);
  EXPECT_EQ(far.loads, 2u);
}

TEST_F(WriteBack, of_many_loads_only_those_that_are_not_there_are_sent) {
  handle.word(0);
  handle.word(640);
  std::array<std::array<uint8_t, 64>, 150> lines;
  std::vector<LoadBlock> blocks;
  for (uint64_t i = 0; i < lines.size(); ++i) {
    far.bytes[i * 64 + 63] = static_cast<uint8_t>(i);
    blocks.push_back({i * 64, lines[i].data(), 64});
  }
  far.loaded_bytes = 0;
  ASSERT_EQ(cache.load(blocks), URMA_CR_SUCCESS);
  EXPECT_EQ(far.loaded_bytes, 148 * 64u);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i][63], i == 0 || i == 10 ? 0u : i) << i;
}

TEST_F(LineCacheTest, at_the_ends_of_a_segment_only_its_own_bytes_are_touched) {
  FarMemory small(100);
  for (uint8_t i = 0; i < 100; ++i) small.bytes[i] = i;
  for (const uint64_t shift : {0, 1, 20, 63}) {
    CachedHandle handle(small, kBase + shift, SOFTUB_CACHE_WRITE_BACK);
    for (uint8_t at = 0; at < 100; ++at) {
      uint8_t byte = 0xff;
      ASSERT_EQ(handle.load(at, &byte, 1), URMA_CR_SUCCESS);
      EXPECT_EQ(byte, at);
    }
    ASSERT_EQ(handle.store(99, "\x63", 1), URMA_CR_SUCCESS);
    ASSERT_EQ(handle.store(0, "\0", 1), URMA_CR_SUCCESS);
    ASSERT_EQ(handle.cache.fence(), URMA_CR_SUCCESS);
  }
  EXPECT_EQ(small.wrong_calls, 0u);
}

TEST_F(WriteBack, bad_ranges_are_refused_whatever_is_there) {
  uint8_t bytes[64] = {};
  handle.word(65528);
  EXPECT_EQ(handle.load(65529, bytes, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(handle.store(65529, bytes, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(handle.load(UINT64_MAX, bytes, 2), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(handle.load(0, bytes, 0), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(handle.store(0, bytes, 8193), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(cache.sync(65536, 1, SOFTUB_FLUSH), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(cache.sync(1, 65536, SOFTUB_FLUSH), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(cache.sync(0, 1, SOFTUB_PREFETCH), URMA_CR_LOC_OPERATION_ERR);
}

TEST_F(WriteBack, a_load_that_fails_keeps_nothing_but_what_was_stored) {
  handle.put_word(64, 5);
  far.bad_loads = URMA_CR_REM_ACCESS_ABORT_ERR;
  uint64_t word;
  EXPECT_EQ(handle.load(72, &word, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(handle.load(128, &word, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(handle.load(0, &word, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  far.bad_loads = URMA_CR_SUCCESS;
  put_far(72, 6);
  put_far(128, 7);
  EXPECT_EQ(handle.word(72), 6u);
  EXPECT_EQ(handle.word(128), 7u);
  EXPECT_EQ(handle.word(64), 5u);
}

TEST_F(WriteBack, a_broken_path_is_told) {
  handle.word(0);
  far.broken = true;
  EXPECT_TRUE(cache.is_broken());
  uint64_t word;
  const LoadBlock block{0, &word, 8};
  EXPECT_EQ(cache.load({&block, 1}), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(cache.store({0, &word, 8, nullptr}), URMA_CR_ACK_TIMEOUT_ERR);
}

// ---- epochs ------------------------------------------------------------------------------------------------------

// Epochs come again; the line of the former one must not.
TEST_F(WriteBack, no_number_of_invalidations_brings_an_old_line_back) {
  for (uint64_t times = 1; times <= 100; ++times) {
    put_far(128, times);
    ASSERT_EQ(cache.sync(128, 8, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
    ASSERT_EQ(handle.word(128), times);
    put_far(128, 1000);
    for (uint64_t i = 0; i < times; ++i) {
      ASSERT_EQ(cache.sync(0, SOFTUB_TO_THE_END, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
    }
    ASSERT_EQ(handle.word(128), 1000u) << times;
  }
}

// ---- write-back --------------------------------------------------------------------------------------------------

TEST_F(WriteBack, stores_wait_for_a_fence_and_load_nothing) {
  handle.put_word(64, 1);
  handle.put_word(64, 2);
  handle.put_word(80, 3);
  EXPECT_EQ(handle.word(64), 2u);
  EXPECT_EQ(far.loads + far.stores, 0u);
  put_far(72, 9);  // somebody else, between the two
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stores, 1u);
  EXPECT_EQ(far.stored_bytes, 16u);
  EXPECT_EQ(far_word(64), 2u);
  EXPECT_EQ(far_word(72), 9u);
  EXPECT_EQ(far_word(80), 3u);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stores, 1u) << "nothing is sent twice";
  EXPECT_EQ(cache.counts().write_backs, 1u);
}

TEST_F(WriteBack, a_store_whose_source_faults_leaves_nothing_to_be_sent) {
  void* const nothing = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  struct sigaction leaves = {}, before = {};
  leaves.sa_handler = [](int) { siglongjmp(left, 1); };
  ::sigaction(SIGSEGV, &leaves, &before);
  put_far(512, 1);
  EXPECT_EQ(handle.word(512), 1u);
  put_far(512, 2);
  if (sigsetjmp(left, 1) == 0) {
    static_cast<void>(handle.store(512, nothing, 8));
    ADD_FAILURE() << "the store did not fault";
  }
  ::sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stores, 0u);
  EXPECT_EQ(far_word(512), 2u);
  ::munmap(nothing, 4096);
}

TEST_F(WriteBack, a_partial_line_becomes_whole_around_what_was_stored) {
  for (uint64_t at = 64; at < 128; at += 8) put_far(at, at);
  handle.put_word(72, 5);
  EXPECT_EQ(handle.word(64), 64u);
  EXPECT_EQ(handle.word(72), 5u);
  EXPECT_EQ(handle.word(120), 120u);
  EXPECT_EQ(far.loads, 1u);
  EXPECT_EQ(far_word(72), 72u);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stored_bytes, 8u);
  EXPECT_EQ(far_word(72), 5u);
  EXPECT_EQ(handle.word(72), 5u);
  EXPECT_EQ(far.loads, 1u) << "it stays after the fence";
}

TEST_F(WriteBack, what_is_known_of_a_partial_line_ends_with_its_write_back) {
  handle.put_word(64, 5);
  EXPECT_EQ(cache.sync(64, 1, SOFTUB_FLUSH), URMA_CR_SUCCESS);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  put_far(72, 8);
  EXPECT_EQ(handle.word(72), 8u);
  EXPECT_EQ(handle.word(64), 5u);
}

TEST_F(WriteBack, a_dirty_line_is_sent_when_it_has_to_go) {
  for (uint64_t i = 0; i < SOFTUB_CACHE_WAYS; ++i) handle.put_word(i * kSetStride + 8, i + 1);
  EXPECT_EQ(far.stores, 0u);
  handle.word(SOFTUB_CACHE_WAYS * kSetStride);
  EXPECT_EQ(far.stores, 1u);
  EXPECT_EQ(far.stored_bytes, 8u);
  EXPECT_EQ(cache.counts().evictions, 1u);
  EXPECT_EQ(cache.counts().write_backs, 1u);
  for (uint64_t i = 0; i < SOFTUB_CACHE_WAYS; ++i) EXPECT_EQ(handle.word(i * kSetStride + 8), i + 1) << i;
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  for (uint64_t i = 0; i < SOFTUB_CACHE_WAYS; ++i) EXPECT_EQ(far_word(i * kSetStride + 8), i + 1) << i;
}

TEST_F(WriteBack, a_long_store_is_newer_than_what_was_dirty) {
  handle.put_word(64, 1);
  handle.put_word(160, 2);
  std::array<uint8_t, 100> bytes;
  bytes.fill(0xAB);
  ASSERT_EQ(handle.store(60, bytes.data(), bytes.size()), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.word(64), 0xABABABABABABABABu);
  EXPECT_EQ(handle.word(160), 2u);
  ASSERT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stored_bytes, bytes.size() + 8) << "nothing is sent twice";
  EXPECT_EQ(far_word(64), 0xABABABABABABABABu);
  EXPECT_EQ(far_word(160), 2u);
}

TEST_F(WriteBack, invalidation_sends_what_is_dirty_and_discarding_loses_it) {
  for (const uint64_t bytes : {uint64_t{256}, SOFTUB_TO_THE_END}) {
    put_far(0, 0);
    handle.word(0);
    handle.put_word(0, 1);
    EXPECT_EQ(cache.sync(0, bytes, SOFTUB_DISCARD), URMA_CR_SUCCESS);
    EXPECT_EQ(handle.word(0), 0u);
    EXPECT_EQ(far.stores, 0u);
  }
  for (const uint64_t bytes : {uint64_t{256}, SOFTUB_TO_THE_END}) {
    handle.put_word(0, bytes);
    EXPECT_EQ(cache.sync(0, bytes, SOFTUB_INVALIDATE), URMA_CR_SUCCESS);
    EXPECT_EQ(handle.word(0), bytes);
    EXPECT_EQ(far_word(0), bytes);
  }
  handle.put_word(0, 3);
  EXPECT_EQ(cache.sync(0, SOFTUB_TO_THE_END, 0), URMA_CR_SUCCESS);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far_word(0), 3u) << "to do nothing is not to forget";
}

TEST_F(WriteBack, an_atomic_follows_all_stores_and_drops_its_line) {
  handle.word(64);
  handle.put_word(64, 10);
  handle.put_word(640, 11);
  uint64_t old = 0;
  ASSERT_EQ(cache.atomic({AtomicOp::kFetchAdd, 8, 64, 5, 0}, &old), URMA_CR_SUCCESS);
  EXPECT_EQ(old, 10u);
  EXPECT_EQ(far_word(640), 11u);
  EXPECT_EQ(handle.word(64), 15u);
}

// ---- failures of what is sent --------------------------------------------------------------------------------------

TEST_F(WriteBack, a_fence_tells_a_refused_line_once_and_it_is_dropped) {
  put_far(64, 1);
  handle.word(64);
  handle.put_word(64, 2);
  handle.put_word(128, 3);
  far.refuse(64, 8);
  EXPECT_EQ(cache.fence(), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(far_word(128), 3u) << "others go on";
  EXPECT_EQ(handle.word(64), 1u) << "what the memory has";
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  far.refuse(0, 0);
  handle.put_word(64, 4);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far_word(64), 4u);
}

TEST_F(WriteBack, a_refused_eviction_is_told_by_the_next_fence) {
  handle.put_word(0, 1);
  far.refuse(0, 8);
  for (uint64_t i = 1; i <= SOFTUB_CACHE_WAYS; ++i) EXPECT_EQ(handle.word(i * kSetStride), 0u);
  EXPECT_EQ(handle.word(0), 0u);
  EXPECT_EQ(cache.fence(), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
}

TEST_F(WriteBack, a_line_that_cannot_be_sent_is_told_and_dropped) {
  handle.word(0);
  handle.put_word(0, 1);
  far.unsendable = URMA_CR_LOC_OPERATION_ERR;
  EXPECT_EQ(cache.sync(0, 8, SOFTUB_FLUSH), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.word(0), 0u);
  far.unsendable = URMA_CR_SUCCESS;
  EXPECT_EQ(cache.fence(), URMA_CR_LOC_OPERATION_ERR);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
}

TEST_F(WriteThrough, a_refused_store_does_not_stay_in_its_line) {
  handle.word(64);
  far.refuse(64, 8);
  EXPECT_EQ(handle.put_word(64, 2), URMA_CR_SUCCESS);
  EXPECT_EQ(cache.fence(), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(handle.word(64), 0u);
}

// ---- write-through -------------------------------------------------------------------------------------------------

TEST_F(WriteThrough, stores_are_sent_at_once_and_change_lines_that_are_there) {
  handle.word(64);
  EXPECT_EQ(handle.put_word(64, 1), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.put_word(60, 0x0202020202020202), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stores, 2u);
  EXPECT_EQ(handle.word(64), 0x02020202u);
  EXPECT_EQ(far.loads, 1u);
  EXPECT_EQ(cache.fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(far.stores, 2u);
  EXPECT_EQ(far_word(60), 0x0202020202020202u);
  EXPECT_EQ(cache.counts().write_backs, 0u);
}

}  // namespace
}  // namespace ub::aperture
