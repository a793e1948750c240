// SPDX-License-Identifier: Apache-2.0
//
// What happens to a frame that comes to a queue, by what waits in front of it. No clock, no IO: links (link.h) and
// emulated switches use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/impair/spec.h"

namespace ub::impair {

// The chance of a mark, with so many bytes in front of the frame.
constexpr double mark_chance(const Marking& m, uint64_t queued) {
  if (m.all_from == 0 || queued < m.none_below) return 0;
  if (queued >= m.all_from) return 1;
  return m.most * static_cast<double>(queued - m.none_below) / static_cast<double>(m.all_from - m.none_below);
}

struct Queued {
  uint64_t frames, bytes;
};

// Is there no room for a frame of that size?
constexpr bool is_full(const Spec& spec, const Queued& queued, size_t bytes) {
  if (spec.queue_frames != 0 && queued.frames >= spec.queue_frames) return true;
  return spec.queue_bytes != 0 && queued.bytes + bytes > spec.queue_bytes;
}

}  // namespace ub::impair
