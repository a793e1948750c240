// SPDX-License-Identifier: Apache-2.0
// Windows of remote memory: softub_map and the calls about them (softub_aperture.h).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "lib/ipc/of_process.h"
#include "lib/urma/aperture/fault_router.h"
#include "lib/urma/aperture/flusher.h"
#include "lib/urma/aperture/open_path.h"
#include "lib/urma/aperture/same_host/share_watcher.h"
#include "lib/urma/aperture/same_host/shared_window.h"
#include "lib/urma/aperture/uncached/uncached_window.h"
#include "lib/urma/aperture/window/cached_window.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;
using namespace ub::aperture;

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kUsualCache = uint64_t{64} << 20;
constexpr uint64_t kLeastCache = CachedWindow::kMinCachePages * kPage;
constexpr size_t kPaths = 4;
constexpr uint32_t kFlags = SOFTUB_MAP_READ_ONLY | SOFTUB_MAP_OWNED;

static_assert(SOFTUB_FLUSH == kSyncFlush && SOFTUB_INVALIDATE == kSyncInvalidate && SOFTUB_DISCARD == kSyncDiscard);
static_assert(SOFTUB_PREFETCH == kSyncPrefetch && SOFTUB_RESIDENT == kSyncResident &&
              SOFTUB_WRITABLE == kSyncWritable);

// One of the three is there.
struct Mapped {
  std::unique_ptr<CachedWindow> cached;
  std::unique_ptr<UncachedWindow> uncached;
  std::shared_ptr<SharedWindow> shared;

  Window& window() const {
    if (cached) return *cached;
    if (uncached) return *uncached;
    return *shared;
  }
  std::byte* data() const { return cached ? cached->data() : uncached ? uncached->data() : shared->data(); }
  uint64_t bytes() const { return cached ? cached->bytes() : uncached ? uncached->bytes() : shared->bytes(); }
  softub_way_t way() const { return cached ? SOFTUB_WAY_CACHED : uncached ? SOFTUB_WAY_UNCACHED : SOFTUB_WAY_SHARED; }
};

// All windows of the process.
struct Windows {
  std::mutex mutex;
  std::vector<std::shared_ptr<Mapped>> all;

  static Windows& get() {
    static constinit ipc::OfProcess<Windows> windows;
    return windows.get();
  }
  std::shared_ptr<Mapped> of(const void* at) {
    const auto* address = static_cast<const std::byte*>(at);
    std::lock_guard guard(mutex);
    for (const auto& each : all) {
      if (address >= each->data() && static_cast<uint64_t>(address - each->data()) < each->bytes()) return each;
    }
    return nullptr;
  }
  // The window that begins there.
  std::shared_ptr<Mapped> take(const void* start) {
    std::lock_guard guard(mutex);
    const auto found =
        std::find_if(all.begin(), all.end(), [start](const auto& each) { return each->data() == start; });
    if (found == all.end()) return nullptr;
    auto mapped = *found;
    all.erase(found);
    return mapped;
  }
};

// ---- options ---------------------------------------------------------------------------------------------------

// A shared window has no path, and no pages that somebody has to own.
bool may_be_shared(const softub_map_options_t& o) {
  const bool suits = (o.flags & SOFTUB_MAP_OWNED) == 0 && o.path == SOFTUB_PATH_NONE;
  return suits && (o.way == SOFTUB_WAY_SHARED || o.way == SOFTUB_WAY_ANY);
}

// Programs may set any number, also a negative one.
template <class Enum>
bool is_at_most(Enum value, Enum last) {
  return static_cast<uint32_t>(value) <= static_cast<uint32_t>(last);
}

