// SPDX-License-Identifier: Apache-2.0
// Targets: remote JFRs and jettys made addressable, and RC jettys bound to one of them. URMA API
// 0.9, 6.1, 6.2.
#include "lib/urma/objects/import.h"

#include <string>

#include "lib/urma/device/eid.h"
#include "lib/urma/events/connector.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/objects/find.h"
#include "lib/urma/objects/order.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

constexpr uint32_t kNoTpn = UINT32_MAX;  // channels are found by instance, not by number

bool check(const Import& import) {
  if (!valid_mode(import.mode)) {
    URMA_LOG_ERROR("transport mode %d is none of RM, RC and UM", import.mode);
    return false;
  }
  uint32_t policy = import.flag->bs.token_policy;
  if (policy > URMA_TOKEN_PLAIN_TEXT || (policy != URMA_TOKEN_NONE && import.token_value == nullptr)) {
    URMA_LOG_ERROR("target with token policy %u: unsupported, or its token is missing", policy);
    return false;
  }
  if (eid_of(import.id->eid) == Eid{} || import.id->id == 0) {
    URMA_LOG_ERROR("the target has no EID or no id");
    return false;
  }
  return true;
}

ObjectKind kind_of(urma_target_type_t type) {
  switch (type) {
    case URMA_JFR:
      return ObjectKind::kJfr;
    case URMA_JETTY:
      return ObjectKind::kJetty;
    case URMA_JETTY_GROUP:
      return ObjectKind::kGroup;
  }
  return ObjectKind::kNone;
}

// Waits for whoever has the id.
Status connect_target(TargetConfig& config, uint32_t* handle) {
  std::string why;
  InstanceId& peer = config.instance;
  Status status = Status::kOk;
  if (peer.uasid == 0) status = find_instance(config.local_eid, peer.eid, config.id, false, &peer.uasid, &why);
  if (status == Status::kOk) status = add_target(config, handle, &why);
  if (status != Status::kOk) log_refusal(config, why);
  return status;
}

urma_target_jetty_t* import_target(urma_context_t* ctx, const Import& import) {
  TargetConfig config;
  Target* target = new_target(ctx, import, &config);
  if (target == nullptr) return fail(ENOMEM);
  uint32_t handle = 0;
  Status status = connect_target(config, &handle);
  if (status != Status::kOk) {
    discard(*target);
    return fail(errno_of(status));
  }
  make_usable(*target, config, handle);
  return &target->pub;
}

// Both sides remember each other, unless one of them has another already.
urma_status_t pair(Jetty& jetty, Target& target, bool* bound) {
  std::lock_guard guard(Library::get().control());
  *bound = jetty.pub.remote_jetty == &target.pub;
  if (*bound) return URMA_SUCCESS;
  if (jetty.pub.remote_jetty != nullptr) return URMA_EEXIST;
  if (target.bound_by != nullptr) return URMA_EINVAL;
  jetty.pub.remote_jetty = &target.pub;
  target.bound_by = &jetty;
  return URMA_SUCCESS;
}

// Both sides forget each other. The caller holds no lock.
Status unbind(Jetty& jetty) {
  {
    std::lock_guard guard(Library::get().control());
    jetty.sq.bound.store(nullptr, std::memory_order_release);
    if (jetty.pub.remote_jetty != nullptr) reinterpret_cast<Target*>(jetty.pub.remote_jetty)->bound_by = nullptr;
    jetty.pub.remote_jetty = nullptr;
  }
  drop_bind_results(jetty);
  return backend().unbind(jetty.sq.id);
}

// A target that can be used, or whose asynchronous import may still make it so.
Target* imported(urma_target_jetty_t* handle) {
  auto* target = reinterpret_cast<Target*>(handle);
  std::lock_guard guard(Library::get().control());
  return is_live(target) || (target != nullptr && target->magic == incomplete_magic()) ? target : nullptr;
}

urma_status_t release(Target& target) {
  if (abandon(target)) {
    discard(target);
    return URMA_SUCCESS;
  }
  Jetty* jetty = target.bound_by;
  // Programs end a connection this way without unbinding first.
  if (jetty != nullptr && is_live(jetty)) unbind(*jetty);
  Status status = backend().remove_target(target.handle);
  if (status != Status::kOk) return status_of(status);
  discard(target);
  return URMA_SUCCESS;
}

bool advisable(const urma_context_t* ctx, urma_transport_mode_t mode, const urma_target_jetty_t* handle) {
  auto* target = live<Target>(handle);
  return target != nullptr && target->pub.urma_ctx == ctx && mode == URMA_TM_RM && target->pub.trans_mode == URMA_TM_RM;
}

