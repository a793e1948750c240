// SPDX-License-Identifier: Apache-2.0
// Handles on remote memory: softub_open and what its inline calls leave (softub_aperture.h).
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <string>

#include "lib/urma/aperture/ahead_loads.h"
#include "lib/urma/aperture/line_cache.h"
#include "lib/urma/aperture/open_path.h"
#include "lib/urma/aperture/queued_atomics.h"
#include "lib/urma/clock.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;
using namespace ub::aperture;

namespace {

constexpr size_t kPage = 4096;

// What stands behind a handle.
struct Opened {
  urma_target_seg_t* seg;
  softub_aperture_options_t options;
  softub_aperture_t below;  // of a handle with a cache: what its path works with
  OpenedPath way;
  std::unique_ptr<QueuedAtomics> atomics;  // before `way`
  std::unique_ptr<AheadLoads> ahead;       // before `atomics`
  std::unique_ptr<LineCache> cache;        // before `ahead`; null: none
};

// A page that a forked child finds empty, so that its calls find no path.
struct HandlePage {
  softub_aperture_t pub;
  Opened* opened;
};
static_assert(sizeof(HandlePage) <= kPage);
struct Unmap {
  void operator()(HandlePage* page) const { ::munmap(page, kPage); }
};

HandlePage* page_of(const softub_aperture_t* handle) {
  return reinterpret_cast<HandlePage*>(const_cast<softub_aperture_t*>(handle));
}

HandlePage* new_page() {
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  ::madvise(page, kPage, MADV_WIPEONFORK);
  return new (page) HandlePage{};
}

// The path of a handle, with its cache; null: another process opened it.
RemotePath* path_of(softub_aperture_t* handle) {
  Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return nullptr;
  if (opened->cache != nullptr) return opened->cache.get();
  return opened->ahead.get();
}

// Opens the path, and a cache before it, and tells inline calls what to use.
bool set_up(const Segment& segment, Opened* opened, softub_aperture_t* handle, std::string* why) {
  const softub_aperture_options_t& options = opened->options;
  const bool cached = options.cache != SOFTUB_CACHE_NONE;
  softub_aperture_t* below = cached ? &opened->below : handle;
  if (!open_path(segment, options.path, true, below, &opened->way, why)) return false;
  opened->atomics = std::make_unique<QueuedAtomics>(*opened->way.path, opened->seg);
  opened->ahead = std::make_unique<AheadLoads>(*opened->atomics, below->base, below->bytes, &handle->path);
  if (!cached) return true;
  opened->cache = std::make_unique<LineCache>(*opened->ahead, below->base, below->bytes, options.cache);
  handle->base = below->base;
  handle->bytes = below->bytes;
  handle->cache = opened->cache->state();
  handle->path = SOFTUB_PATH_CACHED;
  return true;
}

// Inline calls find out from the handle what its path has become.
urma_cr_status_t done(softub_aperture_t* handle, const RemotePath& path, urma_cr_status_t status) {
  if (path.is_broken()) handle->path = SOFTUB_PATH_BROKEN;
  return status;
}

// What is beneath a cache, and lines that were asked for ahead.
softub_path_t served_by(const softub_aperture_t* handle) {
  const uint32_t path = handle->path == SOFTUB_PATH_CACHED ? page_of(handle)->opened->below.path : handle->path;
  return path == SOFTUB_PATH_AHEAD ? SOFTUB_PATH_LANE : static_cast<softub_path_t>(path);
}

urma_cr_status_t load_uncached(softub_aperture_t* handle, void* to, uint32_t bytes) {
  const Opened& opened = *page_of(handle)->opened;
  if (opened.cache == nullptr) return softub_load(handle, 0, to, bytes);
  const LoadBlock block{0, to, bytes};
  return done(handle, *opened.way.path, opened.way.path->load({&block, 1}));
}

}  // namespace

softub_aperture_t* softub_open(urma_target_seg_t* seg, const softub_aperture_options_t* wanted) try {
  if (Library::get().device() == nullptr) return fail(ENODEV);
  const auto* segment = live<Segment>(seg);
  const softub_aperture_options_t options = wanted != nullptr ? *wanted : softub_aperture_options_t{};
  if (segment == nullptr || !segment->imported || !is_wish(options.path) ||
      static_cast<uint32_t>(options.cache) > SOFTUB_CACHE_WRITE_THROUGH) {
    return fail(EINVAL);
  }
  std::unique_ptr<HandlePage, Unmap> page(new_page());
  if (page == nullptr) return fail(ENOMEM);
  auto opened = std::make_unique<Opened>();
  opened->seg = seg;
  opened->options = options;
  std::string why;
  if (!set_up(*segment, opened.get(), &page->pub, &why)) {
    URMA_LOG_ERROR("softub_open: %s", why.c_str());
    return fail(EHOSTUNREACH);
  }
  page->opened = opened.release();
  return &page.release()->pub;
} catch (const std::bad_alloc&) {
  return fail(ENOMEM);
}

softub_aperture_t* softub_dup(const softub_aperture_t* handle) {
  const Opened* opened = handle != nullptr ? page_of(handle)->opened : nullptr;
  return opened != nullptr ? softub_open(opened->seg, &opened->options) : fail(EINVAL);
}

void softub_close(softub_aperture_t* handle) {
  if (handle == nullptr) return;
  delete page_of(handle)->opened;
  ::munmap(handle, kPage);
}

