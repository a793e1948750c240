// SPDX-License-Identifier: Apache-2.0
//
// Whether every send queue that may go on was told to, once its Core has driven until nothing was left. Whatever opens
// a gate has to wake those that wait at it. If it does not, some later answer mostly does, and only the last requests
// of all stand still for ever; so the queues are rung without a cause, and none may then have anything to do.
#pragma once

#include <string>

#include "tests/sim/node.h"

namespace ub::sim {

// The first queue that could go on, and that nobody woke; empty: there is none. It goes on then.
std::string unwoken_queue(SimCore&, Instant now);

}  // namespace ub::sim
