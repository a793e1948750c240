// SPDX-License-Identifier: Apache-2.0
//
// A window of remote memory that is mapped and cached: ordinary addresses, whose pages are loaded when they are touched
// first and written back later. Reads and writes of a page that is present cost nothing. All of it works in the threads
// that fault, through FaultRouter; a window has no thread of its own.
//
//   fault        serve(): loads a page that is missing, with those behind it when faults come in a row; makes a page
//                that is written first writable, after keeping a copy of it (its twin)
//   cache full   a clock chooses pages, which are written back and dropped. The kernel does not tell of reads of pages
//                that are present, so the clock only knows which pages faults have asked for.
//   written      what differs from the twin is sent, as lines with byte enables: two windows may write different bytes
//                of a page. A byte that got the value it had is not sent.
//
// What a program can see: a page is as old as its loading, until it is evicted or dropped (sync(), own()). Two windows
// of one segment do not see each other's cache. A system call that meets a page which is missing, or writes
// to one which is clean, fails with EFAULT (sync() with kSyncResident or kSyncWritable prevents that). Direct I/O and
// io_uring buffers, which write to pages past their protection, must not use a window. The range belongs to the window:
// a program that unmaps, moves, protects or discards (madvise) parts of it breaks it.
//
// Thread: all but create() and the destructor from any thread at any time, also while others fault. A fault takes no
// lock and calls nothing that is unsafe in a signal handler; sync(), own(), flush_due() and close() neither, so the
// program's handler may call them. While a fault is served, no handler of another signal may run in its thread, which
// FaultRouter has to see to: it might touch a page that its own thread works on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/histogram.h"
#include "lib/base/time.h"
#include "lib/urma/aperture/fault_router.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/aperture/window/cache_slots.h"
#include "lib/urma/aperture/window/fault_runs.h"
#include "lib/urma/aperture/window/faulting_memory.h"
#include "lib/urma/aperture/window/ownership.h"
#include "lib/urma/aperture/window/page_table.h"
#include "lib/urma/aperture/window/path_pool.h"
#include "lib/urma/aperture/window/statistics.h"
#include "lib/urma/aperture/window/twins.h"
#include "lib/urma/aperture/window/window_error.h"

namespace ub::aperture {

enum class WritePolicy : uint8_t {
  kWriteBack,     // a page is sent when it is evicted, flushed or the window is closed
  kWriteThrough,  // and by flush_due(), 100 us after it was written first
};

struct CachedWindowOptions {
  uint64_t segment_bytes = 0;  // the remote segment has so many
  uint64_t offset = 0;         // the window begins here in the segment; whole pages of 4 KiB
  uint64_t bytes = 0;          // of the window, whole pages; its last page may reach beyond the segment's last byte
  uint64_t cache_bytes = 0;    // so much may be present; at least 8 pages. As much again for twins, if all is written
  WritePolicy policy = WritePolicy::kWriteBack;
  bool read_only = false;       // a write is an error
  bool owned = false;           // an access to a page that is not owned for it (own()) is an error
  uint32_t prefetch_pages = 7;  // loaded ahead when faults come in a row; at most 7, and a quarter of the cache
};

// For sync(). They are done in this order.
enum SyncFlags : uint32_t {
  kSyncFlush = 1U << 0,       // write back what is dirty, and keep it
  kSyncInvalidate = 1U << 1,  // write back what is dirty, then drop all: it is loaded again when it is touched
  kSyncDiscard = 1U << 2,     // drop all; what is dirty is lost
  kSyncPrefetch = 1U << 3,    // load what is missing, as far as the cache has room
  kSyncResident = 1U << 4,    // load what is missing, so that a system call can read it
  kSyncWritable = 1U << 5,    // and so that a system call can write to it
};

class CachedWindow final : public Window {
 public:
  static constexpr uint32_t kMinCachePages = 8;
  static constexpr Duration kWriteThroughAfter = microseconds(100);

  // Maps a window whose pages are loaded and stored through 1 to 4 paths, which are the window's from now on and must
  // be safe in a signal handler. Null and `*error`.
  static std::unique_ptr<CachedWindow> create(const CachedWindowOptions&,
                                              std::vector<std::unique_ptr<RemotePath>> paths, WindowError* error);
  // Unmaps. What was not written back is lost. Waits for faults that are being served; no other call may be running,
  // and to touch the memory afterwards ends the program.
  ~CachedWindow() override;

  std::byte* data() const { return memory_.data(); }
  uint64_t bytes() const { return options_.bytes; }

  // Why an access fails:
  //   URMA_CR_LOC_ACCESS_ERR     a write to a read-only window, or a page that is not owned for the access
  //   URMA_CR_LOC_OPERATION_ERR  the kernel gave no memory for the page, or refuses to change it
  //   others                     what the remote memory or the way to it answered (RemotePath)
  Served serve(const Fault&, FailedAccess*) override;

