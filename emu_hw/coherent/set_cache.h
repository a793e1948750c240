// SPDX-License-Identifier: Apache-2.0
//
// A cache of sets, each of which forgets what it used longest ago. Lines have a right: to read, or to write.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ub::emu {

enum class Right : uint8_t { kNone, kRead, kWrite };

class SetCache {
 public:
  // `lines` is a multiple of `ways`.
  SetCache(uint64_t lines, uint64_t ways) : ways_(ways), sets_(lines / ways), entries_(lines) {}

  // Of a line that is used now.
  Right touch(uint64_t line) {
    Entry* entry = find(line);
    if (entry == nullptr) return Right::kNone;
    entry->used = ++now_;
    return entry->right;
  }
  // Returns the line that has to go.
  std::optional<uint64_t> insert(uint64_t line, Right right) {
    Entry* entry = find(line);
    std::optional<uint64_t> victim;
    if (entry == nullptr) {
      entry = oldest(line);
      if (entry->right != Right::kNone) victim = entry->line;
    }
    *entry = {line, ++now_, right};
    return victim;
  }
  // To kNone: it is gone.
  void restrict_to(uint64_t line, Right right) {
    Entry* entry = find(line);
    if (entry == nullptr || entry->right <= right) return;
    entry->right = right;
    if (right == Right::kNone) entry->used = 0;
  }

 private:
  struct Entry {
    uint64_t line = 0, used = 0;
    Right right = Right::kNone;
  };

  Entry* set_of(uint64_t line) { return &entries_[line % sets_ * ways_]; }
  Entry* find(uint64_t line) {
    Entry* set = set_of(line);
    for (uint64_t way = 0; way < ways_; ++way)
      if (set[way].right != Right::kNone && set[way].line == line) return &set[way];
    return nullptr;
  }
  Entry* oldest(uint64_t line) {
    Entry* set = set_of(line);
    Entry* found = set;
    for (uint64_t way = 1; way < ways_; ++way)
      if (set[way].used < found->used) found = &set[way];
    return found;
  }

  const uint64_t ways_, sets_;
  std::vector<Entry> entries_;
  uint64_t now_ = 0;
};

}  // namespace ub::emu
