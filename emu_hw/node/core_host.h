// SPDX-License-Identifier: Apache-2.0
//
// What the Core of an emulated node writes its frames into. They are taken out after each call of the Core.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "emu_hw/node/memory_at_hand.h"

namespace ub::emu {

struct Frame {
  uint32_t link;  // of the node that sends it
  std::vector<std::byte> bytes;
};

// Frames that pass all parts together, in their order.
using Train = std::vector<Frame>;

class CoreHost : public MemoryAtHand {
 public:
  // One frame is open at a time.
  std::byte* tx_begin(uint32_t, size_t bytes) {
    open_.resize(bytes);
    return open_.data();
  }
  void tx_commit(uint32_t link, std::byte*, size_t bytes) {
    open_.resize(bytes);
    committed_.push_back({link, std::exchange(open_, {})});
  }
  void tx_abort(uint32_t, std::byte*) {}
  void tx_may_wait(uint32_t) {}

  Train take() { return std::exchange(committed_, {}); }

 private:
  std::vector<std::byte> open_;
  Train committed_;
};

}  // namespace ub::emu
