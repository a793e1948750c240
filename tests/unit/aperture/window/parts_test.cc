// SPDX-License-Identifier: Apache-2.0
//
// The parts of a window that need no fault.
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "lib/base/prng.h"
#include "lib/urma/aperture/window/cache_slots.h"
#include "lib/urma/aperture/window/fault_runs.h"
#include "lib/urma/aperture/window/ownership.h"
#include "lib/urma/aperture/window/page_table.h"
#include "lib/urma/aperture/window/statistics.h"
#include "lib/urma/aperture/window/twins.h"

namespace ub::aperture {
namespace {

TEST(PageWord, every_field__survives_packing) {
  for (const PageState state : {PageState::kAbsent, PageState::kBusy, PageState::kClean, PageState::kDirty}) {
    for (const Owned owned : {Owned::kNone, Owned::kRead, Owned::kWrite}) {
      for (const bool referenced : {false, true}) {
        for (const uint32_t slot : {0U, 1U, PageWord::kMaxSlots - 1}) {
          const PageWord word = PageWord::unpack(PageWord{state, owned, referenced, slot}.pack());
          EXPECT_EQ(word.state, state);
          EXPECT_EQ(word.owned, owned);
          EXPECT_EQ(word.referenced, referenced);
          EXPECT_EQ(word.slot, slot);
        }
      }
    }
  }
}

TEST(PageTable, claim__is_of_one_thread_and_of_what_was_seen) {
  PageTable table;
  ASSERT_TRUE(table.create(4));
  const PageWord seen = table.look(2);
  EXPECT_EQ(seen.state, PageState::kAbsent);
  EXPECT_TRUE(table.claim(2, seen));
  EXPECT_FALSE(table.claim(2, seen));
  EXPECT_EQ(table.look(2).state, PageState::kBusy);
  table.release(2, {.state = PageState::kClean, .slot = 5});
  EXPECT_FALSE(table.claim(2, seen));
  EXPECT_EQ(table.look(2).slot, 5u);
  EXPECT_EQ(table.look(1).state, PageState::kAbsent);
  EXPECT_EQ(table.look(3).state, PageState::kAbsent);
}

TEST(PageTable, reference__is_forgotten_only_while_the_page_is_as_it_was) {
  PageTable table;
  ASSERT_TRUE(table.create(1));
  table.release(0, {.state = PageState::kClean, .referenced = true, .slot = 3});
  const PageWord seen = table.look(0);
  table.release(0, {.state = PageState::kDirty, .referenced = true, .slot = 3});
  table.forget_reference(0, seen);
  EXPECT_TRUE(table.look(0).referenced);
  table.forget_reference(0, table.look(0));
  EXPECT_FALSE(table.look(0).referenced);
  EXPECT_EQ(table.look(0).state, PageState::kDirty);
}

TEST(CacheSlots, each__is_taken_once_until_it_is_given_back) {
  CacheSlots slots;
  slots.create(5);
  std::set<uint32_t> taken;
  uint32_t slot;
  for (uint64_t page = 100; slots.take(page, &slot); ++page) {
    EXPECT_TRUE(taken.insert(slot).second);
    uint64_t there;
    EXPECT_TRUE(slots.page_in(slot, &there));
    EXPECT_EQ(there, page);
  }
  EXPECT_EQ(taken.size(), 5u);
  slots.give_back(3);
  uint64_t there;
  EXPECT_FALSE(slots.page_in(3, &there));
  ASSERT_TRUE(slots.take(0, &slot));
  EXPECT_EQ(slot, 3u);
  EXPECT_TRUE(slots.page_in(3, &there));
  EXPECT_EQ(there, 0u);
}

TEST(CacheSlots, written__is_remembered_until_clean_or_given_back) {
  CacheSlots slots;
  slots.create(200);
  uint32_t slot;
  while (slots.take(1, &slot)) {
  }
  for (const uint32_t written : {0U, 63U, 64U, 199U}) slots.mark_written(written, {written + 5});
  slots.mark_clean(63);
  slots.give_back(199);
  std::vector<uint32_t> found;
  slots.for_each_written([&](uint32_t s) { found.push_back(s); });
  EXPECT_EQ(found, (std::vector<uint32_t>{0, 64}));
  EXPECT_EQ(slots.written_at(64).ns, 69u);
}

// Each thread marks what it holds: nobody else may hold it meanwhile.
TEST(CacheSlots, threads__never_hold_the_same_slot) {
  constexpr uint32_t kSlots = 6;
  CacheSlots slots;
  slots.create(kSlots);
  std::atomic<int> holders[kSlots] = {};
  std::atomic<bool> doubled{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        uint32_t held[2];
        uint32_t count = 0;
        while (count < 2 && slots.take(7, &held[count])) {
          if (holders[held[count]].fetch_add(1) != 0) doubled = true;
          ++count;
        }
        while (count > 0) {
          --count;
          holders[held[count]].fetch_sub(1);
          slots.give_back(held[count]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(doubled);
  uint32_t slot, free = 0;
  while (slots.take(1, &slot)) ++free;
  EXPECT_EQ(free, kSlots);
}

struct Change {
  uint32_t from, bytes;
  std::vector<uint64_t> enables;
  bool operator==(const Change&) const = default;
};
std::vector<Change> changes(const std::vector<std::byte>& page, const std::vector<std::byte>& twin, uint32_t bytes) {
  std::vector<Change> all;
  for_each_change(page.data(), twin.data(), bytes, [&](uint32_t from, uint32_t n, const uint64_t* enables) {
    all.push_back({from, n, {enables, enables + (n + 63) / 64}});
  });
  return all;
}

TEST(Twins, changes__are_rows_of_lines_with_a_bit_for_each_byte) {
  std::vector<std::byte> twin(4096), page(4096);
  EXPECT_TRUE(changes(page, twin, 4096).empty());
  page[0] = page[63] = page[64] = page[200] = page[4095] = std::byte{1};
  const uint64_t ends = uint64_t{1} << 63 | 1;
  EXPECT_EQ(changes(page, twin, 4096),
            (std::vector<Change>{{0, 128, {ends, 1}}, {192, 64, {uint64_t{1} << 8}}, {4032, 64, {uint64_t{1} << 63}}}));
}

TEST(Twins, changes__behind_the_valid_bytes_do_not_count) {
  std::vector<std::byte> twin(4096), page(4096, std::byte{1});
  EXPECT_EQ(changes(page, twin, 70), (std::vector<Change>{{0, 70, {~uint64_t{0}, 0x3f}}}));
  page[0] = twin[0];
  EXPECT_TRUE(changes(page, twin, 1).empty());
}

TEST(Twins, changes__make_the_twin_equal) {
  Prng random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> twin(4096);
    random.fill(twin.data(), twin.size());
    std::vector<std::byte> page = twin;
    for (uint64_t i = random.below(300); i > 0; --i)
      page[random.below(4096)] = static_cast<std::byte>(random.next_u32());
    std::vector<std::byte> result = twin;
    for (const Change& change : changes(page, twin, 4096)) {
      for (uint32_t i = 0; i < change.bytes; ++i) {
        const bool sent = (change.enables[i / 64] >> (i % 64) & 1) != 0;
        EXPECT_EQ(sent, page[change.from + i] != twin[change.from + i]);
        if (sent) result[change.from + i] = page[change.from + i];
      }
    }
    EXPECT_EQ(result, page);
  }
}

TEST(FaultRuns, eight__go_on_beside_each_other) {
  FaultRuns runs;
  for (uint64_t base = 1000; base <= 8000; base += 1000) {
    const FaultRuns::Run run = runs.find(base);
    EXPECT_FALSE(run.goes_on);
    runs.expect(run, base + 1);
  }
  for (uint64_t step = 1; step < 20; ++step) {
    for (uint64_t base = 1000; base <= 8000; base += 1000) {
      const FaultRuns::Run run = runs.find(base + step);
      EXPECT_TRUE(run.goes_on);
      runs.expect(run, base + step + 1);
    }
  }
  EXPECT_FALSE(runs.find(1000).goes_on);
}

TEST(FaultRuns, first_page__continues_nothing) { EXPECT_FALSE(FaultRuns().find(0).goes_on); }

TEST(Ownership, change__writes_back_and_drops_as_ub_says) {
  const auto is = [](Owned from, Owned to, bool write_back, bool drop) {
    const Treatment treatment = change_of_owner(from, to);
    EXPECT_EQ(treatment.write_back, write_back);
    EXPECT_EQ(treatment.drop, drop);
    EXPECT_EQ(treatment.owned, to);
  };
  is(Owned::kWrite, Owned::kNone, true, true);
  is(Owned::kWrite, Owned::kRead, true, false);
  is(Owned::kRead, Owned::kNone, true, true);
  is(Owned::kNone, Owned::kRead, true, true);
  is(Owned::kNone, Owned::kWrite, true, true);
  is(Owned::kRead, Owned::kWrite, false, false);
  is(Owned::kNone, Owned::kNone, false, false);
  is(Owned::kRead, Owned::kRead, false, false);
  is(Owned::kWrite, Owned::kWrite, false, false);
}

TEST(LatencyCounts, percentiles__are_within_two_percent) {
  LatencyCounts counts;
  Histogram exact, read;
  Prng random(5);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = random.below(uint64_t{1} << random.below(40));
    counts.record(value);
    exact.record(value);
  }
  counts.add_to(&read);
  ASSERT_EQ(read.count(), exact.count());
  for (const double percent : {1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
    const auto wanted = static_cast<double>(exact.percentile(percent));
    EXPECT_NEAR(static_cast<double>(read.percentile(percent)), wanted, 0.5 + wanted * 0.02) << percent;
  }
}

TEST(LatencyCounts, extremes__have_a_place) {
  LatencyCounts counts;
  counts.record(0);
  counts.record(UINT64_MAX);
  Histogram read;
  counts.add_to(&read);
  EXPECT_EQ(read.count(), 2u);
  EXPECT_EQ(read.min(), 0u);
  EXPECT_GT(read.max(), uint64_t{1} << 63);
}

}  // namespace
}  // namespace ub::aperture
