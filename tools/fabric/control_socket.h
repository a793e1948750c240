// SPDX-License-Identifier: Apache-2.0
//
// Where the control socket is: for the fabric, which listens there, and for those who tell it something.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "tools/common/tool_error.h"

namespace ub::fabric {

// Throws ToolError: the path is too long for the kernel.
inline sockaddr_un control_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw tools::ToolError(tools::kExitUsage, path + ": the path of a socket has at most " +
                                                  std::to_string(sizeof address.sun_path - 1) + " characters");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace ub::fabric
