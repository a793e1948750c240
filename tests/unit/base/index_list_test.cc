// SPDX-License-Identifier: Apache-2.0
#include "lib/base/index_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "lib/base/prng.h"

namespace ub {
namespace {

template <class Link>
struct LineOf {
  struct Record {
    Link in_line, elsewhere;
  };
  std::vector<Record> records = std::vector<Record>(9);
  IndexList list;

  void push(uint32_t i) { list.push_back<&Record::in_line>(records, i); }
  void push_first(uint32_t i) { list.push_front<&Record::in_line>(records, i); }
  void insert(uint32_t i, uint32_t place) { list.insert_before<&Record::in_line>(records, i, place); }
  uint32_t pop() { return list.pop_front<&Record::in_line>(records); }
  void remove(uint32_t i) { list.remove<&Record::in_line>(records, i); }
  std::vector<uint32_t> all() const {
    std::vector<uint32_t> line;
    if (list.empty()) return line;
    for (uint32_t i = list.front<&Record::in_line>(records); i != 0;) {
      line.push_back(i);
      i = list.behind<&Record::in_line>(records, i);
    }
    return line;
  }
};
using Line = LineOf<DoubleLink>;
using Record = Line::Record;

using Indices = std::vector<uint32_t>;

TEST(IndexList, is_one_word_and_empty_when_it_is_zero) {
  static_assert(sizeof(IndexList) == sizeof(uint32_t) && sizeof(ListLink) == sizeof(uint32_t));
  static_assert(sizeof(DoubleLink) == 2 * sizeof(uint32_t));
  Line l;
  EXPECT_TRUE(l.list.empty());
  EXPECT_EQ(l.list.back(), 0u);
  EXPECT_FALSE(l.records[1].in_line);
}

TEST(IndexList, who_came_first_leaves_first) {
  Line l;
  for (uint32_t i : {3u, 1u, 2u}) l.push(i);
  EXPECT_EQ(l.all(), (Indices{3, 1, 2}));
  EXPECT_EQ(l.list.back(), 2u);
  EXPECT_EQ(l.pop(), 3u);
  l.push(3);
  EXPECT_EQ(l.all(), (Indices{1, 2, 3}));
  for (uint32_t i : {1u, 2u, 3u}) EXPECT_EQ(l.pop(), i);
  EXPECT_TRUE(l.list.empty());
}

TEST(IndexList, who_is_put_in_front_leaves_next) {
  Line l;
  for (uint32_t i : {1u, 2u, 3u}) l.push_first(i);
  EXPECT_EQ(l.all(), (Indices{3, 2, 1}));
  l.push(4);
  EXPECT_EQ(l.all(), (Indices{3, 2, 1, 4}));
}

TEST(IndexList, a_record_says_whether_it_stands_there) {
  Line l;
  l.push(1);
  EXPECT_TRUE(l.records[1].in_line) << "alone";
  EXPECT_FALSE(l.records[1].elsewhere);
  l.push(2);
  EXPECT_TRUE(l.records[2].in_line) << "last";
  l.pop();
  EXPECT_FALSE(l.records[1].in_line);
  EXPECT_TRUE(l.records[2].in_line);
  l.remove(2);
  EXPECT_FALSE(l.records[2].in_line);
}

TEST(IndexList, any_may_leave) {
  for (uint32_t gone : {1u, 2u, 3u}) {
    Line l;
    Indices left;
    for (uint32_t i : {1u, 2u, 3u}) {
      l.push(i);
      if (i != gone) left.push_back(i);
    }
    l.remove(gone);
    EXPECT_EQ(l.all(), left);
    l.push(gone);
    left.push_back(gone);
    EXPECT_EQ(l.all(), left) << "and come again";
  }
}

TEST(IndexList, a_round_ends_behind_who_was_last_when_it_began) {
  Line l;
  for (uint32_t i : {1u, 2u, 3u}) l.push(i);
  Indices turns;
  for (uint32_t last = l.list.back(), i = 0; i != last;) {
    turns.push_back(i = l.pop());
    l.push(i);
  }
  EXPECT_EQ(turns, (Indices{1, 2, 3}));
  EXPECT_EQ(l.all(), (Indices{1, 2, 3}));
}

#ifndef NDEBUG
TEST(IndexListDeathTest, a_record_joins_once_and_nobody_joins) {
  Line l;
  l.push(1);
  EXPECT_DEATH(l.push(1), "!link") << "alone";
  l.push(2);
  for (uint32_t i : {0u, 1u, 2u}) {
    EXPECT_DEATH(l.push(i), "!link") << i;
    EXPECT_DEATH(l.push_first(i), "!link") << i;
  }
}

TEST(IndexListDeathTest, nobody_leaves_an_empty_list) {
  Line l;
  EXPECT_DEATH(l.pop(), "last_ != 0");
  EXPECT_DEATH(l.remove(1), "holds");
}

TEST(IndexListDeathTest, who_stands_elsewhere_or_nowhere_does_not_leave) {
  Line l;
  IndexList other;
  for (uint32_t i : {1u, 2u}) {
    l.push(i);
    other.push_back<&Record::in_line>(l.records, i + 2);
    EXPECT_DEATH(l.remove(i + 2), "holds");
    EXPECT_DEATH(l.remove(5), "holds");
  }
}
#endif

TEST(IndexList, who_comes_before_another_stands_in_front_of_it_wherever_that_is) {
  for (const uint32_t place : {1u, 2u, 3u}) {
    Line l;
    for (uint32_t i : {1u, 2u, 3u}) l.push(i);
    l.insert(7, place);
    Indices expected = {1, 2, 3};
    expected.insert(expected.begin() + place - 1, 7);
    EXPECT_EQ(l.all(), expected);
    EXPECT_EQ(l.list.back(), 3u);
    l.remove(place);  // whose neighbour is another one now
    l.remove(7);
    l.push(7);
    std::erase(expected, place);
    std::erase(expected, 7u);
    expected.push_back(7);
    EXPECT_EQ(l.all(), expected);
  }
  Line alone;
  alone.push(4);
  alone.insert(5, 4);
  EXPECT_EQ(alone.all(), (Indices{5, 4}));
}

template <class Link>
void compare_with_deque() {
  Prng prng(1);
  LineOf<Link> l;
  std::deque<uint32_t> model;
  for (int step = 0; step < 10'000; ++step) {
    const uint32_t i = 1 + prng.next_u32() % 8;
    const auto at = std::find(model.begin(), model.end(), i);
    switch (prng.next_u32() % 4) {
      case 0:
        if (at != model.end()) break;
        l.push(i);
        model.push_back(i);
        break;
      case 1:
        if (at != model.end()) break;
        l.push_first(i);
        model.push_front(i);
        break;
      case 2:
        if constexpr (std::is_same_v<Link, DoubleLink>) {
          if (at == model.end()) break;
          l.remove(i);
          model.erase(at);
        }
        break;
      default:
        if (model.empty()) break;
        ASSERT_EQ(l.pop(), model.front());
        model.pop_front();
    }
    ASSERT_EQ(l.all(), Indices(model.begin(), model.end())) << "step " << step;
  }
}

TEST(IndexList, does_what_a_deque_does) { compare_with_deque<ListLink>(); }
TEST(IndexList, does_what_a_deque_does_where_any_may_leave) { compare_with_deque<DoubleLink>(); }

}  // namespace
}  // namespace ub
