// SPDX-License-Identifier: Apache-2.0
//
// What programs and the one who drives ask of a window: sync(), own(), close(), flush_due().
#include <algorithm>

#include "lib/urma/aperture/window/cached_window.h"
#include "lib/urma/aperture/window/signals_blocked.h"

namespace ub::aperture {
namespace {

constexpr uint32_t kAllFlags =
    kSyncFlush | kSyncInvalidate | kSyncDiscard | kSyncPrefetch | kSyncResident | kSyncWritable;

}  // namespace

// Pages are settled many at a time, so that they share the wait for the answers of their stores.
struct CachedWindow::Batch {
  CachedWindow& window;
  uint32_t count = 0;
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  Claim claims[32];

  explicit Batch(CachedWindow& w) : window(w) {}
  void add(const Claim& claim) {
    claims[count++] = claim;
    if (count == std::size(claims)) finish();
  }
  void finish() {
    const urma_cr_status_t status = window.settle({claims, count});
    if (first_error == URMA_CR_SUCCESS) first_error = status;
    count = 0;
  }
};

// Adds a page to the batch if what decide(its word) says changes it. To wait for a page, the thread must hold none.
template <class Decide>
void CachedWindow::treat_page(uint64_t page, Batch& batch, Decide decide) {
  for (;;) {
    const PageWord seen = table_.look(page);
    if (seen.state == PageState::kBusy) {
      batch.finish();
      table_.await(page);
      continue;
    }
    const Treatment treatment = decide(seen);
    if (!treatment.changes(seen)) return;
    if (table_.claim(page, seen)) return batch.add({page, seen, treatment});
  }
}

// Treats all pages of a range, or those that are present: then it goes through the cache if that is the shorter way. A
// page that is loaded meanwhile may be passed over; what was present before is not, as a page that moves to another
// slot has been written back and dropped.
template <class Decide>
urma_cr_status_t CachedWindow::treat(PageRange range, bool present_ones, Decide decide) {
  const SignalsBlocked guard;
  Batch batch(*this);
  if (present_ones && range.count() > slots_.count()) {
    for (uint32_t slot = 0; slot < slots_.count(); ++slot) {
      uint64_t page;
      if (slots_.page_in(slot, &page) && range.contains(page)) treat_page(page, batch, decide);
    }
  } else {
    for (uint64_t page = range.first; page < range.end; ++page) treat_page(page, batch, decide);
  }
  batch.finish();
  return batch.first_error;
}

urma_cr_status_t CachedWindow::sync(const void* at, uint64_t bytes, uint32_t what) {
  PageRange pages;
  if (!pages_of(at, bytes, &pages)) return URMA_CR_LOC_LEN_ERR;
  if ((what & ~kAllFlags) != 0) return URMA_CR_LOC_OPERATION_ERR;
  urma_cr_status_t status = URMA_CR_SUCCESS;
  if ((what & (kSyncFlush | kSyncInvalidate | kSyncDiscard)) != 0) {
    const bool write_back = (what & (kSyncFlush | kSyncInvalidate)) != 0;
    const bool drop = (what & (kSyncInvalidate | kSyncDiscard)) != 0;
    status = treat(pages, true, [=](PageWord page) { return Treatment{write_back, drop, page.owned}; });
  }
  if (status != URMA_CR_SUCCESS || (what & (kSyncPrefetch | kSyncResident | kSyncWritable)) == 0) return status;
  return bring(pages, what);
}

urma_cr_status_t CachedWindow::own(const void* at, uint64_t bytes, Owned owned) {
  PageRange pages;
  if (!pages_of(at, bytes, &pages)) return URMA_CR_LOC_LEN_ERR;
  return treat(pages, false, [=](PageWord page) { return change_of_owner(page.owned, owned); });
}

urma_cr_status_t CachedWindow::close() {
  return treat(all_pages(), true, [](PageWord page) { return Treatment{.write_back = true, .owned = page.owned}; });
}

// Makes pages present. A prefetch is only a hint: it goes as far as the cache has room, and passes over what may not be
// loaded.
urma_cr_status_t CachedWindow::bring(PageRange pages, uint32_t what) {
  const bool is_hint = (what & (kSyncResident | kSyncWritable)) == 0;
  if (pages.count() > slots_.count()) {
    if (!is_hint) return URMA_CR_LOC_LEN_ERR;
    pages.end = pages.first + slots_.count();
  }
  const SignalsBlocked guard;
  urma_cr_status_t first_error = URMA_CR_SUCCESS;
  for (uint64_t page = pages.first; page < pages.end; ++page) {
    const urma_cr_status_t status = bring_page(page, (what & kSyncWritable) != 0, pages);
    if (first_error == URMA_CR_SUCCESS && !(is_hint && status == URMA_CR_LOC_ACCESS_ERR)) first_error = status;
  }
  return first_error;
}

urma_cr_status_t CachedWindow::bring_page(uint64_t page, bool writable, PageRange keep) {
  for (;;) {
    const PageWord seen = table_.look(page);
    if (seen.state == PageState::kBusy) {
      table_.await(page);
      continue;
    }
    if (!may_access(seen, writable)) return URMA_CR_LOC_ACCESS_ERR;
    if (seen.state == PageState::kDirty || (seen.state == PageState::kClean && !writable)) return URMA_CR_SUCCESS;
    if (!table_.claim(page, seen)) continue;
    if (seen.is_present()) return make_writable(page, seen);
    const auto behind = static_cast<uint32_t>(std::min<uint64_t>(keep.end - page - 1, kMaxRun - 1));
    return fetch(page, seen, writable, behind, keep);
  }
}

// A page that somebody works on is passed over and looked at again later: it is being written back, or was written a
// moment ago.
Instant CachedWindow::flush_due(Instant now) {
  if (options_.policy != WritePolicy::kWriteThrough) return Instant::never();
  const SignalsBlocked guard;
  Instant next = Instant::never();
  Batch batch(*this);
  slots_.for_each_written([&](uint32_t slot) {
    const Instant due = slots_.written_at(slot) + kWriteThroughAfter;
    if (due > now) {
      next = earlier(next, due);
      return;
    }
    uint64_t page;
    const PageWord seen = slots_.page_in(slot, &page) ? table_.look(page) : PageWord{};
    if (seen.state != PageState::kDirty || seen.slot != slot || !table_.claim(page, seen)) {
      next = earlier(next, now + kWriteThroughAfter);
      return;
    }
    slots_.mark_written(slot, now);  // in case that it fails
    batch.add({page, seen, {.write_back = true, .owned = seen.owned}});
  });
  batch.finish();
  return batch.first_error == URMA_CR_SUCCESS ? next : earlier(next, now + kWriteThroughAfter);
}

}  // namespace ub::aperture