// Returns a sentence, or "". Fills in what was left to the library.
std::string check(softub_map_options_t& o, uint64_t segment_bytes) {
  if (o.offset % kPage != 0 || o.offset >= segment_bytes) return "the offset is no multiple of 4096 within the segment";
  if (o.bytes == 0) o.bytes = segment_bytes - o.offset;
  if (o.bytes > segment_bytes - o.offset) return "the window would reach beyond the segment";
  if (!is_at_most(o.way, SOFTUB_WAY_SHARED) || !is_at_most(o.policy, SOFTUB_WRITE_THROUGH) || !is_wish(o.path)) {
    return "a way, policy or path that there is not";
  }
  if ((o.flags & ~kFlags) != 0) return "a flag that there is not";
  if (o.way == SOFTUB_WAY_UNCACHED && (o.flags & SOFTUB_MAP_OWNED) != 0) {
    return "an uncached window has no pages that somebody has to own";
  }
  if (o.way == SOFTUB_WAY_SHARED && !may_be_shared(o)) {
    return "a shared window has no path, and no pages that somebody has to own";
  }
  const uint64_t window = (o.bytes + kPage - 1) / kPage * kPage;
  if (o.cache_bytes == 0) o.cache_bytes = std::min(kUsualCache, window);
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  if (o.cache_bytes / kPage > pages) return "a cache larger than the memory of this machine";
  o.cache_bytes = std::max(o.cache_bytes, kLeastCache);
  if (o.prefetch_pages == 0) o.prefetch_pages = 7;
  if (o.prefetch_pages == SOFTUB_NO_PREFETCH) o.prefetch_pages = 0;
  return o.prefetch_pages > 7 ? "more than 7 pages to load ahead" : "";
}

int errno_of(urma_status_t status) {
  return status == URMA_EINVAL ? EINVAL : status == URMA_ENOPERM ? EPERM : ENOMEM;
}

