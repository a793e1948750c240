// SPDX-License-Identifier: Apache-2.0
//
// Turns of senders at a port that is full. A sender that has sent something goes to the back of the line; one that
// found no room at all goes back to the front. Otherwise the same senders would take the room that comes free each
// time, and the others would always find the port full.
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