urma_cr_status_t softub_load_any(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes) {
  RemotePath* path = path_of(handle);
  if (path == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  const LoadBlock block{at, to, bytes};
  return done(handle, *path, path->load({&block, 1}));
}

urma_cr_status_t softub_wait_load(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes) {
  return page_of(handle)->opened->way.lane->finish_load(at, to, bytes);
}

void softub_ring(softub_aperture_t* handle) { page_of(handle)->opened->way.lane->ring(); }

urma_cr_status_t softub_store_any(softub_aperture_t* handle, uint64_t at, const void* from, uint32_t bytes) {
  RemotePath* path = path_of(handle);
  return path != nullptr ? done(handle, *path, path->store({at, from, bytes, nullptr})) : URMA_CR_LOC_OPERATION_ERR;
}

urma_cr_status_t softub_load_many(softub_aperture_t* handle, const uint64_t* at, uint32_t lines, void* to) {
  const Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  const auto is_line = [handle](uint64_t place) { return (handle->base + place) % kLineBytes == 0; };
  if (opened->way.lane != nullptr && opened->cache == nullptr && std::all_of(at, at + lines, is_line)) {
    return opened->way.lane->load_lines({at, lines}, static_cast<std::byte*>(to));
  }
  RemotePath* path = path_of(handle);
  constexpr uint32_t kAtOnce = 64;
  LoadBlock blocks[kAtOnce];
  for (uint32_t loaded = 0; loaded < lines;) {
    const uint32_t count = std::min(lines - loaded, kAtOnce);
    for (uint32_t i = 0; i < count; ++i) {
      blocks[i] = {at[loaded + i], static_cast<std::byte*>(to) + size_t{loaded + i} * kLineBytes, kLineBytes};
    }
    const urma_cr_status_t status = path->load({blocks, count});
    if (status != URMA_CR_SUCCESS) return done(handle, *path, status);
    loaded += count;
  }
  return URMA_CR_SUCCESS;
}

urma_cr_status_t softub_prefetch(softub_aperture_t* handle, uint64_t at) {
  const Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  if (opened->cache != nullptr && opened->cache->has(at)) return URMA_CR_SUCCESS;
  return done(handle, *opened->ahead, opened->ahead->prefetch(at));
}

urma_cr_status_t softub_fence(softub_aperture_t* handle) {
  RemotePath* path = path_of(handle);
  return path != nullptr ? done(handle, *path, path->fence()) : URMA_CR_LOC_OPERATION_ERR;
}

urma_cr_status_t softub_atomic(softub_aperture_t* handle, softub_atomic_op_t op, uint64_t at, uint32_t bytes,
                               uint64_t operand, uint64_t compare, uint64_t* old) try {
  RemotePath* path = path_of(handle);
  if (path == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  if (op < SOFTUB_ATOMIC_COMPARE_SWAP || op > SOFTUB_ATOMIC_XOR) return URMA_CR_UNSUPPORTED_OPCODE_ERR;
  if (bytes != 4 && bytes != 8) return URMA_CR_UNSUPPORTED_OPCODE_ERR;
  if ((handle->base + at) % bytes != 0) return URMA_CR_REM_UNSUPPORTED_REQ_ERR;
  uint64_t former = 0;
  const RemoteAtomic request{static_cast<AtomicOp>(op), bytes, at, operand, compare};
  const urma_cr_status_t status = path->atomic(request, &former);
  if (old != nullptr) *old = former;
  return done(handle, *path, status);
} catch (const std::bad_alloc&) {
  return URMA_CR_LOC_OPERATION_ERR;
}

urma_cr_status_t softub_sync_cache(softub_aperture_t* handle, uint64_t at, uint64_t bytes, uint32_t what) {
  Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  const urma_cr_status_t checked = LineCache::check_sync(handle->bytes, at, bytes, what);
  if (checked != URMA_CR_SUCCESS) return checked;
  if ((what & (SOFTUB_INVALIDATE | SOFTUB_DISCARD)) != 0) opened->ahead->forget();
  if (opened->cache == nullptr) return URMA_CR_SUCCESS;
  return done(handle, *opened->cache, opened->cache->sync(at, bytes, what));
}

urma_status_t softub_get_cache_counts(softub_aperture_t* handle, softub_cache_counts_t* counts) {
  const Opened* opened = handle != nullptr ? page_of(handle)->opened : nullptr;
  if (counts == nullptr || opened == nullptr || opened->cache == nullptr) return URMA_EINVAL;
  *counts = opened->cache->counts();
  return URMA_SUCCESS;
}

urma_status_t softub_get_cost(softub_aperture_t* handle, softub_cost_t* cost) {
  if (handle == nullptr || cost == nullptr || path_of(handle) == nullptr) return URMA_EINVAL;
  constexpr size_t kLoads = 31;
  std::array<int64_t, kLoads> took;
  size_t good = 0;
  const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(handle->bytes, kLineBytes - handle->base % kLineBytes));
  for (size_t i = 0; i < kLoads; ++i) {
    std::byte line[kLineBytes];
    const int64_t began = now_ns();
    if (load_uncached(handle, line, bytes) == URMA_CR_SUCCESS) took[good++] = now_ns() - began;
  }
  *cost = {.path = served_by(handle), .load_ns = 0};
  if (good == 0) return URMA_SUCCESS;
  std::nth_element(took.begin(), took.begin() + good / 2, took.begin() + good);
  cost->load_ns = static_cast<uint64_t>(took[good / 2]);
  return URMA_SUCCESS;
}
