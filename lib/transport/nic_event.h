// SPDX-License-Identifier: Apache-2.0
//
// What a NIC reports to its users: the events of its Core, and what happens around the Core, which knows nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>

#include "lib/transport/core_types.h"

namespace ub {

// A DPDK device lost its link, or has it again. Every user is told.
struct PortEvent {
  uint64_t port;  // the number of the device in the configuration
  bool up;
};

// The daemon that had the NIC ended: each call that follows answers Status::kGone.
struct NicGone {};

using NicEvent = std::variant<Event, PortEvent, NicGone>;
using NicEventSink = std::function<void(const NicEvent&)>;

// Makes one function object of several, each for one kind of event: std::visit(each_kind{...}, event).
template <class... Handlers>
struct each_kind : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
each_kind(Handlers...) -> each_kind<Handlers...>;  // clang 14 does not find it by itself

}  // namespace ub
