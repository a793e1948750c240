// SPDX-License-Identifier: Apache-2.0
//
// Messages that are answered as if no receive were posted, because an application wants to see what follows
// (docs/fault-injection.md). An owner has one rule for its JFRs. While nobody has one, a message pays a comparison.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/fault/plan.h"
#include "lib/transport/core_types.h"

namespace ub {

class RnrFaults {
 public:
  bool any() const { return count_ != 0; }

  // The owner's rule, in place of the one before, of which nothing is remembered. Nothing: it has none. kNoMemory: too
  // many owners have one.
  Status set(Owner owner, const std::optional<fault::RnrRule>& rule) {
    if (Entry* former = find(owner)) *former = entries_[--count_];
    if (!rule) return Status::kOk;
    if (count_ == kOwners) return Status::kNoMemory;
    entries_[count_++] = {owner, rule->jfr, fault::Selector(rule->choice)};
    return Status::kOk;
  }

  // A message wants a receive of the JFR. Is it to find none?
  bool refuses(Owner owner, uint32_t jfr) {
    Entry* entry = find(owner);
    return entry != nullptr && (entry->jfr == 0 || entry->jfr == jfr) && entry->selector.next();
  }
  uint64_t refused(Owner owner) const {
    const Entry* entry = const_cast<RnrFaults*>(this)->find(owner);
    return entry == nullptr ? 0 : entry->selector.chosen();
  }

 private:
  static constexpr uint32_t kOwners = 64;
  struct Entry {
    Owner owner = 0;
    uint32_t jfr = 0;  // id; 0: any
    fault::Selector selector;
  };

  Entry* find(Owner owner) {
    for (uint32_t i = 0; i < count_; ++i) {
      if (entries_[i].owner == owner) return &entries_[i];
    }
    return nullptr;
  }

  uint32_t count_ = 0;
  Entry entries_[kOwners];  // the first `count_` are rules
};

}  // namespace ub
