// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "apps/kv_store/grants.h"
#include "apps/kv_store/heap.h"
#include "apps/kv_store/hints.h"
#include "apps/kv_store/layout.h"

namespace ub::kv {
namespace {

std::vector<char> record_of(Word word, const std::string& key, const std::string& value) {
  std::vector<char> bytes(size_t{word.units()} * kUnit);
  write_record(bytes.data(), word, key, value);
  return bytes;
}

TEST(Word, keeps_its_parts) {
  const Word word(0xabcdef1, 17001, Word::kEpochs + 5, 0x1a5);
  EXPECT_EQ(word.unit(), 0xabcdef1u);
  EXPECT_EQ(word.units(), 17001u);
  EXPECT_EQ(word.tag(), 0x1a5u);
  EXPECT_EQ(word, Word(0xabcdef1, 17001, 5, 0x1a5)) << "epochs come again";
  EXPECT_EQ(word.bits() & Word::kStale, 0u);
  EXPECT_TRUE(Word(0, 1, 0, 0)) << "a record at the first unit has a name";
}

TEST(Record, is_read_back) {
  for (uint32_t bytes : {0u, 1u, 17u, 39u, 40u, 1000u, 1u << 20}) {
    const std::string value(bytes, 'v');
    const Word word(3, units_of_record(4, bytes), 1, 2);
    const auto copy = record_of(word, "user", value);
    const auto record = open_record(copy.data(), word);
    ASSERT_TRUE(record) << bytes;
    EXPECT_EQ(record->key, "user");
    EXPECT_EQ(record->value, value);
    EXPECT_FALSE(record->stale);
  }
}

TEST(Record, says_that_it_is_stale) {
  const Word word(3, 1, 1, 2);
  auto copy = record_of(word, "user", "value");
  shared_word(reinterpret_cast<std::byte*>(copy.data())).fetch_or(Word::kStale);
  const auto record = open_record(copy.data(), word);
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->stale);
  EXPECT_EQ(record->value, "value");
}

TEST(Record, has_one_name_alone) {
  const auto copy = record_of(Word(3, 1, 1, 2), "user", "value");
  EXPECT_FALSE(open_record(copy.data(), Word(3, 1, 2, 2))) << "another epoch";
  EXPECT_FALSE(open_record(copy.data(), Word(3, 1, 1, 3))) << "another key";
  EXPECT_FALSE(open_record(copy.data(), Word(4, 1, 1, 2))) << "another place";
}

// A place that is used again while it is read: the copy has bytes of both records, cut anywhere, in either order.
TEST(Record, of_two_halves_is_noticed) {
  const std::string old_value(300, 'o'), new_value(300, 'n');
  const uint32_t units = units_of_record(4, 300);
  const Word old_word(3, units, 1, 2), new_word(3, units, 2, 2);
  const auto old_record = record_of(old_word, "user", old_value), new_record = record_of(new_word, "user", new_value);
  const auto first_difference = std::mismatch(old_record.begin(), old_record.end(), new_record.begin()).first;
  for (auto cut = first_difference - old_record.begin() + 1; cut < ptrdiff_t{sizeof(RecordHead) + 4 + 300}; ++cut) {
    auto begins_new = old_record, begins_old = new_record;
    std::copy_n(new_record.begin(), cut, begins_new.begin());
    std::copy_n(old_record.begin(), cut, begins_old.begin());
    for (Word word : {old_word, new_word}) {
      EXPECT_FALSE(open_record(begins_new.data(), word)) << cut;
      EXPECT_FALSE(open_record(begins_old.data(), word)) << cut;
    }
  }
}

TEST(Record, under_its_old_name_with_new_content_is_noticed) {
  const Word old_word(3, 1, 1, 2), new_word(3, 1, 2, 2);
  auto copy = record_of(new_word, "user", "unpublished");
  const uint64_t bits = old_word.bits();
  std::memcpy(copy.data(), &bits, sizeof bits);
  EXPECT_FALSE(open_record(copy.data(), old_word));
}

TEST(Record, with_the_border_of_its_key_moved_is_noticed) {
  const Word word(3, 1, 1, 2);
  auto copy = record_of(word, "user", "value");
  RecordHead head;
  std::memcpy(&head, copy.data(), sizeof head);
  ++head.key_bytes;
  --head.value_bytes;
  std::memcpy(copy.data(), &head, sizeof head);
  EXPECT_FALSE(open_record(copy.data(), word));
}

TEST(Heap, gives_each_unit_once) {
  Heap heap(1000);
  std::vector<bool> taken(1000);
  uint64_t units = 0;
  while (const auto place = heap.take(7, 7)) {
    for (uint32_t i = 0; i < 7; ++i) {
      ASSERT_LT(place->unit + i, 1000u);
      EXPECT_FALSE(taken[place->unit + i]);
      taken[place->unit + i] = true;
    }
    units += 7;
  }
  EXPECT_EQ(units, 994u);
  EXPECT_EQ(heap.free_units(), 6u);
  EXPECT_TRUE(heap.take(6, 6));
  EXPECT_FALSE(heap.take(1, 1));
}

TEST(Heap, has_after_a_sweep_what_nobody_kept) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const uint32_t units = 1 + random() % 500;
    Heap heap(units);
    std::vector<bool> used(units);
    heap.begin_sweep();
    for (int i = 0; i < 20; ++i) {
      const uint32_t unit = random() % units, count = 1 + random() % std::min(70u, units - unit);
      heap.keep({unit, count});
      std::fill_n(used.begin() + unit, count, true);
    }
    heap.end_sweep();
    EXPECT_EQ(heap.epoch(), 1u);
    EXPECT_EQ(heap.free_units(), static_cast<uint64_t>(std::count(used.begin(), used.end(), false)));
    while (const auto place = heap.take(1, 1)) {
      ASSERT_LT(place->unit, units);
      EXPECT_FALSE(used[place->unit]);
      used[place->unit] = true;
    }
    EXPECT_EQ(std::count(used.begin(), used.end(), false), 0);
  }
}

