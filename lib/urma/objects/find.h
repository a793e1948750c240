// SPDX-License-Identifier: Apache-2.0
// find.h - which instance an id without a uasid belongs to: asked until it answers.
// Thread: any; waits, and moves the NIC forward meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "lib/urma/backends/backend.h"

namespace ub::urma {

constexpr int64_t kFindPatienceNs = 4'000'000'000;  // then nobody has it

// The id of a queue or group, or a token id, of that EID. kOk: `*uasid`. Else `*why`.
Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid, std::string* why);

}  // namespace ub::urma
