// SPDX-License-Identifier: Apache-2.0
//
// Turns at a port that is full. Who has sent something goes behind the others; who found no room at all keeps its place
// before it. Otherwise the same ones would take the room that comes free, and the rest would find the port full each
// time.
#pragma once

#include "lib/base/index_list.h"

namespace ub {

// Puts those of `first`, who stand on no list of this kind but that one, in front of `line`.
template <auto kLink, class Table>
[[gnu::noinline, gnu::cold]] void put_first(Table& table, IndexList first, IndexList& line) {
  while (!line.empty()) first.push_back<kLink>(table, line.pop_front<kLink>(table));
  line = first;
}

}  // namespace ub
