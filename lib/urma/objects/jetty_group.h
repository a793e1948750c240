// SPDX-License-Identifier: Apache-2.0
//
// What creating and deleting a jetty has to do with its group.
#pragma once

#include "lib/urma/objects/objects.h"

namespace ub::urma {

// May the jetty, with this JFR, be in the group that its configuration names? No group: yes.
bool check_group(const urma_context_t* ctx, const urma_jetty_cfg_t& cfg, const urma_jfr_cfg_t& jfr_cfg);
uint32_t group_id(const urma_jetty_grp_t* group);  // 0: no group

// The list that programs may look at. The back end limits it, so a jetty stands in it only while it is a member there:
// it joins afterwards and leaves before.
void join_group(urma_jetty_t& jetty);
void leave_group(urma_jetty_t& jetty);

}  // namespace ub::urma
