// SPDX-License-Identifier: Apache-2.0
// device_profile.h - what the device says of itself, from the section [device] of the configuration: ports, features,
// priorities. Programs choose by it what they do; the NIC does the same whatever is said.
#pragma once

#include <string>

#include "dataplane/config.h"
#include "lib/urma/backends/placement.h"

namespace ub::urma {

// False and `*error`: the keys contradict each other.
bool read_profile(const DeviceConfig& config, DeviceSettings* settings, std::string* error);

}  // namespace ub::urma
