// SPDX-License-Identifier: Apache-2.0
//
// A window over remote memory of a test.
#pragma once

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/urma/aperture/window/cached_window.h"
#include "tests/unit/aperture/window/fake_memory.h"

namespace ub::aperture::test {

inline constexpr uint64_t kPage = kPageBytes;

inline std::byte byte_of(uint64_t value) { return static_cast<std::byte>(value); }
// What a byte of remote memory is at first.
inline std::byte first_value(uint64_t at) { return byte_of(at * 7 + at / 4096 * 13 + 1); }

inline std::vector<std::unique_ptr<RemotePath>> paths_to(FakeMemory& memory, size_t count) {
  std::vector<std::unique_ptr<RemotePath>> paths;
  for (size_t i = 0; i < count; ++i) paths.push_back(std::make_unique<FakePath>(memory));
  return paths;
}

inline void fill_first_values(FakeMemory& memory) {
  for (uint64_t at = 0; at < memory.size(); ++at) memory.set(at, first_value(at));
}

// Nobody asks for pages ahead unless the options say so.
inline CachedWindowOptions options_of(uint64_t pages, uint64_t cache_pages) {
  CachedWindowOptions options;
  options.segment_bytes = options.bytes = pages * kPage;
  options.cache_bytes = cache_pages * kPage;
  options.prefetch_pages = 0;
  return options;
}

struct Rig {
  explicit Rig(const CachedWindowOptions& options, size_t paths = 4) : memory(options.segment_bytes) {
    fill_first_values(memory);
    WindowError error;
    window = CachedWindow::create(options, paths_to(memory, paths), &error);
    if (window == nullptr) ADD_FAILURE() << error.why;
  }
  Rig(uint64_t pages, uint64_t cache_pages) : Rig(options_of(pages, cache_pages)) {}
  ~Rig() {
    window.reset();
    EXPECT_FALSE(memory.misused);
  }

  std::byte* at(uint64_t offset) const { return window->data() + offset; }
  std::byte read(uint64_t offset) const { return *static_cast<volatile std::byte*>(at(offset)); }
  void write(uint64_t offset, std::byte value) const { *static_cast<volatile std::byte*>(at(offset)) = value; }
  bool is_present(uint64_t page) const {
    unsigned char present = 0;
    EXPECT_EQ(::mincore(at(page * kPage), kPage, &present), 0);
    return (present & 1) != 0;
  }
  uint64_t count_present() const {
    uint64_t count = 0;
    for (uint64_t page = 0; page < window->bytes() / kPage; ++page) count += is_present(page);
    return count;
  }
  urma_cr_status_t sync(uint64_t offset, uint64_t bytes, uint32_t what) {
    return window->sync(at(offset), bytes, what);
  }
  urma_cr_status_t own(uint64_t offset, uint64_t bytes, Owned owned) { return window->own(at(offset), bytes, owned); }

  FakeMemory memory;
  std::unique_ptr<CachedWindow> window;
};

// The signal that an access of this thread ends with, or 0. It is caught by the handler that was there before a window
// was made (handler_before.cc).
extern thread_local sigjmp_buf* jump_on_signal;

template <class Access>
[[gnu::noinline]] int signal_of(Access access) {
  sigjmp_buf here;
  const int signal = sigsetjmp(here, 1);
  if (signal == 0) {
    jump_on_signal = &here;
    access();
  }
  jump_on_signal = nullptr;
  return signal;
}

}  // namespace ub::aperture::test
