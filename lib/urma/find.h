// SPDX-License-Identifier: Apache-2.0
// find.h - which instance an id without a uasid belongs to: asked until it answers.
// Thread: any; waits, and moves the NIC forward meanwhile.
#pragma once

#include <functional>
#include <string>

#include "lib/urma/backend.h"

namespace ub::urma {

// The id of a queue or group, or a token id, of that EID. kOk: `*uasid`. Else `*why`; nothing is known after 4 seconds, or
// when `wanted`, which is asked now and then, answers no.
Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, const std::function<bool()>& wanted,
                     uint32_t* uasid, std::string* why);

}  // namespace ub::urma
