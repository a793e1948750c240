// SPDX-License-Identifier: Apache-2.0
//
// A program asks a NIC of this host for a lane (lane.h). Thread: any; there is no state.
#pragma once

#include <functional>
#include <string>

#include "lib/base/time.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/lane.h"

namespace ub::ipc {

struct OpenedLane {
  Fd socket;
  Fd memory;
  bool fence_needed = true;  // heavy barriers of the NIC do not reach this process
};

// Connects to the socket of the NIC at `path`, whose EID and uasid the hello names, and waits for its answer for
// `patience` at most; `meanwhile` is called in between, because the NIC may be this process' own. False and `*why`, a
// sentence: nobody is there, the NIC refuses, or it does not answer.
bool connect_lane(const std::string& path, const LaneHello& hello, Duration patience,
                  const std::function<void()>& meanwhile, OpenedLane* out, std::string* why);

// For a program with that id of a process.
LaneHello make_lane_hello(const std::array<uint8_t, 16>& eid, uint32_t uasid, int32_t process);

}  // namespace ub::ipc
