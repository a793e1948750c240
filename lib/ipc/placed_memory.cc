// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/placed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace ub::ipc {

namespace {

constexpr uint64_t kPlaceBytes = uint64_t{1} << 36;
#ifdef __SANITIZE_THREAD__  // leaves programs the first 512 GiB, and what the kernel chooses
constexpr uint64_t kFirstPlace = kPlaceBytes;
constexpr uint32_t kPlaces = 7;
#else
constexpr uint64_t kFirstPlace = uint64_t{0x2000} << 32;  // above the shadow of AddressSanitizer, below libraries
constexpr uint32_t kPlaces = 256;
#endif
constexpr uint64_t kPresent = uint64_t{3} << 62;  // in an entry of /proc/self/pagemap: in memory, or in swap

void* map_at(uint64_t address, size_t bytes, int flags) {
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

bool PlacedMemory::take_at(uint64_t address, size_t bytes) {
  reset();
  void* at = map_at(address, bytes, MAP_FIXED_NOREPLACE);
  if (at == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  if (reinterpret_cast<uint64_t>(at) == address) return true;  // a kernel before 4.17 takes the flag for a hint
  reset();
  return false;
}

std::byte* map_placed(size_t bytes) {
  static std::atomic<uint32_t> next{0};
  for (uint32_t tries = 0; tries < kPlaces && bytes <= kPlaceBytes; ++tries) {
    const uint64_t address = kFirstPlace + next.fetch_add(1, std::memory_order_relaxed) % kPlaces * kPlaceBytes;
    void* at = map_at(address, bytes, MAP_FIXED_NOREPLACE);
    if (at == MAP_FAILED) continue;
    if (reinterpret_cast<uint64_t>(at) == address) return static_cast<std::byte*>(at);
    munmap(at, bytes);
  }
  void* at = map_at(0, bytes, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

bool PlacedMemory::take(size_t bytes) {
  reset();
  data_ = map_placed(bytes);
  bytes_ = data_ == nullptr ? 0 : bytes;
  return data_ != nullptr;
}

void PlacedMemory::reset() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

void each_touched_run(std::span<const std::byte> memory, void (*fn)(void* context, size_t offset, size_t bytes),
                      void* context) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = (memory.size() + page - 1) / page;
  const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::vector<uint64_t> entries(std::min<size_t>(pages, 1 << 15));
  size_t run = 0, run_bytes = 0;
  const auto end_run = [&] {
    if (run_bytes != 0) fn(context, run, std::min(run_bytes, memory.size() - run));
    run_bytes = 0;
  };
  for (size_t first = 0; first < pages; first += entries.size()) {
    const size_t some = std::min(entries.size(), pages - first);
    const auto at = static_cast<off_t>((reinterpret_cast<uintptr_t>(memory.data()) / page + first) * 8);
    const bool known =
        fd >= 0 && pread(fd, entries.data(), some * 8, at) == static_cast<ssize_t>(some * 8);
    for (size_t i = 0; i < some; ++i) {
      if (known && (entries[i] & kPresent) == 0) {
        end_run();
        continue;
      }
      if (run_bytes == 0) run = (first + i) * page;
      run_bytes += page;
    }
  }
  end_run();
  if (fd >= 0) close(fd);
}

}  // namespace ub::ipc
