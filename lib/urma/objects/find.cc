// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/objects/find.h"

#include <algorithm>

#include "lib/ipc/pause.h"
#include "lib/urma/clock.h"
#include "lib/urma/library.h"

namespace ub::urma {

namespace {

constexpr int64_t kFirstPauseNs = 5'000;  // a peer that polls answers within some microseconds
constexpr int64_t kLongestPauseNs = 1'000'000;

}  // namespace

Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid, std::string* why) {
  const int64_t until = now_ns() + kFindPatienceNs;
  for (int64_t pause = kFirstPauseNs;; pause = std::min(pause * 2, kLongestPauseNs)) {
    const Status status = backend().find_instance(local, eid, id, token_id, uasid, why);
    if (status != Status::kBusy) return status;
    if (now_ns() > until) return Status::kInvalid;
    backend().drive();
    ipc::pause_for(Duration{pause});
  }
}

}  // namespace ub::urma
