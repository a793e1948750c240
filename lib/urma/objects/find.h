// SPDX-License-Identifier: Apache-2.0
// find.h - which instance an id without a uasid belongs to: asked until it answers.
// Thread: any; waits, and moves the NIC forward meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "lib/urma/backends/backend.h"

namespace ub::urma {

constexpr int64_t kFindPatienceNs = 4'000'000'000;  // then nobody has it

// Between two questions: short at first, since a peer that polls answers within some microseconds.
class FindPause {
 public:
  void rest();

 private:
  int64_t ns_ = 5'000;
};

// The id of a queue or group, or a token id, of that EID. kOk: `*uasid`. Else `*why`.
Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid, std::string* why);

}  // namespace ub::urma
