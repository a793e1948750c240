// SPDX-License-Identifier: Apache-2.0
// Jetty groups: jettys behind one id, of which each message gets one. URMA API 0.9, 5.8.
#include <cstring>
#include <mutex>

#include "lib/urma/device/device_limits.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/number.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/objects/jetty_group.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

// The API knows round robin and hint; 2 is the spec's third policy.
constexpr uint32_t kQueueDepthPolicy = 2;

bool check(const urma_jetty_grp_cfg_t& cfg) {
  if (strnlen(cfg.name, sizeof cfg.name) == sizeof cfg.name) {
    URMA_LOG_ERROR("the name of a jetty group does not end within %zu characters", sizeof cfg.name);
    return false;
  }
  if (const uint32_t policy = number_of(cfg.policy); policy > kQueueDepthPolicy) {
    URMA_LOG_ERROR("jetty group policy %u is none of 0 (round robin), 1 (hint), 2 (queue depth)", policy);
    return false;
  }
  if (cfg.flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT) {
    URMA_LOG_ERROR("token policy %u of a jetty group is not supported", cfg.flag.bs.token_policy);
    return false;
  }
  if (cfg.id != 0 && (cfg.id < kReservedIdMin || cfg.id >= kIdLimit)) {
    URMA_LOG_ERROR("jetty group id %u is not in %u .. %u", cfg.id, kReservedIdMin, kIdLimit - 1);
    return false;
  }
  return true;
}

JettyGroup* find_named(const urma_context_t* ctx, const char* name) {
  JettyGroup* found = nullptr;
  Library::get().for_each<JettyGroup>([&](JettyGroup& group) {
    if (group.pub.urma_ctx == ctx && strcmp(group.pub.cfg.name, name) == 0) found = &group;
  });
  return found;
}

Status bring_up(const urma_jetty_grp_cfg_t& cfg, uint32_t* id) {
  GroupConfig config;
  config.wanted_id = cfg.id;
  config.policy = static_cast<GroupPolicy>(cfg.policy);
  config.token.required = cfg.flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
  config.token.value = cfg.token_value.token;
  return backend().create_group(config, id);
}

}  // namespace

namespace ub::urma {

bool check_group(const urma_context_t* ctx, const urma_jetty_cfg_t& cfg, const urma_jfr_cfg_t& jfr_cfg) {
  if (cfg.jetty_grp == nullptr) return true;
  auto* group = live<JettyGroup>(cfg.jetty_grp);
  if (group == nullptr || group->pub.urma_ctx != ctx) {
    URMA_LOG_ERROR("the jetty group is none of this context");
    return false;
  }
  if (cfg.jfs_cfg.trans_mode != URMA_TM_RM) {
    URMA_LOG_ERROR("only jettys of mode RM can be in a group");
    return false;
  }
  const urma_jetty_grp_cfg_t& own = group->pub.cfg;
  const uint32_t policy = own.flag.bs.token_policy;
  const bool same_token = policy == URMA_TOKEN_NONE || own.token_value.token == jfr_cfg.token_value.token;
  if (policy != jfr_cfg.flag.bs.token_policy || !same_token) {
    URMA_LOG_ERROR("the token of the shared JFR is not that of the jetty group");
    return false;
  }
  return true;
}

uint32_t group_id(const urma_jetty_grp_t* group) { return group == nullptr ? 0 : group->jetty_grp_id.id; }

void join_group(urma_jetty_t& jetty) {
  urma_jetty_grp_t* group = jetty.jetty_cfg.jetty_grp;
  if (group == nullptr) return;
  pthread_mutex_lock(&group->list_mutex);
  group->jetty_list[group->jetty_cnt++] = &jetty;
  pthread_mutex_unlock(&group->list_mutex);
}

void leave_group(urma_jetty_t& jetty) {
  urma_jetty_grp_t* group = jetty.jetty_cfg.jetty_grp;
  if (group == nullptr) return;
  pthread_mutex_lock(&group->list_mutex);
  for (uint32_t i = 0; i < group->jetty_cnt; ++i) {
    if (group->jetty_list[i] != &jetty) continue;
    group->jetty_list[i] = group->jetty_list[--group->jetty_cnt];
    group->jetty_list[group->jetty_cnt] = nullptr;
    break;
  }
  pthread_mutex_unlock(&group->list_mutex);
}

}  // namespace ub::urma

urma_jetty_grp_t* urma_create_jetty_grp(urma_context_t* ctx, urma_jetty_grp_cfg_t* cfg) {
  if (live<Context>(ctx) == nullptr || cfg == nullptr || !check(*cfg)) return fail(EINVAL);
  std::lock_guard guard(Library::get().group_names());  // of two who ask for one name, the second gets the first one's
  if (JettyGroup* known = cfg->name[0] == '\0' ? nullptr : find_named(ctx, cfg->name)) return &known->pub;
  Library& library = Library::get();
  auto* group = library.take<JettyGroup>();
  if (group == nullptr) return fail(ENOMEM);
  urma_jetty_grp_t& pub = group->pub;
  pub.urma_ctx = ctx;
  pub.cfg = *cfg;
  pub.jetty_list = group->members;
  init_event_members(pub);
  pthread_mutex_init(&pub.list_mutex, nullptr);
  Status status = bring_up(*cfg, &pub.jetty_grp_id.id);
  if (status != Status::kOk) {
    destroy_event_members(pub);
    pthread_mutex_destroy(&pub.list_mutex);
    library.give(group);
    return fail(errno_of(status));
  }
  pub.jetty_grp_id.eid = ctx->eid;
  pub.jetty_grp_id.uasid = ctx->uasid;
  pub.cfg.id = pub.jetty_grp_id.id;
  pub.handle = pub.jetty_grp_id.id;
  add_child(ctx);
  group->magic = live_magic<JettyGroup>();
  return &pub;
}

urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t* jetty_grp) {
  auto* group = live<JettyGroup>(jetty_grp);
  if (group == nullptr) return URMA_EINVAL;
  Status status = backend().destroy_group(group->pub.jetty_grp_id.id);
  if (status == Status::kBusy) return URMA_ENOPERM;
  if (status != Status::kOk) return status_of(status);
  group->magic = 0;
  destroy_event_members(group->pub);
  pthread_mutex_destroy(&group->pub.list_mutex);
  drop_child(group->pub.urma_ctx);
  Library::get().give(group);
  return URMA_SUCCESS;
}
