// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "apps/file_copy/checksum.h"

namespace ub::apps {
namespace {

uint64_t sum(const std::string& s, size_t piece = 1 << 20) {
  Xxh64 x;
  for (size_t i = 0; i < s.size(); i += piece) x.update(s.data() + i, std::min(piece, s.size() - i));
  return x.digest();
}

TEST(Xxh64, KnownValues) {
  EXPECT_EQ(sum(""), 0xef46db3751d8e999u);
  EXPECT_EQ(sum("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(sum("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(sum("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
}

TEST(Xxh64, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37 + i / 11);
  for (size_t length : {0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 64, 65, 999, 1000}) {
    const std::string s = text.substr(0, length);
    for (size_t piece : {1, 2, 5, 31, 32, 33, 100}) EXPECT_EQ(sum(s, piece), sum(s)) << length << " by " << piece;
  }
}

}  // namespace
}  // namespace ub::apps