TEST(Heap, leaves_large_holes_for_large_records) {
  Heap heap(1000);
  heap.begin_sweep();
  for (uint32_t unit = 0; unit < 500; unit += 10) heap.keep({unit, 5});  // holes of 5, and the rest in one piece
  heap.end_sweep();
  for (int i = 0; i < 49; ++i) EXPECT_TRUE(heap.take(5, 5));
  EXPECT_TRUE(heap.take(500, 500));
}

TEST(Grants, give_each_place_once_and_are_released_when_all_is_done) {
  Grants grants;
  EXPECT_TRUE(grants.run_low());
  EXPECT_FALSE(grants.take(1));
  grants.add({7, 3, {{100, 10}, {200, 4}}});
  EXPECT_FALSE(grants.run_low());
  const auto first = grants.take(4), second = grants.take(4), third = grants.take(4);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->unit, 200u);
  EXPECT_EQ(first->epoch, 3u);
  EXPECT_EQ(second->unit, 100u);
  EXPECT_EQ(third->unit, 104u);
  EXPECT_FALSE(grants.take(1)) << "what is left is too short for such records";
  EXPECT_TRUE(grants.run_low());
  for (const auto& place : {first, second, third}) {
    EXPECT_FALSE(grants.next_to_release());
    grants.done(place->grant);
  }
  EXPECT_EQ(grants.next_to_release(), 7u);
  EXPECT_FALSE(grants.next_to_release());
}

TEST(Grants, that_are_too_small_make_room_for_others) {
  Grants grants;
  grants.add({1, 0, {{0, 4}}});
  grants.add({2, 0, {{10, 4}}});
  EXPECT_FALSE(grants.take(5));
  EXPECT_EQ(grants.next_to_release(), 1u);
}

TEST(Hints, of_one_place_the_last_two_stay) {
  Hints hints(2);
  const KeyHash keys[] = {{2, 1}, {4, 2}, {6, 3}};
  const auto slot_of = [&](int key) { return hints.find(keys[key]) == nullptr ? 0 : hints.find(keys[key])->slot; };
  for (uint64_t key : {0, 1}) hints.remember(keys[key], 64 + key, Word(1, 1, 1, 1));
  EXPECT_EQ(slot_of(0), 64u);
  EXPECT_EQ(slot_of(1), 65u);
  hints.remember(keys[0], 70, Word(2, 1, 1, 1));  // it is now the later one
  EXPECT_EQ(slot_of(0), 70u);
  EXPECT_EQ(slot_of(1), 65u);
  hints.remember(keys[2], 66, Word(1, 1, 1, 1));
  EXPECT_EQ(slot_of(0), 70u);
  EXPECT_EQ(slot_of(1), 0u);
  EXPECT_EQ(slot_of(2), 66u);
  hints.forget(keys[2]);
  EXPECT_EQ(slot_of(0), 70u);
  EXPECT_EQ(slot_of(2), 0u);
}

TEST(Hints, are_of_one_key_and_may_be_forgotten) {
  Hints hints(4);
  const KeyHash apple = KeyHash::of("apple", 1), same_place = {apple.low, ~apple.high};
  EXPECT_EQ(hints.find(apple), nullptr);
  hints.remember(apple, 64, Word(1, 1, 1, 1));
  ASSERT_NE(hints.find(apple), nullptr);
  EXPECT_EQ(hints.find(apple)->slot, 64u);
  EXPECT_EQ(hints.find(same_place), nullptr);
  hints.forget(same_place);
  ASSERT_NE(hints.find(apple), nullptr);
  hints.forget(apple);
  EXPECT_EQ(hints.find(apple), nullptr);
  Hints none(0);
  none.remember(apple, 64, Word(1, 1, 1, 1));
  EXPECT_EQ(none.find(apple), nullptr);
}

}  // namespace
}  // namespace ub::kv
