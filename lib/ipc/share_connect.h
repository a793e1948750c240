// SPDX-License-Identifier: Apache-2.0
//
// A program asks the NIC of an owner for memory to map (share.h). Thread: any; there is no state.
#pragma once

#include <functional>
#include <string>

#include "lib/base/time.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/share.h"

namespace ub::ipc {

struct OpenedShare {
  Fd socket;
  Fd memory;  // whole pages, of a size that cannot change
  bool writable = false;
  Fd gate, life;  // an AccessGate and a LifePage, if the request asked for them
  bool atomics = false;
};

// As connect_lane(). False and `*why`: nobody is there, the NIC refuses, or it does not answer.
bool connect_share(const std::string& path, const ShareHello& hello, Duration patience,
                   const std::function<void()>& meanwhile, OpenedShare* out, std::string* why);

}  // namespace ub::ipc
