// SPDX-License-Identifier: Apache-2.0
//
// Memory as an instruction sees it: the bytes of the window are remote, all others are touched where they are. An
// access that begins or ends outside of the window is divided at its ends. One of up to 64 bytes that crosses a line
// (64 bytes) becomes two remote accesses, each of its own size.
//
// A store is fenced before it is reported as done. So its errors are those of the instruction that made it, and what a
// thread does next, maybe on another path, comes after it, as on real memory.
//
// Thread: any, also in a signal handler. Memory outside of the window may fault; no path is claimed then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/urma/aperture/uncached/access_paths.h"

namespace ub::aperture {

// As enables: the first `count` bytes of an access.
constexpr uint64_t low_bits(uint32_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

class WindowMemory {
 public:
  static constexpr uint32_t kMostBytes = 512;  // of one access
  static constexpr uint64_t kAllBytes = ~uint64_t{0};

  // The window is [start, start + bytes), and its first byte lies at `place` of the segment.
  WindowMemory(uint64_t start, uint64_t bytes, uint64_t place, bool read_only, AccessPaths&);

  // URMA_CR_LOC_ACCESS_ERR: the window is read-only. URMA_CR_LOC_OPERATION_ERR: this thread was interrupted while it
  // had all paths of the window. Other errors are those of the path.
  urma_cr_status_t load(uint64_t from, std::byte* to, uint32_t bytes);
  // Byte i is stored if bit i of `enables` is set; of more than 64 bytes all are.
  urma_cr_status_t store(uint64_t to, const std::byte* from, uint32_t bytes, uint64_t enables = kAllBytes);
  // Inside of the window, and naturally aligned in 4 or 8 bytes.
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old);  // `at`: an address of the window

  bool contains(uint64_t address, uint64_t bytes) const {
    return address - start_ < bytes_ && bytes <= bytes_ - (address - start_);
  }
  bool touches(uint64_t address, uint64_t bytes) const { return address < start_ + bytes_ && address + bytes > start_; }
  // How many bytes from this address on are either all in the window or all outside.
  uint64_t bytes_alike(uint64_t address) const;

 private:
  struct Parts {
    uint32_t before, inside, after;
  };
  Parts divide(uint64_t address, uint32_t bytes) const;
  uint64_t place_of(uint64_t address) const { return place_ + (address - start_); }
  urma_cr_status_t load_remote(uint64_t from, std::byte* to, uint32_t bytes);
  urma_cr_status_t store_remote(uint64_t to, const std::byte* from, uint32_t bytes, uint64_t enables);

  const uint64_t start_, bytes_, place_;
  const bool read_only_;
  AccessPaths& paths_;
};

}  // namespace ub::aperture
