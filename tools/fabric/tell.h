// SPDX-License-Identifier: Apache-2.0
//
// The other end of the control socket (control.h): tells a running fabric something.
#pragma once

#include <string>
#include <vector>

#include "lib/base/time.h"

namespace ub::fabric {

inline constexpr Duration kTellPatience = seconds(10);

// Sends the commands to the fabric whose socket that is, one after the other, and prints the answers. False: one of
// them was an error. Throws ToolError: nobody is there, the fabric ended, or nothing came from it for so long.
bool tell(const std::string& path, const std::vector<std::string>& commands, Duration patience = kTellPatience);

}  // namespace ub::fabric
