// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/objects/find.h"

#include <algorithm>

#include "lib/ipc/pause.h"
#include "lib/urma/clock.h"
#include "lib/urma/library.h"

namespace ub::urma {

namespace {

constexpr int64_t kLongestPauseNs = 1'000'000;

}  // namespace

void FindPause::rest() {
  backend().drive();
  ipc::pause_for(Duration{ns_});
  ns_ = std::min(ns_ * 2, kLongestPauseNs);
}

Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid, std::string* why) {
  const int64_t until = now_ns() + kFindPatienceNs;
  for (FindPause pause;; pause.rest()) {
    const Status status = backend().find_instance(local, eid, id, token_id, uasid, why);
    if (status != Status::kBusy) return status;
    if (now_ns() > until) return Status::kInvalid;
  }
}

}  // namespace ub::urma
