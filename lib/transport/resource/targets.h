// SPDX-License-Identifier: Apache-2.0
//
// Targets: the objects of other instances that requests go to. A jetty of RC is bound to one of them (UB Base
// Specification Rev 2.0, 8.2.2). core.h describes the functions.
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

Status add_target(CoreState& s, const TargetConfig& config, uint32_t* target);
Status remove_target(CoreState& s, uint32_t target);
Status bind_jetty(CoreState& s, uint32_t jetty, uint32_t target);
Status unbind_jetty(CoreState& s, uint32_t jetty);

}  // namespace ub
