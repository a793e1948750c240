// SPDX-License-Identifier: Apache-2.0
//
// What tools are told of the congestion control of a channel, and of its paths.
#pragma once

#include "lib/transport/tp/path.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

// Fills in what ChannelInfo says of congestion control and paths: of several paths the sums of those that live.
void describe_congestion(const State& s, const Channel& ch, ChannelInfo* out);
PathInfo info_of(const Channel& ch, const Path& p);

}  // namespace ub::tp
