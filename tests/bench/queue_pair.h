// SPDX-License-Identifier: Apache-2.0
//
// A RoCE queue pair of a Node (core_pair.h).
#pragma once

#include "emu_hw/node/queue_pair.h"
#include "tests/bench/core_pair.h"

namespace ub::bench {

using QueuePair = emu::QueuePair<Node>;

}  // namespace ub::bench
