// SPDX-License-Identifier: Apache-2.0
//
// What the Core of an emulated node writes its frames into. They are taken out after each call of the Core.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "emu_hw/node/memory_at_hand.h"
#include "emu_hw/parts/frame.h"

namespace ub::emu {

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
