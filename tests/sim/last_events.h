// SPDX-License-Identifier: Apache-2.0
//
// What all nodes of a world noted last (lib/transport/looking/), for whoever has to find out why a run failed. While it
// lives, a failed check of the program (lib/base/assert.h) prints it, too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/transport/looking/event_ring.h"

namespace ub::sim {

class LastEvents {
 public:
  LastEvents();
  ~LastEvents();
  LastEvents(const LastEvents&) = delete;

  void add(Instant at, uint32_t node, const Note& note) { ring_->add({at, node, note}); }
  // A line for each of at most so many, the oldest first; how many it is is said above them.
  std::string text(uint32_t most) const;

  // How many are told when something fails; 0: none.
  static inline uint32_t told = 40;

 private:
  static constexpr uint32_t kRoom = 4096;
  std::unique_ptr<EventRing<kRoom>> ring_ = std::make_unique<EventRing<kRoom>>();
  const LastEvents* before_;  // of a world around this one
};

}  // namespace ub::sim
