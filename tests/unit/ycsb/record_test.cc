// SPDX-License-Identifier: Apache-2.0
//
// Records: fields in one value, and the values that dataintegrity=true checks.
#include "tools/ycsb/record.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/ycsb/workload.h"
#include "tools/ycsb/key_name.h"
#include "tools/ycsb/stores/record_map.h"
#include "tools/ycsb/values.h"

namespace ub::ycsb {
namespace {

using Fields = std::map<uint32_t, std::string>;

Fields fields_of(const RecordFormat& format, std::string_view record) {
  Fields fields;
  EXPECT_TRUE(format.for_each(record, [&](uint32_t field, std::string_view value) { fields[field] = value; }));
  return fields;
}

std::string record_of(const RecordFormat& format, const Fields& fields) {
  std::string record;
  for (const auto& [field, value] : fields) format.append(&record, field, value);
  return record;
}

TEST(RecordFormat, fields_are_read_as_they_were_written) {
  const RecordFormat format(3);
  const Fields fields = {{0, "first"}, {1, ""}, {2, std::string(70'000, 'x')}};
  EXPECT_EQ(fields_of(format, record_of(format, fields)), fields);
  EXPECT_EQ(record_of(format, {{2, "ab"}}), std::string("\x02\x00\x02\x00\x00\x00"
                                                        "ab",
                                                        8));
}

TEST(RecordFormat, one_field_stands_bare) {
  const RecordFormat format(1);
  EXPECT_EQ(record_of(format, {{0, "value"}}), "value");
  std::string record = "value";
  format.merge(&record, "another one");
  EXPECT_EQ(record, "another one");
}

TEST(RecordFormat, changes_replace_fields_of_any_length_and_leave_the_others) {
  const RecordFormat format(3);
  std::string record = record_of(format, {{0, "a"}, {1, "bb"}, {2, "ccc"}});
  format.merge(&record, record_of(format, {{1, "a longer one"}}));
  format.merge(&record, record_of(format, {{2, ""}, {0, "z"}}));
  EXPECT_EQ(fields_of(format, record), (Fields{{0, "z"}, {1, "a longer one"}, {2, ""}}));
}

TEST(RecordFormat, one_field_is_copied_out) {
  const RecordFormat format(3);
  const std::string record = record_of(format, {{0, "a"}, {1, "bb"}});
  std::string part;
  format.copy(record, 1, &part);
  EXPECT_EQ(fields_of(format, part), (Fields{{1, "bb"}}));
  part.clear();
  format.copy(record, 2, &part);
  EXPECT_EQ(part, "");
  format.copy(record, RecordFormat::kAllFields, &part);
  EXPECT_EQ(part, record);
}

TEST(RecordFormat, bytes_that_are_no_record_are_noticed) {
  const RecordFormat format(3);
  const std::string record = record_of(format, {{0, "a"}, {1, "bb"}});
  const size_t first = record_of(format, {{0, "a"}}).size();
  for (size_t size = 1; size < record.size(); ++size) {
    const bool whole = format.for_each(record.substr(0, size), [](uint32_t, std::string_view) {});
    EXPECT_EQ(whole, size == first) << size;
  }
}

TEST(RecordMap, holds_records_and_their_order) {
  RecordMap map(true);
  const RecordFormat format(1);
  for (const char* key : {"c", "a", "d", "b"}) map.insert(key, std::string("of ") + key);
  map.insert("a", "new");
  std::string found;
  EXPECT_TRUE(map.read("a", RecordFormat::kAllFields, format, &found));
  EXPECT_EQ(found, "new");
  EXPECT_TRUE(map.update("c", "changed", format));
  EXPECT_FALSE(map.update("e", "x", format));
  EXPECT_FALSE(map.read("e", RecordFormat::kAllFields, format, &found));
  std::string keys;
  map.scan("aa", 2, [&](std::string_view key) { keys += key; });
  EXPECT_EQ(keys, "bc");
}

TEST(KeyName, is_that_of_ycsb) {
  KeyName key;
  key.set(workload("recordcount=1\n"), 0);
  EXPECT_EQ(key.view(), "user6284781860667377211");
  key.set(workload("recordcount=1\ninsertorder=ordered\n"), 42);
  EXPECT_EQ(key.view(), "user42");
  key.set(workload("recordcount=1\ninsertorder=ordered\nzeropadding=5\n"), 42);
  EXPECT_EQ(key.view(), "user00042");
  const std::string longest(200 - 20, '0');
  key.set(workload("recordcount=1\ninsertorder=ordered\nzeropadding=200\n"), UINT64_MAX);
  EXPECT_EQ(key.view(), "user" + longest + "18446744073709551615");
}

TEST(Values, have_the_length_and_are_printable) {
  const Spec spec = workload("recordcount=1\nfieldcount=2\nfieldlength=33\n");
  Values values(spec);
  Prng random(1);
  std::string record;
  values.append(&record, "user1", RecordFormat::kAllFields, random);
  for (const auto& [field, value] : fields_of(RecordFormat(2), record)) {
    EXPECT_EQ(value.size(), 33u);
    for (const char c : value) EXPECT_TRUE(c >= ' ' && c <= '_');
  }
}

// The numbers are what String.hashCode() of Java says of all that stands before them.
TEST(Values, data_integrity_derives_them_from_key_and_field_as_ycsb_does) {
  const Spec spec = workload("recordcount=1\nfieldcount=1\nfieldlength=30\ndataintegrity=true\n");
  Values values(spec);
  Prng random(1);
  std::string record;
  values.append(&record, "user1", 0, random);
  EXPECT_EQ(record, "user1:field0:-1268391216:95720");
}

TEST(Values, data_integrity_notices_each_fault) {
  const Spec spec = workload("recordcount=1\nfieldcount=3\nfieldlength=50\ndataintegrity=true\n");
  Values values(spec);
  Prng random(1);
  std::string record, one;
  values.append(&record, "user1", RecordFormat::kAllFields, random);
  values.append(&one, "user1", 2, random);
  EXPECT_TRUE(values.check(record, "user1", RecordFormat::kAllFields));
  EXPECT_TRUE(values.check(one, "user1", 2));
  EXPECT_FALSE(values.check(record, "user2", RecordFormat::kAllFields));  // of another record
  EXPECT_FALSE(values.check(one, "user1", RecordFormat::kAllFields));     // fields are missing
  EXPECT_FALSE(values.check(one, "user1", 1));                            // another field
  EXPECT_FALSE(values.check("", "user1", RecordFormat::kAllFields));
  EXPECT_FALSE(values.check(record + one, "user1", RecordFormat::kAllFields));  // a field stands there twice
  for (size_t i = 0; i < record.size(); i += 7) {
    std::string damaged = record;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(values.check(damaged, "user1", RecordFormat::kAllFields)) << i;
  }
}

}  // namespace
}  // namespace ub::ycsb
