// SPDX-License-Identifier: Apache-2.0
//
// Hands what a configuration says about shared networks to the Core: the section [congestion], and the classes.
#pragma once

#include "dataplane/config.h"
#include "lib/transport/core_types.h"

namespace ub {

// The algorithm, the rate of the line and the numbers of all algorithms. Values are valid: config_keys.def bounds them.
void set_congestion(const CongestionKeys& keys, CoreConfig* core);

// The code points of DSCP.
void set_classes(const PortConfig& keys, CoreConfig* core);

// Does a socket have to tell which packets were marked?
bool reads_marks(const Config& config);

}  // namespace ub
