// SPDX-License-Identifier: Apache-2.0
//
// Targets: objects of other instances that requests go to, and the one that a jetty is bound to (one-to-one, UB Base
// Specification Rev 2.0, 8.2.2).
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status add_target(CoreState& s, const TargetConfig& config, uint32_t* target);
Status remove_target(CoreState& s, uint32_t target);
Status bind_jetty(CoreState& s, uint32_t jetty, uint32_t target);
Status unbind_jetty(CoreState& s, uint32_t jetty);

}  // namespace ub
