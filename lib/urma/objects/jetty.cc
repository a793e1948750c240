// SPDX-License-Identifier: Apache-2.0
// Jettys: a send queue and a shared JFR under one id.
#include <cstdlib>

#include "lib/urma/data/perf.h"
#include "lib/urma/data/receive_queue.h"
#include "lib/urma/data/send_queue.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/log.h"
#include "lib/urma/number.h"
#include "lib/urma/objects/jetty_group.h"
#include "lib/urma/objects/jfc.h"
#include "lib/urma/objects/life.h"
#include "lib/urma/objects/order.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

struct Parts {
  Jfc* send_jfc = nullptr;
  Jfc* recv_jfc = nullptr;
  Jfr* jfr = nullptr;
};

// In the order of URMA API 0.9, 5.5; a default order type is written back.
bool check(const urma_context_t* ctx, urma_jetty_cfg_t& cfg, Parts* parts) {
  parts->send_jfc = jfc_of(ctx, cfg.jfs_cfg.jfc);
  if (parts->send_jfc == nullptr) return false;
  if (!valid_mode(cfg.jfs_cfg.trans_mode)) return check_send_order(cfg.jfs_cfg);  // says so
  if (cfg.flag.bs.share_jfr != URMA_SHARE_JFR) {
    URMA_LOG_ERROR("share_jfr must be 1 on a UB device");
    return false;
  }
  parts->jfr = live<Jfr>(cfg.shared.jfr);
  if (parts->jfr == nullptr || parts->jfr->pub.urma_ctx != ctx) {
    URMA_LOG_ERROR("the shared JFR is missing or not one of this context");
    return false;
  }
  const urma_jfr_cfg_t& jfr_cfg = parts->jfr->pub.jfr_cfg;
  parts->recv_jfc = jfc_of(ctx, cfg.shared.jfc != nullptr ? cfg.shared.jfc : jfr_cfg.jfc);
  if (parts->recv_jfc == nullptr || !check_send_order(cfg.jfs_cfg)) return false;
  if (jfr_cfg.trans_mode != cfg.jfs_cfg.trans_mode || jfr_cfg.flag.bs.order_type != cfg.jfs_cfg.flag.bs.order_type) {
    URMA_LOG_ERROR("the shared JFR has mode %s and order type %s, the jetty %s and %s: give both the same",
                   mode_name(jfr_cfg.trans_mode), order_name(jfr_cfg.flag.bs.order_type),
                   mode_name(cfg.jfs_cfg.trans_mode), order_name(cfg.jfs_cfg.flag.bs.order_type));
    return false;
  }
  return check_group(ctx, cfg, jfr_cfg) && check_wanted_id(cfg.id) && check_send_limits(cfg.jfs_cfg);
}

// For the configuration in jetty.pub, which was checked.
Status bring_up(Jetty& jetty, const Parts& parts) {
  urma_jetty_t& pub = jetty.pub;
  urma_jetty_cfg_t& cfg = pub.jetty_cfg;
  cfg.jfs_cfg = effective(cfg.jfs_cfg);
  jetty.recv_jfc_is_jfrs = cfg.shared.jfc == nullptr;
  cfg.shared.jfc = &parts.recv_jfc->pub;
  jetty.jfr = parts.jfr;
  context_of(pub.urma_ctx).async.readmit(jetty.async);
  JettyConfig config;
  config.wanted_id = cfg.id;
  config.kind = ObjectKind::kJetty;
  config.mode = core_mode(cfg.jfs_cfg.trans_mode);
  config.jfr = parts.jfr->pub.jfr_id.id;
  config.recv_jfc = parts.recv_jfc->handle;
  config.group = group_id(cfg.jetty_grp);
  config.lower_layer_order = pinned_to_lane(cfg.jfs_cfg.trans_mode, cfg.jfs_cfg.flag.bs.order_type);
  config.target_order = ordered_by_target(cfg.jfs_cfg.trans_mode, cfg.jfs_cfg.flag.bs.order_type);
  config.user_data = reinterpret_cast<uintptr_t>(&jetty);
  if (!set_up(jetty.sq, cfg.jfs_cfg, *parts.send_jfc, &config.sq)) return Status::kNoMemory;
  jetty.magic = live_magic<Jetty>();
  Status status = create_queue(config, &jetty.sq.id);
  if (status != Status::kOk) {
    make_inactive(jetty);
    jetty.sq.memory.release();
    return status;
  }
  pub.jetty_id = full_id(*pub.urma_ctx, jetty.sq.id);
  pub.handle = jetty.sq.id;
  cfg.id = jetty.sq.id;
  pub.urma_jetty_opt.is_actived = true;
  parts.send_jfc->users.fetch_add(1);
  parts.recv_jfc->users.fetch_add(1);
  parts.jfr->users.fetch_add(1);
  join_group(pub);
  return Status::kOk;
}

}  // namespace

