// SPDX-License-Identifier: Apache-2.0
//
// Hands the section [congestion] of a configuration to the Core.
#pragma once

#include "dataplane/config.h"
#include "lib/transport/core_types.h"

namespace ub {

// The algorithm, the rate of the line and the numbers of all algorithms. Values are valid: config_keys.def bounds them.
void set_congestion(const CongestionKeys& keys, CoreConfig* core);

// Does a socket have to tell which packets were marked?
bool reads_marks(const Config& config);

}  // namespace ub
