// SPDX-License-Identifier: Apache-2.0
//
// The paths of a window, each used by one thread at a time. A thread claims one by a compare-exchange that leaves its
// name there, and waits, without a lock, while all are taken. It never keeps one while it touches memory of the
// program. While a fault is served no other handler runs (FaultRouter), unless the program's own handler of faults lets
// it: such a one takes another path. If its thread has all of them, waiting would never end, so there is none for it.
//
// Thread: any, also in a signal handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/urma/aperture/remote_path.h"

namespace ub::aperture {

class AccessPaths {
  static constexpr uint64_t kNobody = 0;
  struct Place {
    std::unique_ptr<RemotePath> path;
    std::atomic<uint64_t> owner{kNobody};
  };

 public:
  explicit AccessPaths(std::vector<std::unique_ptr<RemotePath>>);  // one at least

  class Claim {
   public:
    explicit Claim(AccessPaths& pool) : place_(pool.take()) {}
    ~Claim() {
      if (place_ != nullptr) place_->owner.store(kNobody, std::memory_order_release);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    explicit operator bool() const { return place_ != nullptr; }
    RemotePath* operator->() const { return place_->path.get(); }

   private:
    Place* const place_;
  };

 private:
  static constexpr uint32_t kSpinsBeforeYield = 128;

  Place* take();
  Place* try_take(uint64_t thread);
  bool has_all(uint64_t thread) const;

  std::vector<Place> places_;
};

}  // namespace ub::aperture
