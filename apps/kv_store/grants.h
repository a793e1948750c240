// SPDX-License-Identifier: Apache-2.0
//
// Room in the heap that the server has granted to a client, and which places of it are taken. A place is taken once. A
// grant that is used up is released when nothing is under way to it any more.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "apps/kv_store/messages.h"

namespace ub::kv {

class Grants {
 public:
  class Grant {
   public:
    Grant(uint64_t number, uint32_t epoch, std::vector<Extent> extents)
        : number_(number), epoch_(epoch), extents_(std::move(extents)) {
      for (Extent extent : extents_) left_ += extent.units;
      granted_ = left_;
    }

   private:
    friend class Grants;
    uint64_t number_;
    uint32_t epoch_;
    std::vector<Extent> extents_;      // what is left
    uint64_t granted_ = 0, left_ = 0;  // units
    uint32_t under_way_ = 0;           // records
  };

  struct Place {
    Grant* grant;
    uint32_t unit, epoch;
  };

  void add(Grant grant) { usable_.push_back(std::move(grant)); }

  // Room for a record; done() must follow. Nothing: ask for a grant with such room.
  std::optional<Place> take(uint32_t units) {
    for (auto grant = usable_.begin(); grant != usable_.end(); ++grant) {
      const auto unit = take(*grant, units);
      if (!unit) continue;
      if (grant->extents_.empty()) used_up_.splice(used_up_.end(), usable_, grant);
      return Place{&*grant, *unit, grant->epoch_};
    }
    // What is left of the oldest one serves short records alone, and would keep newer ones away.
    if (usable_.size() == kMostUsable) used_up_.splice(used_up_.end(), usable_, usable_.begin());
    return std::nullopt;
  }
  // The record has been published, or never will be.
  void done(Grant* grant) { --grant->under_way_; }

  // Is there reason to ask for another one before records find no room?
  bool run_low() const {
    return usable_.empty() || (usable_.size() == 1 && usable_.front().left_ * 2 < usable_.front().granted_);
  }
  // The number of a grant that is to be released, which is forgotten.
  std::optional<uint64_t> next_to_release() {
    for (auto grant = used_up_.begin(); grant != used_up_.end(); ++grant) {
      if (grant->under_way_ != 0) continue;
      const uint64_t number = grant->number_;
      used_up_.erase(grant);
      return number;
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kMostUsable = 2;

  static std::optional<uint32_t> take(Grant& grant, uint32_t units) {
    for (size_t i = grant.extents_.size(); i > 0; --i) {
      Extent& extent = grant.extents_[i - 1];
      if (extent.units < units) continue;
      const uint32_t unit = extent.unit;
      extent = {unit + units, extent.units - units};
      grant.left_ -= units;
      if (extent.units < units) {  // records are mostly of similar size, so the rest serves nobody
        grant.left_ -= extent.units;
        extent = grant.extents_.back();
        grant.extents_.pop_back();
      }
      ++grant.under_way_;
      return unit;
    }
    return std::nullopt;
  }

  std::list<Grant> usable_, used_up_;
};

}  // namespace ub::kv
