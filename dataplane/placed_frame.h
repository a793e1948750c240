// SPDX-License-Identifier: Apache-2.0
//
// What class of traffic a frame belongs to whose bytes a Core has placed in memory. Only for those who look closely: a
// Core reads the headers for itself.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "dataplane/latencies.h"
#include "lib/transport/core_state.h"

namespace ub {

// The class of a channel.
TrafficClass class_of(const tp::Channel& channel);
// Of the channel that has this TPN; nothing: there is none.
std::optional<TrafficClass> class_of_tpn(const CoreState&, uint32_t tpn);
// Nothing: the frame has no bytes for memory, or cannot be read.
std::optional<TrafficClass> class_of_placed(const CoreState&, std::span<const std::byte> eth_frame);

}  // namespace ub
