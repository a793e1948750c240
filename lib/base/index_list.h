// SPDX-License-Identifier: Apache-2.0
//
// Lists of records that lie in a table (a Slab or an array) and are named by their index, for example of those who wait
// for their turn. A list is one word, and a record has one word, its ListLink, for each list that it may stand on.
// Index 0 names nobody. All zero is an empty list, or a record that is on no list. A record that may leave from the
// middle has a DoubleLink of two words, so that nobody has to search the list for its neighbour.
//
// The links make a ring: the list knows its last record, and the last record knows the first. So each record on a list
// has a link that is not 0, which says that it stands there. The caller makes sure that a record stands on at most one
// list of its kind. Debug checks stop a caller that puts a record there twice, or takes it off a list where it is not.
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

  explicit operator bool() const { return next != 0; }  // the record stands on the list
  bool operator==(const ListLink&) const = default;
};

struct DoubleLink : ListLink {
  uint32_t before = 0;
};

class IndexList {
 public:
  bool empty() const { return last_ == 0; }
  // The last record; 0: the list is empty. A caller that goes round once while others join is done after this record.
  uint32_t back() const { return last_; }
  // The first record. The list must not be empty.
  template <auto kLink, class Table>
  uint32_t front(const Table& table) const {
    return (table[last_].*kLink).next;
  }
  // The record behind this one; 0: this one is the last.
  template <auto kLink, class Table>
  uint32_t behind(const Table& table, uint32_t index) const {
    return index == last_ ? 0 : (table[index].*kLink).next;
  }

  // The record must stand on no list of this kind, and its index must not be 0.
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

  // The record comes to stand in front of `place`, which stands on this list. Records must have a DoubleLink.
  template <auto kLink, class Table>
  void insert_before(Table& table, uint32_t index, uint32_t place) {
    UB_DCHECK(index != 0 && !(table[index].*kLink) && holds<kLink>(table, place));
    const uint32_t before = (table[place].*kLink).before;
    (table[index].*kLink).next = place;
    (table[before].*kLink).next = index;
    stands_behind<kLink>(table, index, before);
    stands_behind<kLink>(table, place, index);
  }

  // The list must not be empty.
  template <auto kLink, class Table>
  uint32_t pop_front(Table& table) {
    UB_DCHECK(last_ != 0);
    return take_behind<kLink>(table, last_);
  }
  // The record must stand on this list, and it must have a DoubleLink.
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
    if (index == before) {  // it is the only one
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
