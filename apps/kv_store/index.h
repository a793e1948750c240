// SPDX-License-Identifier: Apache-2.0
//
// The index as its server uses it. The server alone decides which key has which slot; clients read slots, and replace
// words of slots that are in use.
//
// A key lies in its home line, or in one of the lines behind it, as the reach of its home says. It keeps its slot as
// long as it exists. The reach is raised before the slot is filled, and never lowered.
//
// Thread: one; clients read and compare-and-swap at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "apps/kv_store/layout.h"

namespace ub::kv {

class Index {
 public:
  Index(std::byte* memory, const Geometry& geometry) : memory_(memory), geometry_(geometry) {}

  std::atomic_ref<uint64_t> word(uint64_t slot) const { return shared_word(memory_ + slot); }

  // The slot whose word passes is_it(word); only words with the tag of the hash are asked.
  template <class IsIt>
  std::optional<uint64_t> find(const KeyHash& hash, IsIt is_it) const {
    const uint64_t home = hash.home(geometry_.lines);
    for (uint64_t line = home, last = home + reach(home).load(); line <= last; ++line) {
      for (uint32_t i = 0; i < kSlots; ++i) {
        const uint64_t slot = geometry_.slot_at(line, i);
        const Word there(word(slot).load());
        if (there && there.tag() == hash.tag() && is_it(there)) return slot;
      }
    }
    return std::nullopt;
  }

  // Fills a free slot for a key that is not there. Nothing: there is no free one within reach.
  std::optional<uint64_t> place(const KeyHash& hash, Word there) {
    const uint64_t home = hash.home(geometry_.lines);
    for (uint64_t reaches = 0; reaches <= Geometry::kMostReach; ++reaches) {
      for (uint32_t i = 0; i < kSlots; ++i) {
        const uint64_t slot = geometry_.slot_at(home + reaches, i);
        if (word(slot).load() != 0) continue;
        reach(home).store(std::max(reach(home).load(), reaches));
        word(slot).store(there.bits());
        return slot;
      }
    }
    return std::nullopt;
  }

  // Calls visit(word) for each slot that is in use.
  template <class Visit>
  void each(Visit visit) const {
    for (uint64_t line = 0; line < geometry_.lines + Geometry::kMostReach; ++line) {
      for (uint32_t i = 0; i < kSlots; ++i) {
        if (const Word there(word(geometry_.slot_at(line, i)).load()); there) visit(there);
      }
    }
  }

 private:
  std::atomic_ref<uint64_t> reach(uint64_t line) const { return shared_word(memory_ + geometry_.line_at(line)); }

  std::byte* memory_;
  const Geometry& geometry_;
};

}  // namespace ub::kv
