// SPDX-License-Identifier: Apache-2.0
// import.h - importing and binding in the steps of which the calls consist, those that wait and those that do not.
// Thread: any.
#pragma once

#include <functional>

#include "lib/urma/objects.h"

namespace ub::urma {

// What the descriptions of remote JFRs and jettys have in common.
struct Import {
  const urma_jetty_id_t* id;
  urma_transport_mode_t mode;
  const urma_import_jetty_flag_t* flag;
  urma_tp_type_t tp_type;
  urma_target_type_t type;
  urma_jetty_grp_policy_t policy;
  const urma_token_t* token_value;
};

// Stores the default order type in the description. 0, or the errno of a refusal.
int check_import(urma_rjetty_t& rjetty, const urma_token_t* token_value, Import* import);
// A target that is no good yet (no magic), counted as a child of its context. Null: out of memory.
Target* new_target(urma_context_t* ctx, const Import& import, TargetConfig* config);
// Finds the peer, if its uasid is not known, and the way to it, and begins the channel to it; a refusal is logged. Stores
// the uasid. `wanted`: see find_instance().
Status connect_target(TargetConfig& config, const std::function<bool()>& wanted, uint32_t* handle);
void make_usable(Target& target, const TargetConfig& config, uint32_t handle);
// Ends a target that the back end does not have.
void discard(Target& target);

// URMA_SUCCESS: the two are each other's, `*bound` says whether they were before; if not, finish_bind() follows.
urma_status_t begin_bind(Jetty& jetty, Target& target, bool* bound);
urma_status_t finish_bind(Jetty& jetty, Target& target);

}  // namespace ub::urma
