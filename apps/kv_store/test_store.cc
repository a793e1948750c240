// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "apps/kv_store/store.h"

namespace ub::kv {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kOwner = 5;

// A store in memory of the test, which is also a client that reads and exchanges words as one-sided requests do.
class StoreTest : public ::testing::Test {
 protected:
  explicit StoreTest(uint64_t lines = 64, uint64_t units = 256) {
    geometry_ = {lines, units, 42, 100, 4000};
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kUnit, geometry_.bytes())));
    std::memset(memory_.get(), 0, geometry_.bytes());
    store_ = std::make_unique<Store>(memory_.get(), geometry_);
  }

  std::optional<RecordView> open(Word word) const {
    return open_record(memory_.get() + geometry_.unit_at(word.unit()), word);
  }
  std::string value_of(const std::string& key) const {
    const Store::Result found = store_->find(key);
    if (found.status != Status::kOk) return name_of_absence();
    const auto record = open(found.word);
    return record && record->key == key ? std::string(record->value) : "damaged";
  }
  static std::string name_of_absence() { return "(absent)"; }

  // As a client does it, step by step.
  Word write_into(const Store::Grant& grant, const std::string& key, const std::string& value) const {
    const Word word(grant.extents[0].unit, units_of_record(key.size(), value.size()), grant.epoch,
                    KeyHash::of(key, geometry_.seed).tag());
    write_record(memory_.get() + geometry_.unit_at(word.unit()), word, key, value);
    return word;
  }
  bool mark(Word old) const {
    uint64_t expected = old.bits();
    return shared_word(memory_.get() + geometry_.unit_at(old.unit()))
        .compare_exchange_strong(expected, old.bits() | Word::kStale);
  }
  bool publish(uint64_t slot, Word old, Word next) const {
    uint64_t expected = old.bits();
    return shared_word(memory_.get() + slot).compare_exchange_strong(expected, next.bits());
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  Geometry geometry_;
  std::unique_ptr<std::byte, Free> memory_;
  std::unique_ptr<Store> store_;
  Store::Instant now_{1h};
};

TEST_F(StoreTest, puts_replaces_and_removes) {
  EXPECT_EQ(store_->put("user1", "one", now_).status, Status::kOk);
  EXPECT_EQ(value_of("user1"), "one");
  EXPECT_EQ(store_->put("user1", std::string(1000, 'x'), now_).status, Status::kOk);
  EXPECT_EQ(value_of("user1"), std::string(1000, 'x'));
  EXPECT_EQ(store_->put("user1", "", now_).status, Status::kOk);
  EXPECT_EQ(value_of("user1"), "");
  EXPECT_EQ(store_->insert("user1", "two", now_).status, Status::kExists);
  EXPECT_EQ(store_->remove("user1").status, Status::kOk);
  EXPECT_EQ(value_of("user1"), name_of_absence());
  EXPECT_EQ(store_->remove("user1").status, Status::kNotFound);
  EXPECT_EQ(store_->insert("user1", "two", now_).status, Status::kOk);
  EXPECT_EQ(value_of("user1"), "two");
}

TEST_F(StoreTest, refuses_what_is_too_large) {
  EXPECT_EQ(store_->put("", "v", now_).status, Status::kTooLarge);
  EXPECT_EQ(store_->put(std::string(101, 'k'), "v", now_).status, Status::kTooLarge);
  EXPECT_EQ(store_->put("k", std::string(4001, 'v'), now_).status, Status::kTooLarge);
  EXPECT_EQ(store_->put(std::string(100, 'k'), std::string(4000, 'v'), now_).status, Status::kOk);
}

TEST_F(StoreTest, old_records_are_marked_before_their_slot_changes) {
  const Word first = store_->put("k", "1", now_).word;
  EXPECT_FALSE(open(first)->stale);
  const Word second = store_->put("k", "2", now_).word;
  EXPECT_TRUE(open(first)->stale);
  EXPECT_FALSE(open(second)->stale);
  store_->remove("k");
  EXPECT_TRUE(open(second)->stale);
}

TEST_F(StoreTest, keys_come_in_their_order) {
  for (const char* key : {"b", "d", "a", "c", "aa"}) store_->put(key, key, now_);
  store_->remove("c");
  std::string keys;
  store_->scan("aa", [&](std::string_view key, uint64_t slot, Word word) {
    EXPECT_EQ(store_->find(key).slot, slot);
    EXPECT_EQ(store_->find(key).word, word);
    keys.append(key).append(" ");
    return true;
  });
  EXPECT_EQ(keys, "aa b d ");
}

