// SPDX-License-Identifier: Apache-2.0
// device_profile.h - what the device says of itself, from the section [device] of the configuration: ports, features,
// priorities. Programs choose by it what they do; the NIC does the same whatever is said. The feature
// selective_retrans is shown only where transport.retransmission is selective, too.
#pragma once

#include <string>

#include "dataplane/config.h"
#include "lib/urma/backends/placement.h"

namespace ub::urma {

// False and `*error`: the keys contradict each other.
bool read_profile(const Config& config, DeviceSettings* settings, std::string* error);

}  // namespace ub::urma
