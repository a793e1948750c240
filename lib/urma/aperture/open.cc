// SPDX-License-Identifier: Apache-2.0
// Handles on remote memory: softub_open and what its inline calls leave (softub_aperture.h).
#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <new>
#include <string>

#include "lib/urma/aperture/lane_path.h"
#include "lib/urma/device/eid.h"
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
  std::unique_ptr<LanePath> path;
};

// A page that a forked child finds empty, so that its calls find no path.
struct HandlePage {
  softub_aperture_t pub;
  Opened* opened;
};
static_assert(sizeof(HandlePage) <= kPage);

HandlePage* page_of(const softub_aperture_t* handle) {
  return reinterpret_cast<HandlePage*>(const_cast<softub_aperture_t*>(handle));
}

HandlePage* new_page() {
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  ::madvise(page, kPage, MADV_WIPEONFORK);
  return new (page) HandlePage{};
}

RemoteSegment remote_segment(const Segment& segment) {
  return {.base = segment.pub.seg.ubva.va,
          .bytes = segment.pub.seg.len,
          .token_id = segment.token_id,
          .token_required = segment.token_required,
          .token = segment.token_value};
}

bool open_lane(const Segment& segment, Opened& opened, softub_aperture_t* pub, std::string* why) {
  ipc::OpenedLane lane;
  const InstanceId owner{eid_of(segment.pub.seg.ubva.eid), segment.uasid};
  if (backend().open_lane(owner, &lane, why) != Status::kOk) return false;
  LanePath::Options options;
  options.drive = [] { backend().drive(); };
  opened.path = LanePath::make(std::move(lane), remote_segment(segment), std::move(options), pub, why);
  return opened.path != nullptr;
}

}  // namespace

softub_aperture_t* softub_open(urma_target_seg_t* seg, const softub_aperture_options_t* wanted) try {
  if (Library::get().device() == nullptr) return fail(ENODEV);
  const auto* segment = live<Segment>(seg);
  const softub_aperture_options_t options = wanted != nullptr ? *wanted : softub_aperture_options_t{};
  if (segment == nullptr || !segment->imported || options.path > SOFTUB_PATH_QUEUE) return fail(EINVAL);
  auto opened = std::make_unique<Opened>(Opened{seg, options, nullptr});
  HandlePage* page = new_page();
  if (page == nullptr) return fail(ENOMEM);
  std::string why = "not built yet";
  if (options.path == SOFTUB_PATH_QUEUE || !open_lane(*segment, *opened, &page->pub, &why)) {
    URMA_LOG_ERROR("softub_open: %s", why.c_str());
    ::munmap(page, kPage);
    return fail(EHOSTUNREACH);
  }
  page->opened = opened.release();
  return &page->pub;
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
  const Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  const LoadBlock block{at, to, bytes};
  return opened->path->load({&block, 1});
}

urma_cr_status_t softub_wait_load(softub_aperture_t* handle, uint64_t at, void* to, uint32_t bytes) {
  return page_of(handle)->opened->path->finish_load(at, to, bytes);
}

urma_cr_status_t softub_store_any(softub_aperture_t* handle, uint64_t at, const void* from, uint32_t bytes) {
  const Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  return opened->path->store({at, from, bytes, nullptr});
}

urma_cr_status_t softub_load_many(softub_aperture_t* handle, const uint64_t* at, uint32_t lines, void* to) {
  const Opened* opened = page_of(handle)->opened;
  if (opened == nullptr) return URMA_CR_LOC_OPERATION_ERR;
  constexpr uint32_t kAtOnce = 64;
  LoadBlock blocks[kAtOnce];
  for (uint32_t done = 0; done < lines;) {
    const uint32_t count = lines - done < kAtOnce ? lines - done : kAtOnce;
    for (uint32_t i = 0; i < count; ++i) {
      blocks[i] = {at[done + i], static_cast<std::byte*>(to) + size_t{done + i} * kLineBytes, kLineBytes};
    }
    const urma_cr_status_t status = opened->path->load({blocks, count});
    if (status != URMA_CR_SUCCESS) return status;
    done += count;
  }
  return URMA_CR_SUCCESS;
}

urma_cr_status_t softub_fence(softub_aperture_t* handle) {
  const Opened* opened = page_of(handle)->opened;
  return opened != nullptr ? opened->path->fence() : URMA_CR_LOC_OPERATION_ERR;
}
