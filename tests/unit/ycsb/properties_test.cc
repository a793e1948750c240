// SPDX-License-Identifier: Apache-2.0
//
// Property files as Java reads them, and sentences about what is wrong with a property.
#include "tools/ycsb/properties.h"

#include <gtest/gtest.h>

#include "tests/unit/ycsb/sentences.h"

namespace ub::ycsb {
namespace {

Properties read(std::string_view text) {
  Properties properties;
  properties.read_text(text, "file");
  return properties;
}

TEST(Properties, forms_of_a_line) {
  const Properties p = read(
      "# a comment\n"
      "! another one\n"
      "\n"
      "recordcount = 1000\n"
      "  table:users  \n"
      "fieldlength 10\r\n"
      "path=a=b\n"
      "list=1,\\\n"
      "     2\n"
      "empty=\n"
      "last=word");
  EXPECT_EQ(p.number("recordcount", 0), 1000u);
  EXPECT_EQ(p.text("table", ""), "users");
  EXPECT_EQ(p.number("fieldlength", 0), 10u);
  EXPECT_EQ(p.text("path", ""), "a=b");
  EXPECT_EQ(p.text("list", ""), "1,2");
  EXPECT_TRUE(p.has("empty"));
  EXPECT_EQ(p.text("empty", "x"), "");
  EXPECT_EQ(p.text("last", ""), "word");
}

TEST(Properties, what_comes_later_wins) {
  Properties p = read("threadcount=1\nthreadcount=2\n");
  EXPECT_EQ(p.number("threadcount", 0), 2u);
  p.set_pair("threadcount=3");
  EXPECT_EQ(p.number("threadcount", 0), 3u);
}

TEST(Properties, what_is_missing_has_its_default) {
  const Properties p = read("");
  EXPECT_EQ(p.number("a", 7), 7u);
  EXPECT_EQ(p.real("b", 0.5, 0, 1), 0.5);
  EXPECT_TRUE(p.flag("c", true));
  EXPECT_EQ(p.choice("d", "x", {"x", "y"}), "x");
}

TEST(Properties, a_bad_value_is_told_with_its_place_and_what_would_be_right) {
  const Properties p = read("\nn=12x\nr=1.5\nf=yes\nc=z\nneg=-1\n");
  expect_sentence([&] { p.number("n", 0); }, {"n=12x", "file:2", "whole number of at least 0"});
  expect_sentence([&] { p.number("neg", 0, 1, 9); }, {"neg=-1", "file:6", "from 1 to 9"});
  expect_sentence([&] { p.real("r", 0, 0, 1); }, {"r=1.5", "file:3", "from 0 to 1"});
  expect_sentence([&] { p.flag("f", false); }, {"f=yes", "true, false"});
  expect_sentence([&] { p.choice("c", "x", {"x", "y"}); }, {"c=z", "x, y"});
}

TEST(Properties, a_line_or_a_pair_without_a_name_is_an_error) {
  expect_sentence([] { read("a=1\n=2\n"); }, {"file:2", "no name"});
  expect_sentence([] { Properties().set_pair("recordcount"); }, {"-p recordcount", "name=value"});
  expect_sentence([] { Properties().set_pair("=5"); }, {"name=value"});
  expect_sentence([] { Properties().read_file("/nonexistent/workload"); }, {"/nonexistent/workload", "No such file"});
}

TEST(Properties, names_that_nobody_asked_for_are_told) {
  const Properties p = read("recordcount=1\nrecordcuont=2\n");
  p.number("recordcount", 0);
  EXPECT_EQ(p.unread(), std::vector<std::string>{"recordcuont"});
}

}  // namespace
}  // namespace ub::ycsb
