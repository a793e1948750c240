// SPDX-License-Identifier: Apache-2.0
//
// Lists of records that lie in a table (a Slab, or an array) and are named by index: whose turn it is, who waits. A list
// is one word, and a record has one word for each list that it may stand on, its ListLink; index 0 is nobody. All zero is
// an empty list, and a record on no list. A record that may leave from the middle has a DoubleLink of two words, so that
// nobody searches the list for its neighbour.
//
// The links make a ring: the list knows its last record, and that one the first. So each record on a list has a link that
// is not 0, which says that it stands there. Who calls sees to it that a record stands on one list of its kind at most;
// debug checks stop who puts it there twice, or takes it off a list where it is not.
//
//   IndexList waiting;                                        struct Queue { ListLink in_line; ... };
//   waiting.push_back<&Queue::in_line>(queues, 7);            queues: Slab<Queue> or Queue*
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "lib/base/assert.h"

namespace ub {

struct ListLink {
  uint32_t next = 0;

  explicit operator bool() const { return next != 0; }  // stands on the list
  bool operator==(const ListLink&) const = default;
};

struct DoubleLink : ListLink {
  uint32_t before = 0;
};

class IndexList {
 public:
  bool empty() const { return last_ == 0; }
  // The last one, 0: none. Whoever goes round once, while others join, is done behind it.
  uint32_t back() const { return last_; }
  // The first one; there is one.
  template <auto kLink, class Table>
  uint32_t front(const Table& table) const {
    return (table[last_].*kLink).next;
  }
  // The one behind it, 0: it was the last.
  template <auto kLink, class Table>
  uint32_t behind(const Table& table, uint32_t index) const {
    return index == last_ ? 0 : (table[index].*kLink).next;
  }

  // It stands on no list of that kind, and is not nobody.
  template <auto kLink, class Table>
  void push_back(Table& table, uint32_t index) {
    push_front<kLink>(table, index);
    last_ = index;
  }
  template <auto kLink, class Table>
  void push_front(Table& table, uint32_t index) {
    auto& link = table[index].*kLink;
    UB_DCHECK(index != 0 && !link);
    const uint32_t before = last_ == 0 ? index : last_;
    if (last_ == 0) link.next = last_ = index;
    auto& last = table[before].*kLink;
    link.next = last.next;
    last.next = index;
    stands_behind<kLink>(table, index, before);
    stands_behind<kLink>(table, link.next, index);
  }

  // There is one.
  template <auto kLink, class Table>
  uint32_t pop_front(Table& table) {
    UB_DCHECK(last_ != 0);
    return take_behind<kLink>(table, last_);
  }
  // It stands on this list, and has a DoubleLink.
  template <auto kLink, class Table>
  void remove(Table& table, uint32_t index) {
    UB_DCHECK(holds<kLink>(table, index));
    take_behind<kLink>(table, (table[index].*kLink).before);
  }

 private:
  template <auto kLink, class Table>
  bool holds(const Table& table, uint32_t index) const {
    if (last_ == 0) return false;
    uint32_t at = last_;
    do at = (table[at].*kLink).next;
    while (at != index && at != last_);
    return at == index;
  }

  template <auto kLink, class Table>
  static void stands_behind(Table& table, uint32_t index, uint32_t before) {
    auto& link = table[index].*kLink;
    if constexpr (std::derived_from<std::remove_reference_t<decltype(link)>, DoubleLink>) link.before = before;
  }

  template <auto kLink, class Table>
  uint32_t take_behind(Table& table, uint32_t before) {
    auto& former = table[before].*kLink;
    const uint32_t index = former.next;
    if (index == before) {  // alone
      former.next = last_ = 0;
      return index;
    }
    auto& link = table[index].*kLink;
    former.next = link.next;
    stands_behind<kLink>(table, link.next, before);
    link.next = 0;
    if (index == last_) last_ = before;
    return index;
  }

  uint32_t last_ = 0;
};

}  // namespace ub
