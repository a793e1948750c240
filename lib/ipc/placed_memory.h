// SPDX-License-Identifier: Apache-2.0
//
// Private zeroed memory at an address that another process can have, too: what points into it can be written to a file
// and used again elsewhere (docs/recording-design.md). Its pages are touched lazily.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ub::ipc {

// Maps such memory. Null: there is none.
std::byte* map_placed(size_t bytes);

class PlacedMemory {
 public:
  PlacedMemory() = default;
  ~PlacedMemory() { reset(); }
  PlacedMemory(const PlacedMemory&) = delete;
  PlacedMemory& operator=(const PlacedMemory&) = delete;

  // Takes memory in a range of addresses that programs and libraries do not use; anywhere else if the kernel, or a
  // sanitizer, has none there. False: there is no memory.
  bool take(size_t bytes);
  // Takes memory at that address and nowhere else. False: it cannot be had.
  bool take_at(uint64_t address, size_t bytes);
  void reset();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Calls fn(offset, bytes) for each run of pages of the memory that somebody has written to since it was taken. `memory`
// begins at a page.
void each_touched_run(std::span<const std::byte> memory, void (*fn)(void* context, size_t offset, size_t bytes),
                      void* context);

}  // namespace ub::ipc
