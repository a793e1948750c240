// SPDX-License-Identifier: Apache-2.0
#include "lib/base/fnv.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace ub {
namespace {

// Those of the authors of FNV (isthe.com/chongo/tech/comp/fnv).
TEST(Fnv, has_the_published_values) {
  EXPECT_EQ(fnv1a(std::string_view("")), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a(std::string_view("a")), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a(std::string_view("foobar")), 0x85944171f73967e8u);
}

TEST(Fnv, goes_on_where_another_one_ended) {
  EXPECT_EQ(fnv1a(std::string_view("bar"), fnv1a(std::string_view("foo"))), fnv1a(std::string_view("foobar")));
  EXPECT_EQ(fnv1a(std::array<uint8_t, 1>{0xff}), fnv1a(std::string_view("\xff"))) << "bytes have no sign";
}

}  // namespace
}  // namespace ub
