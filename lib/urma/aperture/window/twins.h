// SPDX-License-Identifier: Apache-2.0
//
// The twin of a dirty page has the bytes that remote memory had when the page was loaded or written back last. What
// differs from it was written here, and no other byte is sent: two windows may write different bytes of the same page.
//
// Each slot of the cache has room for one twin. The memory is taken when a twin is made first, and kept. Thread: a twin
// belongs to whoever has claimed the page of its slot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/ipc/memfd.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/aperture/window/page_table.h"

namespace ub::aperture {

class Twins {
 public:
  // False: no memory.
  bool create(uint32_t slots) { return memory_.map_private(uint64_t{slots} * kPageBytes); }
  std::byte* of(uint32_t slot) const { return memory_.data() + uint64_t{slot} * kPageBytes; }

 private:
  ipc::Mapping memory_;
};

// Bit i: byte i of a line of at most 64 bytes differs.
inline uint64_t changed_bytes(const std::byte* now, const std::byte* before, uint32_t bytes) {
  if (std::memcmp(now, before, bytes) == 0) return 0;
  uint64_t changed = 0;
  for (uint32_t i = 0; i < bytes; ++i) changed |= static_cast<uint64_t>(now[i] != before[i]) << i;
  return changed;
}

// Calls send(first byte, bytes, enables) for each row of neighbouring lines that all have changed; `enables` has a word
// for each of them. Of the page only its first `bytes` count.
template <class Send>
void for_each_change(const std::byte* page, const std::byte* twin, uint32_t bytes, Send send) {
  uint64_t enables[kPageBytes / kLineBytes];
  uint32_t lines = 0;  // of the row that ends before `at`
  uint32_t at = 0;
  for (; at < bytes; at += kLineBytes) {
    enables[lines] = changed_bytes(page + at, twin + at, std::min(kLineBytes, bytes - at));
    if (enables[lines] != 0) {
      ++lines;
    } else if (lines > 0) {
      send(at - lines * kLineBytes, lines * kLineBytes, enables);
      lines = 0;
    }
  }
  if (lines > 0) send(at - lines * kLineBytes, bytes - (at - lines * kLineBytes), enables);
}

}  // namespace ub::aperture
