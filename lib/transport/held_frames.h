// SPDX-License-Identifier: Apache-2.0
//
// Frames whose payload comes from memory that answers later. Such a frame leaves its port, so that in a ring nobody
// behind it waits for that memory, and is begun again when all of it is there. CoreCommon::held_frames has a place for
// each packet of a channel that may wait, each datagram and each queue pair; tx_hold and tx_drop of the host are described
// in host.h.
#pragma once

#include <cstring>

#include "lib/transport/core_common.h"

namespace ub {

// A frame whose gathers are pending, or that waits behind such: `held` is the place.
template <class Host>
void hold_frame(CoreCommon& s, Host& host, uint32_t held, uint32_t link, std::byte* frame, size_t bytes) {
  std::byte* copy = s.held_frame(held);
  std::memcpy(copy, frame, bytes);
  host.tx_hold(link, frame, copy);
}

// A frame of the port with what is held there; null: no room now.
template <class Host>
std::byte* resume_frame(CoreCommon& s, Host& host, uint32_t held, uint32_t link, size_t bytes) {
  std::byte* frame = host.tx_begin(link, bytes);
  if (frame != nullptr) std::memcpy(frame, s.held_frame(held), bytes);
  return frame;
}

// Tells the host of those that were given up meanwhile: before their places are used again.
template <class Host>
void release_orphans(CoreCommon& s, Host& host) {
  for (uint32_t i = 0; i < s.orphan_count; ++i) host.tx_drop(s.held_frame(s.orphans[i]));
  s.orphan_count = 0;
}

}  // namespace ub
