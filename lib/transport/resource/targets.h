// SPDX-License-Identifier: Apache-2.0
//
// Targets: objects of other instances that requests go to, and the one that a jetty is bound to.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status add_target(CoreState& s, const TargetConfig& config, uint32_t* target);
Status remove_target(CoreState& s, uint32_t target);
Status bind_jetty(CoreState& s, uint32_t jetty, uint32_t target);
Status unbind_jetty(CoreState& s, uint32_t jetty);

}  // namespace ub
