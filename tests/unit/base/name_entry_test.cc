// SPDX-License-Identifier: Apache-2.0
// What may be a name, its ids, and entries as they are read by somebody else.
#include "lib/base/name_entry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace ub {
namespace {

constexpr PublicSegment kSegment = {0x7f00'1234'5000, 4096, 70'000, 0x0e, true};

TEST(Name, alphabet_and_length) {
  for (const char* good : {"a", "table", "A-z_0.9:x", "-"}) EXPECT_TRUE(is_name(good)) << good;
  for (const char* bad : {"", "a b", "a@b", "a/b", "\xc3\xa4", "a\n"}) EXPECT_FALSE(is_name(bad)) << bad;
  EXPECT_FALSE(is_name(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_name(std::string(kMaxNameBytes, 'x')));
  EXPECT_FALSE(is_name(std::string(kMaxNameBytes + 1, 'x')));
}

TEST(Name, ids__are_different_and_in_their_range) {
  for (int i = 0; i < 2000; ++i) {
    const auto ids = ids_of_name("name" + std::to_string(i));
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), kIdsOfName);
    for (const uint32_t id : ids) EXPECT_TRUE(id >= kFirstNameId && id < kFirstNameId + kNameIds) << id;
  }
}

// Programs of two releases have to look in the same places.
TEST(Name, ids__never_change) {
  EXPECT_EQ(ids_of_name("table")[0], 1087u);
  EXPECT_EQ(ids_of_name("table")[1], 2920u);
}

TEST(NameEntry, comes_back) {
  for (const std::string& name : {std::string("table"), std::string(kMaxNameBytes, 'x')}) {
    NameEntryBytes bytes;
    write_name_entry(name, kSegment, &bytes);
    const auto read = read_name_entry(name, bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->address, kSegment.address);
    EXPECT_EQ(read->length, kSegment.length);
    EXPECT_EQ(read->token_id, kSegment.token_id);
    EXPECT_EQ(read->access, kSegment.access);
    EXPECT_EQ(read->token_required, kSegment.token_required);
  }
}

TEST(NameEntry, of_another_name_or_none__is_refused) {
  NameEntryBytes bytes{};
  EXPECT_FALSE(read_name_entry("table", bytes));
  EXPECT_FALSE(read_name_entry("", bytes));
  write_name_entry("table", kSegment, &bytes);
  for (const char* other : {"tabl", "table1", "Table", ""}) EXPECT_FALSE(read_name_entry(other, bytes)) << other;
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(read_name_entry("table", bytes)) << "another version";
  bytes.fill(std::byte{'x'});
  EXPECT_FALSE(read_name_entry(std::string(64, 'x'), bytes));
}

TEST(NameEntry, range_that_is_empty_or_wraps__is_refused) {
  NameEntryBytes bytes;
  for (const auto& [address, length] : {std::pair<uint64_t, uint64_t>{5, 0}, {UINT64_MAX - 9, 100}}) {
    write_name_entry("table", {address, length, 70'000, 2, false}, &bytes);
    EXPECT_FALSE(read_name_entry("table", bytes)) << address;
  }
}

}  // namespace
}  // namespace ub
