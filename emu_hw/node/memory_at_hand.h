// SPDX-License-Identifier: Apache-2.0
//
// The part of a Core's Host (lib/transport/host.h) that copies: all memory is at hand, and nothing is ever pending.
#pragma once

#include <cstring>

#include "lib/base/word_copy.h"
#include "lib/transport/host.h"

namespace ub::emu {

struct MemoryAtHand {
  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag) {
    std::memcpy(dst, src, bytes);
    return CopyResult::kDone;
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag) {
    if (final) {
      copy_final_word_last(dst, src, bytes);
    } else {
      std::memcpy(dst, src, bytes);
    }
    return CopyResult::kDone;
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag) {
    *old = run_atomic(request);
    return CopyResult::kDone;
  }
  void load(std::byte* block, const std::byte* memory, size_t bytes) { load_words(block, memory, bytes); }
  void store(std::byte* memory, const std::byte* block, size_t bytes) { store_words(memory, block, bytes); }
  void tx_hold(uint32_t, std::byte*, std::byte*) {}
  void tx_drop(std::byte*) {}
};

}  // namespace ub::emu
