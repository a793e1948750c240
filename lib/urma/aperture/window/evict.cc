// SPDX-License-Identifier: Apache-2.0
//
// Room in the cache of a window: free slots, and those of pages that the clock chooses to go.
#include <algorithm>

#include "lib/urma/aperture/window/cached_window.h"

namespace ub::aperture {
namespace {

// The clock passes over so many pages that were referenced, then it takes the next one whatever it is: to look at a
// whole large cache would take milliseconds.
constexpr uint32_t kSecondChances = 64;
// After one page was found, the clock looks at so many more for the others that are wanted.
constexpr uint32_t kMoreLooks = 64;

}  // namespace

// The first page of the run gets a slot, whatever has to go for it. Those behind it get what is free then; without one
// they are released. An error: nothing has a slot, and nothing was released.
urma_cr_status_t CachedWindow::take_slots(Run& run, PageRange keep) {
  for (Patience patience; !slots_.take(run.first, &run.words[0].slot);) {
    uint32_t evicted = 0;
    const urma_cr_status_t status = evict(run.count, keep, &evicted);
    if (status != URMA_CR_SUCCESS) return status;
    if (evicted > 0) continue;
    counters_.slot_waits.add();
    patience.wait();
  }
  uint32_t with_slot = 1;
  while (with_slot < run.count && slots_.take(run.first + with_slot, &run.words[with_slot].slot)) ++with_slot;
  for (; run.count > with_slot; --run.count) table_.release(run.first + run.count - 1, run.words[run.count - 1]);
  return URMA_CR_SUCCESS;
}

// Up to `wanted` pages go. None and no error: others work on all that could go. What cannot be written back stays, and
// clean pages go instead; if there is none, that is an error.
urma_cr_status_t CachedWindow::evict(uint32_t wanted, PageRange keep, uint32_t* evicted) {
  urma_cr_status_t status = URMA_CR_SUCCESS;
  for (const bool clean_only : {false, true}) {
    Claim claims[kMaxRun];
    const std::span<Claim> victims(claims, claim_victims({claims, wanted}, keep, clean_only));
    if (victims.empty()) return status;
    status = settle(victims);
    for (const Claim& victim : victims) *evicted += victim.status == URMA_CR_SUCCESS ? 1 : 0;
    counters_.evicted_pages.add(*evicted);
    if (*evicted > 0) return URMA_CR_SUCCESS;
  }
  return status;
}

// How many it has claimed.
uint32_t CachedWindow::claim_victims(std::span<Claim> claims, PageRange keep, bool clean_only) {
  uint32_t found = 0;
  uint32_t chances = kSecondChances;
  for (uint64_t looks = 2 * uint64_t{slots_.count()}; looks > 0 && found < claims.size(); --looks) {
    const uint32_t slot = slots_.advance_hand();
    uint64_t page;
    if (!slots_.page_in(slot, &page) || keep.contains(page)) continue;
    const PageWord seen = table_.look(page);
    if (!seen.is_present() || (clean_only && seen.state == PageState::kDirty)) continue;
    if (seen.referenced && chances > 0) {
      --chances;
      table_.forget_reference(page, seen);
    } else if (table_.claim(page, seen)) {
      claims[found++] = {page, seen, {.write_back = true, .drop = true, .owned = seen.owned}};
      looks = std::min<uint64_t>(looks, kMoreLooks);
    }
  }
  return found;
}

}  // namespace ub::aperture
