// SPDX-License-Identifier: Apache-2.0
//
// Faults of a cached window: loading pages that are missing, and first writes.
#include <algorithm>
#include <cstring>

#include "lib/base/application_memory.h"
#include "lib/urma/aperture/window/cached_window.h"
#include "lib/urma/clock.h"

namespace ub::aperture {
namespace {

class Stopwatch {
 public:
  void stop(LatencyCounts& counts) const { counts.record(static_cast<uint64_t>(urma::now_ns() - begun_)); }

 private:
  int64_t begun_ = urma::now_ns();
};

Instant now() { return {static_cast<uint64_t>(urma::now_ns())}; }

}  // namespace

// A child of a fork has none of this memory; what lies at its address there is not ours.
Served CachedWindow::serve(const Fault& fault, FailedAccess* failed) {
  if (fault.signal != SIGBUS || memory_.is_inherited()) return Served::kForeign;
  const urma_cr_status_t status = serve_page(page_of(fault.address), fault.is_write);
  if (status == URMA_CR_SUCCESS) return Served::kDone;
  counters_.failed_faults.add();
  return failed->fail(fault.address, status, fault.is_write);
}

// Success also means that another thread was faster, or has just finished: the access runs again and may fault again.
urma_cr_status_t CachedWindow::serve_page(uint64_t page, bool is_write) {
  const Stopwatch watch;
  const PageWord seen = table_.look(page);
  if (seen.state == PageState::kBusy) {
    counters_.page_waits.add();
    table_.await(page);
    watch.stop(latencies_[static_cast<size_t>(FaultKind::kWaited)]);
    return URMA_CR_SUCCESS;
  }
  if (!may_access(seen, is_write)) return URMA_CR_LOC_ACCESS_ERR;
  if ((seen.is_present() && !is_write) || !table_.claim(page, seen)) return URMA_CR_SUCCESS;

  if (seen.is_present()) {
    counters_.write_faults.add();
    const urma_cr_status_t status = make_writable(page, seen);
    watch.stop(latencies_[static_cast<size_t>(FaultKind::kWrite)]);
    return status;
  }
  counters_.missing_faults.add();
  const FaultRuns::Run run = runs_.find(page);
  const uint32_t ahead = run.goes_on ? ahead_ : 0;
  runs_.expect(run, page + 1 + ahead);
  const urma_cr_status_t status = fetch(page, seen, is_write, ahead, {});
  watch.stop(latencies_[static_cast<size_t>(FaultKind::kMissing)]);
  return status;
}

// Loads an absent page, which was claimed as `seen`, and up to `ahead` of those behind it. Releases all.
urma_cr_status_t CachedWindow::fetch(uint64_t page, PageWord seen, bool writable, uint32_t ahead, PageRange keep) {
  Run run = {.first = page, .words = {seen}};
  claim_ahead(run, ahead);
  urma_cr_status_t status = take_slots(run, keep);
  if (status != URMA_CR_SUCCESS) {
    for (uint32_t i = 0; i < run.count; ++i) table_.release(page + i, run.words[i]);
    return status;
  }
  return load(run, writable);
}

// Up to the first page that is present, busy or not to be read.
void CachedWindow::claim_ahead(Run& run, uint32_t ahead) {
  const uint64_t end = std::min(run.first + 1 + ahead, all_pages().end);
  for (uint64_t page = run.first + 1; page < end; ++page) {
    const PageWord seen = table_.look(page);
    if (seen.state != PageState::kAbsent || !may_access(seen, false) || !table_.claim(page, seen)) return;
    run.words[run.count++] = seen;
  }
}

// Gives up the pages behind the first `kept`, which have slots.
void CachedWindow::release_from(Run& run, uint32_t kept) {
  for (; run.count > kept; --run.count) {
    PageWord& word = run.words[run.count - 1];
    slots_.give_back(word.slot);
    word.slot = 0;
    table_.release(run.first + run.count - 1, word);
  }
}

// Loads pages that have slots, and releases them. A first page that is to be writable comes by way of its twin.
urma_cr_status_t CachedWindow::load(Run& run, bool writable) {
  uint64_t filled = 0;
  urma_cr_status_t status;
  {
    const PathPool::Claim claim = paths_.claim(counters_.path_waits);
    std::byte* first_to = writable ? twins_.of(run.words[0].slot) : claim.buffer();
    status = load_blocks(claim.path(), claim.buffer(), first_to, run);
    if (status != URMA_CR_SUCCESS && run.count > 1) {  // perhaps only what nobody has asked for cannot be loaded
      release_from(run, 1);
      status = load_blocks(claim.path(), claim.buffer(), first_to, run);
    }
    if (status == URMA_CR_SUCCESS) {
      const uint64_t alone = writable ? 1 : 0;
      if (writable) filled = memory_.fill(run.first, 1, first_to, true);
      if (filled == alone && run.count > alone) {
        filled += memory_.fill(run.first + alone, run.count - alone, claim.buffer() + alone * kPageBytes, false);
      }
      if (filled == 0) status = URMA_CR_LOC_OPERATION_ERR;
    }
  }
  release_from(run, static_cast<uint32_t>(filled));
  counters_.fetched_pages.add(filled);
  if (filled > 1) counters_.prefetched_pages.add(filled - 1);
  for (uint32_t i = 0; i < run.count; ++i) {
    PageWord word = run.words[i];
    word.referenced = i == 0;
    word.state = i == 0 && writable ? PageState::kDirty : PageState::kClean;
    if (word.state == PageState::kDirty) slots_.mark_written(word.slot, now());
    table_.release(run.first + i, word);
  }
  return status;
}

urma_cr_status_t CachedWindow::load_blocks(RemotePath& path, std::byte* buffer, std::byte* first_to, const Run& run) {
  LoadBlock blocks[kMaxRun];
  for (uint32_t i = 0; i < run.count; ++i) {
    const uint64_t page = run.first + i;
    std::byte* to = i == 0 ? first_to : buffer + i * kPageBytes;
    blocks[i] = {remote_place(page), to, valid_bytes(page)};
    std::memset(to + blocks[i].bytes, 0, kPageBytes - blocks[i].bytes);
  }
  return path.load({blocks, run.count});
}

// The page was claimed as `seen`, present. If it is dirty, it is writable already, and to say so again does no harm.
urma_cr_status_t CachedWindow::make_writable(uint64_t page, PageWord seen) {
  PageWord now_is = seen;
  if (seen.state == PageState::kClean) {
    const ApplicationMemory guard;
    std::memcpy(twins_.of(seen.slot), memory_.at(page), kPageBytes);
  }
  const bool done = memory_.unprotect(page, 1);
  if (done) {
    now_is.state = PageState::kDirty;
    now_is.referenced = true;
    if (seen.state == PageState::kClean) slots_.mark_written(seen.slot, now());
  }
  table_.release(page, now_is);
  return done ? URMA_CR_SUCCESS : URMA_CR_LOC_OPERATION_ERR;
}

}  // namespace ub::aperture
