// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a page that is claimed: by eviction, by softub_sync(), or because its owner changes (UB 8.6). It is
// written back or not, then dropped or kept.
//
// Ownership is local, as in UB: that others own nothing while one owns a page for writing is a promise between the
// programs. What they have to do for it follows from it. Whoever stops writing sends what it wrote; whoever stops
// owning drops what will be old soon; whoever begins to own drops what may be old already. A reader that becomes the
// writer has nothing old, because nobody wrote while it was a reader.
#pragma once

#include "lib/urma/aperture/window/page_table.h"

namespace ub::aperture {

struct Treatment {
  bool write_back = false;  // if it is dirty
  bool drop = false;        // afterwards; what was not written back is lost
  Owned owned = Owned::kNone;

  bool changes(PageWord page) const {
    return (write_back && page.state == PageState::kDirty) || (drop && page.is_present()) || owned != page.owned;
  }
};

inline Treatment change_of_owner(Owned from, Owned to) {
  const bool gains = from == Owned::kNone && to != Owned::kNone;
  const bool loses = from != Owned::kNone && to == Owned::kNone;
  const bool stops_writing = from == Owned::kWrite && to == Owned::kRead;
  return {.write_back = gains || loses || stops_writing, .drop = gains || loses, .owned = to};
}

}  // namespace ub::aperture
