// SPDX-License-Identifier: Apache-2.0
// import.h - importing and binding in the steps of which the calls consist, those that wait and those that do not.
// Thread: any.
#pragma once

#include <string>

#include "lib/urma/objects/objects.h"

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
// One look for the instance of a target that names none. kOk: `config` has it; kBusy: come again.
Status look_for_instance(TargetConfig& config, std::string* why);
// Finds the way to the instance and begins the channel to it.
Status add_target(const TargetConfig& config, uint32_t* handle, std::string* why);
void log_refusal(const TargetConfig& config, const std::string& why);
void make_usable(Target& target, const TargetConfig& config, uint32_t handle);
// Ends a target that the back end does not have.
void discard(Target& target);

// URMA_SUCCESS: the two are each other's, `*bound` says whether they were before; if not, finish_bind() follows.
urma_status_t begin_bind(Jetty& jetty, Target& target, bool* bound);
urma_status_t finish_bind(Jetty& jetty, Target& target);

}  // namespace ub::urma