TEST_F(StoreTest, room_comes_back_when_records_are_replaced) {
  for (int i = 0; i < 10'000; ++i) {
    const std::string value(1 + i % 4000, static_cast<char>('a' + i % 26));
    ASSERT_EQ(store_->put("k" + std::to_string(i % 2), value, now_).status, Status::kOk) << i;
    ASSERT_EQ(value_of("k" + std::to_string(i % 2)), value) << i;
  }
  EXPECT_GT(store_->stat().sweeps, 100u);
}

TEST_F(StoreTest, says_full_and_goes_on_when_there_is_room) {
  int count = 0;
  while (store_->put("k" + std::to_string(count), std::string(1000, 'v'), now_).status == Status::kOk) ++count;
  EXPECT_EQ(count, 256 / 17);
  for (int i = 0; i < count; ++i) EXPECT_EQ(value_of("k" + std::to_string(i)), std::string(1000, 'v'));
  store_->remove("k3");
  EXPECT_EQ(store_->put("another", std::string(1000, 'w'), now_).status, Status::kOk);
  EXPECT_EQ(value_of("another"), std::string(1000, 'w'));
}

class FullIndexTest : public StoreTest {
 protected:
  FullIndexTest() : StoreTest(1, 4096) {}
};

TEST_F(FullIndexTest, lines_that_follow_take_keys_until_they_are_full_too) {
  const int slots = kSlots * (1 + Geometry::kMostReach);
  for (int i = 0; i < slots; ++i) ASSERT_EQ(store_->put(std::to_string(i), "v", now_).status, Status::kOk) << i;
  EXPECT_EQ(store_->put("more", "v", now_).status, Status::kFull);
  EXPECT_EQ(store_->put("7", "w", now_).status, Status::kOk) << "a key that is there needs no slot";
  EXPECT_EQ(store_->remove("100").status, Status::kOk);
  EXPECT_EQ(store_->put("more", "v", now_).status, Status::kOk);
  for (int i = 0; i < slots; ++i)
    EXPECT_EQ(value_of(std::to_string(i)), i == 100 ? name_of_absence() : i == 7 ? "w" : "v");
}

TEST_F(StoreTest, a_client_replaces_a_record_without_the_server) {
  const Store::Result old = store_->put("k", "old", now_);
  const Store::Grant grant = *store_->grant(kOwner, 1, now_);
  const Word next = write_into(grant, "k", "new");
  EXPECT_TRUE(mark(old.word));
  EXPECT_TRUE(publish(old.slot, old.word, next));
  EXPECT_EQ(value_of("k"), "new");
  EXPECT_FALSE(publish(old.slot, old.word, next)) << "of two clients one wins";
  EXPECT_EQ(store_->put("k", "newest", now_).word.tag(), next.tag());
  EXPECT_TRUE(open(next)->stale);
  EXPECT_EQ(value_of("k"), "newest");
}

TEST_F(StoreTest, a_key_that_was_removed_is_not_published_again) {
  const Store::Result old = store_->put("k", "old", now_);
  const Word next = write_into(*store_->grant(kOwner, 1, now_), "k", "new");
  store_->remove("k");
  EXPECT_FALSE(publish(old.slot, old.word, next));
  store_->put("k", "again", now_);
  EXPECT_FALSE(publish(old.slot, old.word, next)) << "the word is another one";
  EXPECT_EQ(value_of("k"), "again");
}

TEST_F(StoreTest, a_mark_that_comes_late_harms_nobody) {
  const Word old = store_->put("k", "old", now_).word;
  std::vector<Word> words;
  for (int i = 0; i < 600; ++i) {
    store_->put("k", std::to_string(i), now_);
    words.push_back(store_->find("k").word);
    if (i > 300 && words.back().unit() == old.unit()) break;
  }
  ASSERT_EQ(words.back().unit(), old.unit()) << "its place is in use again";
  EXPECT_FALSE(mark(old));
  EXPECT_FALSE(open(words.back())->stale);
}

class LargeStore : public StoreTest {
 protected:
  LargeStore() : StoreTest(1024, 65536) {}
};

TEST_F(LargeStore, a_grant_is_not_made_of_the_smallest_holes) {
  const auto name = [](int key) { return "k" + std::to_string(key); };
  for (int key = 0; key < 1000; ++key) ASSERT_EQ(store_->put(name(key), "v", now_).status, Status::kOk);
  for (int key = 0; key < 1000; key += 2) store_->remove(name(key));
  while (store_->grant(kOwner, 30000, now_) != nullptr) {  // until a sweep finds the holes of one unit
  }
  store_->forget(kOwner);
  ASSERT_NE(store_->grant(kOwner, 30000, now_), nullptr);  // and once more, which frees what was granted
  const Store::Grant grant = *store_->grant(kOwner + 1, 1, now_);
  uint64_t units = 0;
  for (Extent extent : grant.extents) units += extent.units;
  EXPECT_GE(units, 256u);
  EXPECT_LE(grant.extents.size(), 16u);
}