  // Acts on all pages that [at, at + bytes) touches; see SyncFlags. Tries all pages, and answers the first error:
  //   URMA_CR_LOC_LEN_ERR        the range is not the window's, or the cache is too small to hold it
  //   URMA_CR_LOC_OPERATION_ERR  flags that do not exist, or the kernel refuses
  //   URMA_CR_LOC_ACCESS_ERR     a page is not owned, or kSyncWritable in a read-only window
  //   others                     of remote memory; what could not be written back stays dirty
  // Other threads may evict pages that were made present; the cache should be large enough for all.
  urma_cr_status_t sync(const void* at, uint64_t bytes, uint32_t what);
  // Changes who owns the pages that a range touches (ownership.h). Errors as above; a page that cannot be written back
  // keeps its owner.
  urma_cr_status_t own(const void* at, uint64_t bytes, Owned owned);
  // Writes back all dirty pages, and keeps them. The first error; then what failed is still dirty, and this may be
  // tried again. Before the destructor.
  urma_cr_status_t close();

  // Write-through: whoever drives calls it, with the time of CLOCK_MONOTONIC. Pages whose first write since they were
  // flushed was 100 us ago are written back; one that fails is tried again after that time. Returns when the next page
  // will be due, of those that are dirty now.
  Instant flush_due(Instant now);

  WindowCounters counters() const { return counters_; }
  // Nanoseconds that faults of a kind took, without the kernel's part. Adds them.
  void add_latencies(FaultKind kind, Histogram* to) const { latencies_[static_cast<size_t>(kind)].add_to(to); }

 private:
  // A page that this thread has claimed, and what becomes of it.
  struct Claim {
    uint64_t page = 0;
    PageWord word;  // as it was; at last, as it is to be
    Treatment treatment;
    urma_cr_status_t status = URMA_CR_SUCCESS;

    bool sends() const { return treatment.write_back && word.state == PageState::kDirty; }
  };
  struct Batch;  // claims that are settled together (calls.cc)

  // Pages that were absent, lie beside each other and are claimed, in order to be loaded together.
  struct Run {
    uint64_t first = 0;
    uint32_t count = 1;
    PageWord words[kMaxRun];
  };

  explicit CachedWindow(const CachedWindowOptions& options) : options_(options) {}
  bool open(std::vector<std::unique_ptr<RemotePath>> paths, WindowError* error);

  uint64_t page_of(const void* address) const;
  bool pages_of(const void* at, uint64_t bytes, PageRange* pages) const;
  PageRange all_pages() const { return {0, options_.bytes / kPageBytes}; }
  uint64_t remote_place(uint64_t page) const { return options_.offset + page * kPageBytes; }
  uint32_t valid_bytes(uint64_t page) const;
  bool may_access(PageWord, bool is_write) const;

  // fault.cc: loading and first writes. `keep` is not evicted for it.
  urma_cr_status_t serve_page(uint64_t page, bool is_write);
  urma_cr_status_t fetch(uint64_t page, PageWord seen, bool writable, uint32_t ahead, PageRange keep);
  void claim_ahead(Run&, uint32_t ahead);
  urma_cr_status_t load(Run&, bool writable);
  urma_cr_status_t load_blocks(RemotePath&, std::byte* buffer, std::byte* first_to, const Run&);
  void release_from(Run&, uint32_t kept);
  urma_cr_status_t make_writable(uint64_t page, PageWord seen);

  // evict.cc: slots for pages that are to be loaded.
  urma_cr_status_t take_slots(Run&, PageRange keep);
  urma_cr_status_t evict(uint32_t wanted, PageRange keep, uint32_t* evicted);
  uint32_t claim_victims(std::span<Claim>, PageRange keep, bool clean_only);

  // settle.cc: what becomes of claimed pages.
  urma_cr_status_t settle(std::span<Claim>);
  void write_back(std::span<Claim>);
  urma_cr_status_t send(std::span<const Claim>);
  void drop(std::span<Claim>);
  void release(Claim&);

  // calls.cc: what programs ask for.
  template <class Decide>
  urma_cr_status_t treat(PageRange, bool present_ones, Decide);
  template <class Decide>
  void treat_page(uint64_t page, Batch&, Decide);
  urma_cr_status_t bring(PageRange, uint32_t what);
  urma_cr_status_t bring_page(uint64_t page, bool writable, PageRange keep);

  const CachedWindowOptions options_;
  FaultingMemory memory_;
  PageTable table_;
  CacheSlots slots_;
  Twins twins_;
  PathPool paths_;
  FaultRuns runs_;
  uint32_t ahead_ = 0;  // pages to load ahead

  WindowCounters counters_;
  LatencyCounts latencies_[kFaultKinds];
};

}  // namespace ub::aperture
