// SPDX-License-Identifier: Apache-2.0
//
// The segments of one token id, in the order of their addresses: a treap whose nodes are the records of the table.
// Segments of a token id do not overlap, so the one that may hold an address is the last that begins there or before.
//
// Applications choose the addresses, the order and the number of their segments, and must not slow down other
// applications by that. So the depth of the tree depends on Segment::priority alone, which is random and not known to
// applications.
#pragma once

#include "lib/base/slab.h"
#include "lib/transport/resource/records.h"

namespace ub {

// Works on a table and a root (0: the tree is empty), which both belong to the caller.
class SegmentTree {
 public:
  SegmentTree(Slab<Segment>& table, uint32_t& root) : table_(table), root_(root) {}

  // The last segment that begins at the address or before; 0: none.
  uint32_t at_or_before(uint64_t address) const {
    uint32_t found = 0;
    for (uint32_t i = root_; i != 0;) {
      const Segment& s = table_[i];
      const bool fits = s.address <= address;
      if (fits) found = i;
      i = fits ? s.right : s.left;
    }
    return found;
  }

  // The first segment that begins at the address or behind; 0: none.
  uint32_t at_or_behind(uint64_t address) const {
    uint32_t found = 0;
    for (uint32_t i = root_; i != 0;) {
      const Segment& s = table_[i];
      const bool fits = s.address >= address;
      if (fits) found = i;
      i = fits ? s.left : s.right;
    }
    return found;
  }

  // Does a segment contain any of these bytes? `bytes` is not 0, and the range does not wrap.
  bool overlaps(uint64_t address, uint64_t bytes) const {
    const uint32_t last = at_or_before(address + bytes - 1);
    return last != 0 && table_[last].address + table_[last].length > address;
  }

  // Inserts a segment that overlaps none in the tree. Its address, length and priority must be set.
  void insert(uint32_t index) {
    Segment& added = table_[index];
    UB_DCHECK(!overlaps(added.address, added.length));
    uint32_t* link = &root_;
    while (*link != 0 && table_[*link].priority >= added.priority) link = way_to(added.address, *link);
    // It takes the place of this subtree, which is split into the segments before and behind it.
    uint32_t rest = *link;
    *link = index;
    uint32_t* before = &added.left;
    uint32_t* behind = &added.right;
    while (rest != 0) {
      Segment& s = table_[rest];
      if (s.address < added.address) {
        *before = rest;
        before = &s.right;
        rest = s.right;
      } else {
        *behind = rest;
        behind = &s.left;
        rest = s.left;
      }
    }
    *before = *behind = 0;
  }

  // Removes a segment that is in the tree.
  void remove(uint32_t index) {
    uint32_t* link = &root_;
    while (*link != index) {
      UB_DCHECK(*link != 0);
      link = way_to(table_[index].address, *link);
    }
    uint32_t before = table_[index].left, behind = table_[index].right;
    while (before != 0 && behind != 0) {
      if (table_[before].priority >= table_[behind].priority) {
        *link = before;
        link = &table_[before].right;
        before = *link;
      } else {
        *link = behind;
        link = &table_[behind].left;
        behind = *link;
      }
    }
    *link = before != 0 ? before : behind;
  }

 private:
  uint32_t* way_to(uint64_t address, uint32_t from) {
    return address < table_[from].address ? &table_[from].left : &table_[from].right;
  }

  Slab<Segment>& table_;
  uint32_t& root_;
};

}  // namespace ub