// Channels are set up from import on, so advice is taken by doing nothing.
urma_status_t advise(const urma_jfs_t* jfs_handle, const urma_target_jetty_t* target) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr || !advisable(jfs->pub.urma_ctx, jfs->pub.jfs_cfg.trans_mode, target)) return URMA_EINVAL;
  return URMA_SUCCESS;
}

urma_status_t advise(const urma_jetty_t* jetty_handle, const urma_target_jetty_t* target) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr || !advisable(jetty->pub.urma_ctx, jetty->pub.jetty_cfg.jfs_cfg.trans_mode, target)) {
    return URMA_EINVAL;
  }
  return URMA_SUCCESS;
}

}  // namespace

namespace ub::urma {

int check_import(urma_rjetty_t& rjetty, const urma_token_t* token_value, Import* import) {
  *import = {&rjetty.jetty_id, rjetty.trans_mode, &rjetty.flag, rjetty.tp_type,
             rjetty.type,      rjetty.policy,     token_value};
  if (!check(*import) || kind_of(rjetty.type) == ObjectKind::kNone) return EINVAL;
  if (rjetty.type == URMA_JETTY_GROUP && rjetty.trans_mode != URMA_TM_RM) {
    URMA_LOG_ERROR("a jetty group is reached in mode RM only");
    return EINVAL;
  }
  auto& flag = rjetty.flag.bs;
  if (flag.order_type == URMA_DEF_ORDER) flag.order_type = default_order(rjetty.trans_mode);
  if (order_fits(rjetty.trans_mode, flag.order_type) && tp_type_fits(rjetty.trans_mode, rjetty.tp_type)) return 0;
  URMA_LOG_ERROR("mode %s does not go with order type %s or channel type %d", mode_name(rjetty.trans_mode),
                 order_name(flag.order_type), rjetty.tp_type);
  return EINVAL;
}

Target* new_target(urma_context_t* ctx, const Import& import, TargetConfig* config) {
  auto* target = Library::get().take<Target>();
  if (target == nullptr) return nullptr;
  config->local_eid = eid_of(ctx->eid);
  config->instance.eid = eid_of(import.id->eid);
  config->instance.uasid = import.id->uasid;
  config->kind = kind_of(import.type);
  config->id = import.id->id;
  config->mode = core_mode(import.mode);
  config->token.required = import.flag->bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
  config->token.value = import.token_value != nullptr ? import.token_value->token : 0;
  urma_target_jetty_t& pub = target->pub;
  pub.urma_ctx = ctx;
  pub.id = *import.id;
  pub.trans_mode = import.mode;
  pub.tp.tpn = kNoTpn;
  pub.type = import.type;
  pub.flag = *import.flag;
  pub.policy = import.policy;
  pub.tp_type = import.tp_type;
  target->mode = config->mode;
  target->is_jfr = import.type == URMA_JFR;
  add_child(ctx);
  return target;
}

Status look_for_instance(TargetConfig& config, std::string* why) {
  InstanceId& peer = config.instance;
  if (peer.uasid != 0) return Status::kOk;
  return backend().find_instance(config.local_eid, peer.eid, config.id, false, &peer.uasid, why);
}

Status add_target(const TargetConfig& config, uint32_t* handle, std::string* why) {
  return backend().add_target(config.local_eid, config, handle, why);
}

void log_refusal(const TargetConfig& config, const std::string& why) {
  URMA_LOG_ERROR("no way to id %u of EID " EID_FMT ": %s", config.id, EID_RAW_ARGS(config.instance.eid.bytes),
                 why.c_str());
}

void make_usable(Target& target, const TargetConfig& config, uint32_t handle) {
  target.uasid = config.instance.uasid;
  target.handle = handle;
  target.pub.handle = handle;
  target.magic = live_magic<Target>();
}

void discard(Target& target) {
  drop_child(target.pub.urma_ctx);
  Library::get().give(&target);
}

urma_status_t begin_bind(Jetty& jetty, Target& target, bool* bound) {
  *bound = false;
  if (jetty.pub.urma_ctx != target.pub.urma_ctx) return URMA_EINVAL;
  const urma_jfs_cfg_t& cfg = jetty.pub.jetty_cfg.jfs_cfg;
  if (cfg.trans_mode != URMA_TM_RC || target.pub.trans_mode != URMA_TM_RC) {
    URMA_LOG_ERROR("only mode RC is bound: the jetty has mode %d, its target %d", cfg.trans_mode,
                   target.pub.trans_mode);
    return URMA_ENOPERM;
  }
  if (cfg.flag.bs.order_type != target.pub.flag.bs.order_type) {
    URMA_LOG_ERROR("the jetty has order type %s, its target was imported with %s: set rjetty.flag.bs.order_type",
                   order_name(cfg.flag.bs.order_type), order_name(target.pub.flag.bs.order_type));
    return URMA_ENOPERM;
  }
  const urma_status_t status = pair(jetty, target, bound);
  if (status == URMA_EEXIST) URMA_LOG_ERROR("jetty %u is bound to another target", jetty.pub.jetty_id.id);
  if (status == URMA_EINVAL) URMA_LOG_ERROR("the target is bound to another jetty");
  return status;
}

urma_status_t finish_bind(Jetty& jetty, Target& target) {
  Status status = backend().bind(jetty.sq.id, target.handle);
  if (status != Status::kOk) {
    std::lock_guard guard(Library::get().control());
    jetty.pub.remote_jetty = nullptr;
    target.bound_by = nullptr;
    return status == Status::kInvalid ? URMA_FAIL : status_of(status);
  }
  jetty.sq.bound.store(&target, std::memory_order_release);
  return URMA_SUCCESS;
}

}  // namespace ub::urma

