// SPDX-License-Identifier: Apache-2.0
//
// Free ranges of a memory region, handed out at random places so that neighbours differ from run to run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "lib/base/prng.h"

namespace ub::sim {

class RangeSet {
 public:
  void add(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return;
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    free_.emplace(offset, bytes);
  }

  std::optional<uint64_t> take(uint64_t bytes, Prng& rng) {
    if (bytes == 0) bytes = 1;
    auto it = free_.begin();
    uint64_t skip = rng.below(3);
    auto found = free_.end();
    for (; it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      found = it;
      if (skip-- == 0) break;
    }
    if (found == free_.end()) return std::nullopt;
    uint64_t slack = found->second - bytes;
    uint64_t at = found->first + (slack == 0 ? 0 : rng.below(slack < 256 ? slack + 1 : 256));
    uint64_t first = found->first, end = first + found->second;
    free_.erase(found);
    if (at > first) free_.emplace(first, at - first);
    if (at + bytes < end) free_.emplace(at + bytes, end - at - bytes);
    return at;
  }

  // The beginning of the first range. What is taken and given back in one size leaves no gaps, so nothing is searched.
  std::optional<uint64_t> take_first(uint64_t bytes) {
    const auto first = free_.begin();
    if (bytes == 0) bytes = 1;
    if (first == free_.end() || first->second < bytes) return std::nullopt;
    const auto [at, length] = *first;
    free_.erase(first);
    if (length > bytes) free_.emplace(at + bytes, length - bytes);
    return at;
  }

  bool overlaps(uint64_t offset, uint64_t bytes) const {
    auto next = free_.lower_bound(offset + bytes);
    return next != free_.begin() && bytes != 0 && std::prev(next)->first + std::prev(next)->second > offset;
  }

  template <class F>
  void for_each(F f) const {
    for (auto [offset, bytes] : free_) f(offset, bytes);
  }

 private:
  std::map<uint64_t, uint64_t> free_;
};

}  // namespace ub::sim