// The client wrote nothing, something, or all but the slot; or it died when it had published.
TEST_F(StoreTest, what_a_dead_client_was_granted_comes_back) {
  const Store::Result old = store_->put("k", "old", now_);
  const Store::Grant published = *store_->grant(kOwner, 1, now_);
  const Word next = write_into(published, "k", "new");
  EXPECT_TRUE(publish(old.slot, old.word, next));
  const Store::Grant* grant;
  while ((grant = store_->grant(kOwner, 50, now_)) != nullptr) write_into(*grant, "k", "never published");
  EXPECT_EQ(store_->put("big", std::string(4000, 'v'), now_).status, Status::kFull);
  store_->forget(kOwner);
  EXPECT_EQ(store_->stat().granted_units, 0u);
  EXPECT_EQ(store_->put("big", std::string(4000, 'v'), now_).status, Status::kOk);
  EXPECT_EQ(value_of("k"), "new") << "what it published stays";
}

TEST_F(StoreTest, what_a_client_released_comes_back_but_for_what_slots_name) {
  const Store::Result old = store_->put("k", "old", now_);
  const Store::Grant grant = *store_->grant(kOwner, 200, now_);
  const Word next = write_into(grant, "k", "new");
  publish(old.slot, old.word, next);
  EXPECT_FALSE(store_->release(kOwner + 1, grant.number)) << "it is not theirs";
  EXPECT_EQ(store_->put("big", std::string(4000, 'v'), now_).status, Status::kFull);
  EXPECT_TRUE(store_->release(kOwner, grant.number));
  EXPECT_FALSE(store_->release(kOwner, grant.number));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store_->put("big" + std::to_string(i), std::string(4000, 'v'), now_).status, Status::kOk);
  }
  EXPECT_EQ(value_of("k"), "new");
}

TEST_F(StoreTest, grants_have_room_for_the_record_that_they_were_asked_for) {
  for (int i = 0; i < 12; ++i) store_->put("k" + std::to_string(i), std::string(1000, 'v'), now_);
  for (int i = 0; i < 12; i += 2) store_->remove("k" + std::to_string(i));
  std::vector<Store::Grant> grants;
  while (const Store::Grant* grant = store_->grant(kOwner, 17, now_)) {
    for (Extent extent : grant->extents) EXPECT_GE(extent.units, 17u);
    grants.push_back(*grant);
    now_ += Store::kBetweenSweeps;
  }
  EXPECT_GE(grants.size(), 6u);
  EXPECT_EQ(store_->grant(kOwner, 0, now_), nullptr);
  EXPECT_EQ(store_->grant(kOwner, 1 << 20, now_), nullptr);
}

// A client may write anything anywhere. The server goes on.
TEST_F(StoreTest, words_that_lie_outside_the_heap_are_not_followed) {
  const uint64_t slot = store_->put("k", "v", now_).slot;
  const Word wild(Word::kMostHeapUnits - 1, Word::kMostUnits, 0, KeyHash::of("k", geometry_.seed).tag());
  shared_word(memory_.get() + slot).store(wild.bits());
  EXPECT_EQ(store_->find("k").status, Status::kNotFound);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(store_->put("other", std::string(500, 'v'), now_).status, Status::kOk);
}

TEST_F(StoreTest, agrees_with_a_map_whatever_is_done) {
  std::map<std::string, std::string> model;
  std::mt19937 random(7);
  for (int i = 0; i < 50'000; ++i) {
    const std::string key = "user" + std::to_string(random() % 40);
    const std::string value(random() % 300, static_cast<char>('a' + i % 26));
    switch (random() % 4) {
      case 0:
        ASSERT_EQ(store_->put(key, value, now_).status, Status::kOk);
        model[key] = value;
        break;
      case 1:
        ASSERT_EQ(store_->insert(key, value, now_).status == Status::kOk, model.emplace(key, value).second);
        break;
      case 2:
        ASSERT_EQ(store_->remove(key).status == Status::kOk, model.erase(key) == 1);
        break;
      case 3:
        ASSERT_EQ(value_of(key), model.contains(key) ? model[key] : name_of_absence());
        break;
    }
  }
  auto expected = model.begin();
  store_->scan("", [&](std::string_view key, uint64_t, Word word) {
    EXPECT_EQ(key, expected->first);
    EXPECT_EQ(open(word)->value, expected->second);
    return ++expected != model.end();
  });
  EXPECT_EQ(expected, model.end());
}

}  // namespace
}  // namespace ub::kv
