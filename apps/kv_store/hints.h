// SPDX-License-Identifier: Apache-2.0
//
// Where a client found keys before: their slots, and what these said. A hint may be old; whoever uses it sees that by
// the record, or by a compare-and-swap that fails. A key is known by 128 bits of its hash, whose seed is the server's.
// Of two keys with one place in the table the later one stays.
#pragma once

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
  explicit Hints(uint32_t most) : hints_(most == 0 ? 0 : std::bit_ceil(most)) {}

  // nullptr: nothing is known.
  const Hint* find(const KeyHash& hash) const {
    if (hints_.empty()) return nullptr;
    const Hint& hint = hints_[place(hash)];
    return hint.word && hint.hash == hash ? &hint : nullptr;
  }
  void remember(const KeyHash& hash, uint64_t slot, Word word) {
    if (!hints_.empty()) hints_[place(hash)] = {hash, slot, word};
  }
  void forget(const KeyHash& hash) {
    if (find(hash) != nullptr) hints_[place(hash)] = {};
  }

 private:
  size_t place(const KeyHash& hash) const { return hash.low & (hints_.size() - 1); }

  std::vector<Hint> hints_;
};

}  // namespace ub::kv