urma_target_jetty_t* urma_import_jfr(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value) {
  if (live<Context>(ctx) == nullptr || rjfr == nullptr) return fail(EINVAL);
  Import import{&rjfr->jfr_id, rjfr->trans_mode,         &rjfr->flag, rjfr->tp_type,
                URMA_JFR,      URMA_JETTY_GRP_POLICY_RR, token_value};
  if (!check(import)) return fail(EINVAL);
  if (rjfr->flag.bs.order_type == URMA_DEF_ORDER) rjfr->flag.bs.order_type = default_order(rjfr->trans_mode);
  return import_target(ctx, import);
}

urma_target_jetty_t* urma_import_jetty(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value) {
  if (live<Context>(ctx) == nullptr || rjetty == nullptr) return fail(EINVAL);
  Import import;
  if (int error = check_import(*rjetty, token_value, &import)) return fail(error);
  return import_target(ctx, import);
}

urma_status_t urma_unimport_jfr(urma_target_jetty_t* target_jfr) {
  Target* target = imported(target_jfr);
  return target != nullptr && target->is_jfr ? release(*target) : URMA_EINVAL;
}

urma_status_t urma_unimport_jetty(urma_target_jetty_t* tjetty) {
  Target* target = imported(tjetty);
  return target != nullptr && !target->is_jfr ? release(*target) : URMA_EINVAL;
}

urma_status_t urma_unimport_jetty_async(urma_target_jetty_t* tjetty) {
  Target* target = imported(tjetty);
  return target != nullptr ? release(*target) : URMA_EINVAL;
}

urma_status_t urma_bind_jetty(urma_jetty_t* jetty_handle, urma_target_jetty_t* tjetty) {
  auto* jetty = live<Jetty>(jetty_handle);
  auto* target = live<Target>(tjetty);
  if (jetty == nullptr || target == nullptr) return URMA_EINVAL;
  bool bound = false;
  urma_status_t status = begin_bind(*jetty, *target, &bound);
  return status != URMA_SUCCESS || bound ? status : finish_bind(*jetty, *target);
}

urma_status_t urma_unbind_jetty(urma_jetty_t* jetty_handle) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr) return URMA_EINVAL;
  if (jetty->pub.jetty_cfg.jfs_cfg.trans_mode != URMA_TM_RC) return URMA_ENOPERM;
  if (jetty->pub.remote_jetty == nullptr) return URMA_EINVAL;
  return status_of(unbind(*jetty));
}

urma_status_t urma_advise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr) { return advise(jfs, tjfr); }

urma_status_t urma_unadvise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr) { return advise(jfs, tjfr); }

urma_status_t urma_advise_jfr_async(urma_jfs_t* jfs, urma_target_jetty_t* tjfr, urma_advise_async_cb_func cb_fun,
                                    void* cb_arg) {
  if (cb_fun == nullptr || cb_arg == nullptr) return URMA_EINVAL;
  return advise(jfs, tjfr);
}

urma_status_t urma_advise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty) { return advise(jetty, tjetty); }

urma_status_t urma_unadvise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty) { return advise(jetty, tjetty); }