std::vector<std::unique_ptr<RemotePath>> open_paths(const Segment& segment, const softub_map_options_t& o,
                                                    std::string* why) {
  std::vector<std::unique_ptr<RemotePath>> paths;
  for (size_t i = 0; i < kPaths; ++i) {
    auto path = open_window_path(segment, o.path, o.way == SOFTUB_WAY_UNCACHED, why);
    if (path == nullptr) {
      if (!paths.empty()) break;  // fewer do
      return paths;
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

// ---- the ways --------------------------------------------------------------------------------------------------

urma_status_t make_cached(Mapped& mapped, const Segment& segment, const softub_map_options_t& o,
                          std::vector<std::unique_ptr<RemotePath>> paths, std::string* why) {
  CachedWindowOptions options;
  options.segment_bytes = segment.pub.seg.len;
  options.offset = o.offset;
  options.bytes = (o.bytes + kPage - 1) / kPage * kPage;
  options.cache_bytes = o.cache_bytes;
  options.policy = o.policy == SOFTUB_WRITE_THROUGH ? WritePolicy::kWriteThrough : WritePolicy::kWriteBack;
  options.read_only = (o.flags & SOFTUB_MAP_READ_ONLY) != 0;
  options.owned = (o.flags & SOFTUB_MAP_OWNED) != 0;
  options.prefetch_pages = o.prefetch_pages;
  WindowError error;
  mapped.cached = CachedWindow::create(options, std::move(paths), &error);
  *why = error.why;
  return mapped.cached != nullptr ? URMA_SUCCESS : error.status;
}

urma_status_t make_uncached(Mapped& mapped, const Segment& segment, const softub_map_options_t& o,
                            std::vector<std::unique_ptr<RemotePath>> paths, std::string* why) {
  UncachedOptions options;
  options.place = o.offset;
  options.bytes = o.bytes;
  options.remote_address = segment.pub.seg.ubva.va;
  options.read_only = (o.flags & SOFTUB_MAP_READ_ONLY) != 0;
  WindowError error;
  mapped.uncached = UncachedWindow::create(options, std::move(paths), &error);
  *why = error.why;
  return mapped.uncached != nullptr ? URMA_SUCCESS : error.status;
}

// False: `*why`. The window is there for as long as the watcher looks after it, so it is removed there first.
bool make_shared_window(Mapped& mapped, const Segment& segment, const softub_map_options_t& o, std::string* why) {
  ipc::ShareRequest request{};
  request.address = segment.pub.seg.ubva.va;
  request.length = segment.pub.seg.len;
  request.token_id = segment.token_id;
  request.token_required = segment.token_required;
  request.token_value = segment.token_value;
  SharedWindowOptions options;
  options.offset = o.offset;
  options.bytes = o.bytes;
  options.read_only = (o.flags & SOFTUB_MAP_READ_ONLY) != 0;
  request.writes = options.read_only ? 0 : 1;
  request.process = ::getpid();
  ipc::OpenedShare share;
  const InstanceId owner{eid_of(segment.pub.seg.ubva.eid), segment.uasid};
  if (backend().open_share(owner, request, &share, why) != Status::kOk) return false;
  mapped.shared = SharedWindow::create(std::move(share), options, why);
  if (mapped.shared == nullptr) return false;
  if (ShareWatcher::get().add(mapped.shared, why)) return true;
  mapped.shared.reset();
  return false;
}

urma_status_t make_by_paths(const std::shared_ptr<Mapped>& mapped, const Segment& segment,
                            const softub_map_options_t& o, std::vector<std::unique_ptr<RemotePath>> paths,
                            std::string* why) {
  if (o.way == SOFTUB_WAY_UNCACHED) return make_uncached(*mapped, segment, o, std::move(paths), why);
  const urma_status_t status = make_cached(*mapped, segment, o, std::move(paths), why);
  if (status == URMA_SUCCESS && o.policy == SOFTUB_WRITE_THROUGH) Flusher::get().add({mapped, mapped->cached.get()});
  return status;
}

// Allocates nothing.
void stop_looking_after(const Mapped& mapped) {
  ShareWatcher* watcher = ShareWatcher::find();
  if (mapped.shared != nullptr && watcher != nullptr) watcher->remove(mapped.shared.get());
  Flusher* flusher = Flusher::find();
  if (mapped.cached != nullptr && flusher != nullptr) flusher->remove(mapped.cached.get());
}

void* remember(const std::shared_ptr<Mapped>& mapped) try {
  Windows& windows = Windows::get();
  std::lock_guard guard(windows.mutex);
  windows.all.push_back(mapped);
  return mapped->data();
} catch (...) {
  stop_looking_after(*mapped);
  throw;
}

}  // namespace

bool urma::is_window_memory(uint64_t address, uint64_t bytes) { return FaultRouter::get().overlaps(address, bytes); }

void* softub_map(urma_target_seg_t* seg, const softub_map_options_t* wanted) try {
  if (Library::get().device() == nullptr) return fail(ENODEV);
  const auto* segment = live<Segment>(seg);
  if (segment == nullptr || !segment->imported) return fail(EINVAL);
  softub_map_options_t options = wanted != nullptr ? *wanted : softub_map_options_t{};
  std::string why = check(options, segment->pub.seg.len);
  if (!why.empty()) {
    URMA_LOG_ERROR("softub_map: %s", why.c_str());
    return fail(EINVAL);
  }
  auto mapped = std::make_shared<Mapped>();
  if (may_be_shared(options)) {
    if (make_shared_window(*mapped, *segment, options, &why)) return remember(mapped);
    if (options.way == SOFTUB_WAY_SHARED) {
      URMA_LOG_ERROR("softub_map: %s", why.c_str());
      return fail(EHOSTUNREACH);
    }
  }
  auto paths = open_paths(*segment, options, &why);
  if (paths.empty()) {
    URMA_LOG_ERROR("softub_map: %s", why.c_str());
    return fail(EHOSTUNREACH);
  }
  const urma_status_t status = make_by_paths(mapped, *segment, options, std::move(paths), &why);
  if (status != URMA_SUCCESS) {
    URMA_LOG_ERROR("softub_map: %s", why.c_str());
    return fail(errno_of(status));
  }
  return remember(mapped);
} catch (const std::bad_alloc&) {
  return fail(ENOMEM);
}

urma_status_t softub_unmap(void* window) {
  if (is_attached_window(window)) {
    URMA_LOG_ERROR("softub_unmap: a window of softub_attach ends by softub_detach");
    return URMA_EINVAL;
  }
  auto mapped = Windows::get().take(window);
  if (mapped == nullptr) return URMA_EINVAL;
  stop_looking_after(*mapped);
  if (mapped->cached == nullptr) return URMA_SUCCESS;
  const urma_cr_status_t status = mapped->cached->close();
  if (status == URMA_CR_SUCCESS) return URMA_SUCCESS;
  URMA_LOG_ERROR("softub_unmap: not all could be written back: status %d", static_cast<int>(status));
  return URMA_FAIL;
}

urma_cr_status_t softub_sync(void* at, size_t bytes, uint32_t what) {
  const auto mapped = Windows::get().of(at);
  if (mapped == nullptr) return URMA_CR_LOC_LEN_ERR;
  if (mapped->cached != nullptr) return mapped->cached->sync(at, bytes, what);
  if (mapped->shared != nullptr) return mapped->shared->sync(at, bytes, what);
  return (what & (SOFTUB_RESIDENT | SOFTUB_WRITABLE)) == 0 ? URMA_CR_SUCCESS : URMA_CR_LOC_OPERATION_ERR;
}

urma_cr_status_t softub_own(void* at, size_t bytes, softub_owned_t owned) {
  const auto mapped = Windows::get().of(at);
  if (mapped == nullptr) return URMA_CR_LOC_LEN_ERR;
  if (!is_at_most(owned, SOFTUB_OWN_WRITE)) return URMA_CR_LOC_OPERATION_ERR;
  if (mapped->shared != nullptr) return mapped->shared->sync(at, bytes, 0);
  return mapped->cached != nullptr ? mapped->cached->own(at, bytes, static_cast<Owned>(owned)) : URMA_CR_SUCCESS;
}

urma_status_t softub_get_way(void* window, softub_way_t* way) {
  const auto mapped = Windows::get().of(window);
  if (mapped == nullptr || way == nullptr) return URMA_EINVAL;
  *way = mapped->way();
  return URMA_SUCCESS;
}

urma_status_t softub_on_fault(void* window, softub_fault_handler_t handler, void* context) try {
  const auto mapped = Windows::get().of(window);
  if (mapped == nullptr) return URMA_EINVAL;
  mapped->window().on_fault(handler, context);
  return URMA_SUCCESS;
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}

bool softub_serve_fault(int signal, void* siginfo, void* ucontext) {
  return FaultRouter::serve(signal, static_cast<siginfo_t*>(siginfo), ucontext);
}

urma_status_t softub_get_window_counts(void* window, softub_window_counts_t* counts) {
  const auto mapped = Windows::get().of(window);
  if (mapped == nullptr || mapped->cached == nullptr || counts == nullptr) return URMA_EINVAL;
  const WindowCounters c = mapped->cached->counters();
  Histogram missing, write;
  mapped->cached->add_latencies(FaultKind::kMissing, &missing);
  mapped->cached->add_latencies(FaultKind::kWrite, &write);
  *counts = {.missing_faults = c.missing_faults,
             .write_faults = c.write_faults,
             .failed_faults = c.failed_faults,
             .fetched_pages = c.fetched_pages,
             .prefetched_pages = c.prefetched_pages,
             .evicted_pages = c.evicted_pages,
             .written_back_pages = c.written_back_pages,
             .written_back_lines = c.written_back_lines,
             .written_back_bytes = c.written_back_bytes,
             .failed_write_backs = c.failed_write_backs,
             .missing_p50_ns = missing.percentile(50),
             .missing_p99_ns = missing.percentile(99),
             .write_p50_ns = write.percentile(50),
             .write_p99_ns = write.percentile(99)};
  return URMA_SUCCESS;
}
