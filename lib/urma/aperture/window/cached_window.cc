// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/window/cached_window.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace ub::aperture {
namespace {

constexpr uint64_t round_up_to_page(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

uint64_t bytes_of_memory() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What is wrong with the options, or "".
std::string judge(const CachedWindowOptions& o, std::span<const std::unique_ptr<RemotePath>> paths) {
  const auto text = [](uint64_t n) { return std::to_string(n); };
  if (o.bytes == 0) return "a window of 0 bytes";
  if (o.bytes % kPageBytes != 0 || o.offset % kPageBytes != 0) {
    return "a window of " + text(o.bytes) + " bytes at " + text(o.offset) + " is not whole pages of 4096";
  }
  if (o.segment_bytes > UINT64_MAX - kPageBytes || o.offset >= o.segment_bytes ||
      o.bytes > round_up_to_page(o.segment_bytes) - o.offset) {
    return "a window of " + text(o.bytes) + " bytes at " + text(o.offset) + " ends beyond the segment, which has " +
           text(o.segment_bytes);
  }
  if (o.cache_bytes > bytes_of_memory()) {
    return "a cache of " + text(o.cache_bytes) + " bytes is larger than the memory, which has " +
           text(bytes_of_memory());
  }
  if (paths.empty() || paths.size() > PathPool::kMaxPaths) return "a window has 1 to 4 paths";
  for (const auto& path : paths) {
    if (!path->is_signal_safe()) return "a path of a window must be safe in the handler of a fault";
  }
  return "";
}

// Its twins take as much again, so more than a window has pages is never useful.
uint32_t slots_for(const CachedWindowOptions& o) {
  const uint64_t wanted = std::max<uint64_t>(o.cache_bytes / kPageBytes, CachedWindow::kMinCachePages);
  return static_cast<uint32_t>(std::min({wanted, o.bytes / kPageBytes, uint64_t{PageWord::kMaxSlots}}));
}

bool refuse(WindowError* error, urma_status_t status, std::string why) {
  *error = {status, std::move(why)};
  return false;
}

}  // namespace

std::unique_ptr<CachedWindow> CachedWindow::create(const CachedWindowOptions& options,
                                                   std::vector<std::unique_ptr<RemotePath>> paths,
                                                   WindowError* error) try {
  if (::sysconf(_SC_PAGESIZE) != kPageBytes) {
    refuse(error, URMA_ENOPERM, "a window needs pages of 4096 bytes, and this system has others");
    return nullptr;
  }
  if (std::string why = judge(options, paths); !why.empty()) {
    refuse(error, URMA_EINVAL, std::move(why));
    return nullptr;
  }
  std::unique_ptr<CachedWindow> window(new CachedWindow(options));
  return window->open(std::move(paths), error) ? std::move(window) : nullptr;
} catch (const std::bad_alloc&) {
  refuse(error, URMA_ENOMEM, "out of memory for a window");
  return nullptr;
}

bool CachedWindow::open(std::vector<std::unique_ptr<RemotePath>> paths, WindowError* error) {
  const uint32_t slots = slots_for(options_);
  ahead_ = std::min({options_.prefetch_pages, kMaxRun - 1, slots / 4});
  slots_.create(slots);
  if (!table_.create(all_pages().end) || !twins_.create(options_.read_only ? 1 : slots) ||
      !paths_.create(std::move(paths))) {
    return refuse(error, URMA_ENOMEM, "out of memory for a window of " + std::to_string(options_.bytes) + " bytes");
  }
  std::string why;
  return memory_.create(all_pages().end, error) &&
         (FaultRouter::get().add(memory_.data(), options_.bytes, *this, &why) || refuse(error, URMA_ENOPERM, why));
}

CachedWindow::~CachedWindow() { FaultRouter::get().remove(*this); }

uint64_t CachedWindow::page_of(const void* address) const {
  return static_cast<uint64_t>(static_cast<const std::byte*>(address) - data()) / kPageBytes;
}

// False: not all of it lies in the window. No bytes are no pages.
bool CachedWindow::pages_of(const void* at, uint64_t bytes, PageRange* pages) const {
  const uint64_t start = reinterpret_cast<uint64_t>(at) - reinterpret_cast<uint64_t>(data());
  if (start > options_.bytes || bytes > options_.bytes - start) return false;
  *pages = {start / kPageBytes, bytes == 0 ? start / kPageBytes : (start + bytes - 1) / kPageBytes + 1};
  return true;
}

// The last page of a segment may be a part of one.
uint32_t CachedWindow::valid_bytes(uint64_t page) const {
  return static_cast<uint32_t>(std::min<uint64_t>(kPageBytes, options_.segment_bytes - remote_place(page)));
}

bool CachedWindow::may_access(PageWord page, bool is_write) const {
  if (is_write && options_.read_only) return false;
  return !options_.owned || (is_write ? page.owned == Owned::kWrite : page.owned != Owned::kNone);
}

}  // namespace ub::aperture