namespace ub::urma {

urma_status_t activate(Jetty& jetty) {
  Parts parts;
  if (!check(jetty.pub.urma_ctx, jetty.pub.jetty_cfg, &parts)) return URMA_EINVAL;
  return activated(bring_up(jetty, parts));
}

urma_status_t deactivate(Jetty& jetty) {
  urma_jetty_t& pub = jetty.pub;
  if (pub.remote_jetty != nullptr) {
    URMA_LOG_ERROR("jetty %u is still bound", pub.jetty_id.id);
    return URMA_ENOPERM;
  }
  auto acked = [&] { return all_acked(jetty.async.handed_out.load(), pub.async_events_acked); };
  if (pub.jetty_cfg.flag.bs.non_blocking && acks_missing(pub, acked)) return URMA_EAGAIN;
  leave_group(pub);
  Status status = backend().destroy_jetty(jetty.sq.id);
  if (status != Status::kOk) {
    join_group(pub);
    return status_of(status);
  }
  leave_jfc(pub.jetty_cfg.jfs_cfg.jfc, &pub);
  leave_jfc(pub.jetty_cfg.shared.jfc, &pub);
  jetty.jfr->users.fetch_sub(1);
  context_of(pub.urma_ctx).async.remove(jetty.async);
  wait_for_acks(pub, acked);
  make_inactive(jetty);
  jetty.sq.memory.release();
  if (jetty.recv_jfc_is_jfrs) pub.jetty_cfg.shared.jfc = nullptr;  // the next JFR may have another one
  pub.urma_jetty_opt.is_actived = false;
  return URMA_SUCCESS;
}

}  // namespace ub::urma

urma_jetty_t* urma_create_jetty(urma_context_t* ctx, urma_jetty_cfg_t* jetty_cfg) {
  Parts parts;
  if (live<Context>(ctx) == nullptr || jetty_cfg == nullptr || !check(ctx, *jetty_cfg, &parts)) return fail(EINVAL);
  auto* jetty = new_inactive<Jetty>(ctx, *jetty_cfg);
  return jetty != nullptr ? created(*jetty, bring_up(*jetty, parts)) : fail(ENOMEM);
}

urma_status_t urma_modify_jetty(urma_jetty_t* jetty_handle, urma_jetty_attr_t* attr) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr || attr == nullptr || attr->mask != JETTY_STATE) return URMA_EINVAL;
  return change_state(jetty->sq, number_of(attr->state));
}

urma_status_t urma_query_jetty(urma_jetty_t* jetty_handle, urma_jetty_cfg_t* cfg, urma_jetty_attr_t* attr) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr || cfg == nullptr || attr == nullptr) return URMA_EINVAL;
  *cfg = jetty->pub.jetty_cfg;
  cfg->shared.jfr = nullptr;
  cfg->shared.jfc = nullptr;
  attr->mask = JETTY_STATE;
  attr->rx_threshold = 0;
  attr->state = state_of(jetty->sq);
  return URMA_SUCCESS;
}

urma_status_t urma_delete_jetty(urma_jetty_t* jetty) { return delete_object<Jetty>(jetty); }

int urma_flush_jetty(urma_jetty_t* jetty_handle, int cr_cnt, urma_cr_t* cr) {
  auto* jetty = live<Jetty>(jetty_handle);
  return jetty != nullptr ? flush(jetty->sq, cr_cnt, cr) : -URMA_EINVAL;
}

urma_status_t urma_get_rjetty(urma_jetty_t* jetty_handle, urma_rjetty_t** rjetty, uint32_t* length) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr || rjetty == nullptr || length == nullptr) return URMA_EINVAL;
  auto* out = static_cast<urma_rjetty_t*>(calloc(1, sizeof(urma_rjetty_t)));
  if (out == nullptr) return URMA_ENOMEM;
  const urma_jfs_cfg_t& jfs_cfg = jetty->pub.jetty_cfg.jfs_cfg;
  out->jetty_id = jetty->pub.jetty_id;
  out->trans_mode = jfs_cfg.trans_mode;
  const urma_jetty_grp_t* group = jetty->pub.jetty_cfg.jetty_grp;
  out->policy = group != nullptr ? group->cfg.policy : URMA_JETTY_GRP_POLICY_RR;
  out->type = URMA_JETTY;
  out->flag.bs.order_type = jfs_cfg.flag.bs.order_type;
  out->flag.bs.token_policy = jetty->jfr->pub.jfr_cfg.flag.bs.token_policy;
  *rjetty = out;
  *length = sizeof *out;
  return URMA_SUCCESS;
}

void urma_put_rjetty(urma_rjetty_t* rjetty) { free(rjetty); }

namespace {

urma_status_t post_send(urma_jetty_t* jetty_handle, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  return post(jetty->sq, wr, bad_wr);
}

urma_status_t post_receive(urma_jetty_t* jetty_handle, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr) {
  auto* jetty = live<Jetty>(jetty_handle);
  if (jetty == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  return post_receives(*jetty->jfr, wr, bad_wr);
}

}  // namespace

urma_status_t urma_post_jetty_send_wr(urma_jetty_t* jetty, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  return with_perf<post_send>(PerfCall::kJettyPostSend, jetty, wr, bad_wr);
}

urma_status_t urma_post_jetty_recv_wr(urma_jetty_t* jetty, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr) {
  return with_perf<post_receive>(PerfCall::kJettyPostRecv, jetty, wr, bad_wr);
}
