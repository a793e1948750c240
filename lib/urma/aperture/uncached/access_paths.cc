// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/access_paths.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "lib/urma/spinlock.h"

namespace ub::aperture {

AccessPaths::AccessPaths(std::vector<std::unique_ptr<RemotePath>> paths) : places_(paths.size()) {
  for (size_t i = 0; i < paths.size(); ++i) places_[i].path = std::move(paths[i]);
}

AccessPaths::Place* AccessPaths::take() {
  const auto thread = static_cast<uint64_t>(pthread_self());
  for (uint32_t spins = 0;; ++spins) {
    if (Place* place = try_take(thread)) return place;
    if (has_all(thread)) return nullptr;
    spins < kSpinsBeforeYield ? urma::cpu_relax() : static_cast<void>(::sched_yield());
  }
}

AccessPaths::Place* AccessPaths::try_take(uint64_t thread) {
  for (Place& place : places_) {
    uint64_t owner = kNobody;
    if (place.owner.load(std::memory_order_relaxed) == kNobody &&
        place.owner.compare_exchange_strong(owner, thread, std::memory_order_acquire))
      return &place;
  }
  return nullptr;
}

bool AccessPaths::has_all(uint64_t thread) const {
  return std::all_of(places_.begin(), places_.end(),
                     [&](const Place& place) { return place.owner.load(std::memory_order_relaxed) == thread; });
}

}  // namespace ub::aperture
