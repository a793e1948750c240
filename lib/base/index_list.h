// SPDX-License-Identifier: Apache-2.0
//
// Lists of records that lie in a table (a Slab, or an array) and are named by index: whose turn it is, who waits. A list
// is one word, and a record has one word for each list that it may stand on, its ListLink; index 0 is nobody. All zero is
// an empty list, and a record on no list.
//
// The links make a ring: the list knows its last record, and that one the first. So each record on a list has a link that
// is not 0, which says that it stands there. Who calls sees to it that a record stands on one list of its kind at most;
// debug checks stop who puts it there twice, or takes it off a list where it is not.
//
//   IndexList waiting;                                        struct Queue { ListLink in_line; ... };
//   waiting.push_back<&Queue::in_line>(queues, 7);            queues: Slab<Queue> or Queue*
#pragma once

#include <cstdint>

#include "lib/base/assert.h"

namespace ub {

struct ListLink {
  uint32_t next = 0;

  explicit operator bool() const { return next != 0; }  // stands on the list
  bool operator==(const ListLink&) const = default;
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
    ListLink& link = table[index].*kLink;
    UB_DCHECK(index != 0 && !link);
    if (last_ == 0) {
      last_ = link.next = index;
      return;
    }
    ListLink& last = table[last_].*kLink;
    link.next = last.next;
    last.next = index;
  }

  // There is one.
  template <auto kLink, class Table>
  uint32_t pop_front(Table& table) {
    UB_DCHECK(last_ != 0);
    return take_behind<kLink>(table, last_);
  }
  // It stands on this list. Goes round to find who stands before it.
  template <auto kLink, class Table>
  void remove(Table& table, uint32_t index) {
    UB_DCHECK(last_ != 0 && table[index].*kLink);
    uint32_t before = last_;
    while ((table[before].*kLink).next != index) {
      before = (table[before].*kLink).next;
      UB_DCHECK(before != last_);  // it stands on another list
    }
    take_behind<kLink>(table, before);
  }

 private:
  template <auto kLink, class Table>
  uint32_t take_behind(Table& table, uint32_t before) {
    ListLink& former = table[before].*kLink;
    const uint32_t index = former.next;
    if (index == before) {  // alone
      former.next = last_ = 0;
      return index;
    }
    ListLink& link = table[index].*kLink;
    former.next = link.next;
    link.next = 0;
    if (index == last_) last_ = before;
    return index;
  }

  uint32_t last_ = 0;
};

}  // namespace ub
