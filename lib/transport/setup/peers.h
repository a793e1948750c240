// SPDX-License-Identifier: Apache-2.0
//
// The table of instances we know, by (our EID, their EID and uasid, our application, theirs).
#pragma once

#include "lib/transport/core_state.h"

namespace ub::setup {

// 0: no room for another one.
uint32_t find_or_add_peer(CoreState& s, const TargetConfig& target, uint32_t visitor = 0);
// Forgets it if nobody needs it any more.
void drop_unused_peer(CoreState& s, uint32_t peer);
// Does any channel carry requests of ours there?
bool has_channels(const Peer& peer);
// Is that this very instance?
bool is_self(const CoreState& s, const Peer& peer);
// The link is not up any more: nobody is reached over it.
void link_down(CoreState& s, uint32_t link);

}  // namespace ub::setup
