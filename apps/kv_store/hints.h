// SPDX-License-Identifier: Apache-2.0
//
// Where a client found keys before: their slots, and what these said. A hint may be old; whoever uses it sees that by
// the record, or by a compare-and-swap that fails. A key is known by 128 bits of its hash, whose seed is the server's.
// Two keys have one place in the table; of three, the two that were remembered last stay.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "apps/kv_store/layout.h"

namespace ub::kv {

class Hints {
 public:
  struct Hint {
    KeyHash hash;
    uint64_t slot = 0;  // bytes from the first one of the memory
    Word word;          // nothing: there is no hint
  };

  // `most`: 0: none at all; else rounded up to a power of two.
  explicit Hints(uint32_t most) : hints_(most == 0 ? 0 : std::bit_ceil(std::max(most, kOfPlace))) {}

  // nullptr: nothing is known.
  const Hint* find(const KeyHash& hash) const {
    if (hints_.empty()) return nullptr;
    const Hint* newer = &hints_[place(hash)];
    for (const Hint* hint = newer; hint != newer + kOfPlace; ++hint) {
      if (hint->word && hint->hash == hash) return hint;
    }
    return nullptr;
  }
  void remember(const KeyHash& hash, uint64_t slot, Word word) {
    if (hints_.empty()) return;
    Hint* newer = &hints_[place(hash)];
    if (newer->hash != hash) newer[1] = newer[0];
    newer[0] = {hash, slot, word};
  }
  void forget(const KeyHash& hash) {
    if (const Hint* hint = find(hash)) hints_[static_cast<size_t>(hint - hints_.data())].word = {};
  }

 private:
  static constexpr uint32_t kOfPlace = 2;

  size_t place(const KeyHash& hash) const { return hash.low & (hints_.size() - kOfPlace); }

  std::vector<Hint> hints_;
};

}  // namespace ub::kv
