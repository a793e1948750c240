// SPDX-License-Identifier: Apache-2.0
// Send-only queues.
#include "lib/urma/data/perf.h"
#include "lib/urma/data/send_queue.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/number.h"
#include "lib/urma/objects/jfc.h"
#include "lib/urma/objects/life.h"
#include "lib/urma/objects/order.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

// A default order type is written back.
bool check(const urma_context_t* ctx, urma_jfs_cfg_t& cfg, uint32_t wanted_id, Jfc** jfc) {
  *jfc = jfc_of(ctx, cfg.jfc);
  return *jfc != nullptr && check_send_order(cfg) && check_wanted_id(wanted_id) && check_send_limits(cfg);
}

// For the configuration in jfs.pub, which was checked.
Status bring_up(Jfs& jfs, uint32_t wanted_id, Jfc& jfc) {
  urma_jfs_t& pub = jfs.pub;
  pub.jfs_cfg = effective(pub.jfs_cfg);
  context_of(pub.urma_ctx).async.readmit(jfs.async);
  JettyConfig config;
  config.wanted_id = wanted_id;
  config.kind = ObjectKind::kJfs;
  config.mode = core_mode(pub.jfs_cfg.trans_mode);
  config.lower_layer_order = pinned_to_lane(pub.jfs_cfg.trans_mode, pub.jfs_cfg.flag.bs.order_type);
  config.target_order = ordered_by_target(pub.jfs_cfg.trans_mode, pub.jfs_cfg.flag.bs.order_type);
  config.user_data = reinterpret_cast<uintptr_t>(&jfs);
  if (!set_up(jfs.sq, pub.jfs_cfg, jfc, &config.sq)) return Status::kNoMemory;
  jfs.magic = live_magic<Jfs>();
  Status status = create_queue(config, &jfs.sq.id);
  if (status != Status::kOk) {
    make_inactive(jfs);
    jfs.sq.memory.release();
    return status;
  }
  pub.jfs_id = full_id(*pub.urma_ctx, jfs.sq.id);
  pub.handle = jfs.sq.id;
  pub.urma_jfs_opt.urma_jfs_id = jfs.sq.id;
  pub.urma_jfs_opt.is_actived = true;
  jfc.users.fetch_add(1);
  return Status::kOk;
}

}  // namespace

namespace ub::urma {

urma_status_t activate(Jfs& jfs) {
  Jfc* jfc = nullptr;
  const urma_jfs_opt_t& options = jfs.pub.urma_jfs_opt;
  uint32_t wanted_id = options.jfs_opt_mask.bs.urma_jfs_id ? options.urma_jfs_id : 0;
  if (!check(jfs.pub.urma_ctx, jfs.pub.jfs_cfg, wanted_id, &jfc)) return URMA_EINVAL;
  return activated(bring_up(jfs, wanted_id, *jfc));
}

urma_status_t deactivate(Jfs& jfs) {
  urma_jfs_t& pub = jfs.pub;
  auto acked = [&] { return all_acked(jfs.async.handed_out.load(), pub.async_events_acked); };
  if (pub.jfs_cfg.flag.bs.non_blocking && acks_missing(pub, acked)) return URMA_EAGAIN;
  Status status = backend().destroy_jetty(jfs.sq.id);
  if (status != Status::kOk) return status_of(status);
  leave_jfc(pub.jfs_cfg.jfc, &pub);
  context_of(pub.urma_ctx).async.remove(jfs.async);
  wait_for_acks(pub, acked);
  make_inactive(jfs);
  jfs.sq.memory.release();
  pub.urma_jfs_opt.is_actived = false;
  return URMA_SUCCESS;
}

}  // namespace ub::urma

urma_jfs_t* urma_create_jfs(urma_context_t* ctx, urma_jfs_cfg_t* jfs_cfg) {
  Jfc* jfc = nullptr;
  if (live<Context>(ctx) == nullptr || jfs_cfg == nullptr || !check(ctx, *jfs_cfg, 0, &jfc)) return fail(EINVAL);
  auto* jfs = new_inactive<Jfs>(ctx, *jfs_cfg);
  return jfs != nullptr ? created(*jfs, bring_up(*jfs, 0, *jfc)) : fail(ENOMEM);
}

urma_status_t urma_modify_jfs(urma_jfs_t* jfs_handle, urma_jfs_attr_t* attr) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr || attr == nullptr || (attr->mask & JFS_STATE) == 0) return URMA_EINVAL;
  return change_state(jfs->sq, number_of(attr->state));
}

urma_status_t urma_query_jfs(urma_jfs_t* jfs_handle, urma_jfs_cfg_t* cfg, urma_jfs_attr_t* attr) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr || cfg == nullptr || attr == nullptr) return URMA_EINVAL;
  *cfg = jfs->pub.jfs_cfg;
  attr->mask = JFS_STATE;
  attr->state = state_of(jfs->sq);
  return URMA_SUCCESS;
}

urma_status_t urma_delete_jfs(urma_jfs_t* jfs) { return delete_object<Jfs>(jfs); }

int urma_flush_jfs(urma_jfs_t* jfs_handle, int cr_cnt, urma_cr_t* cr) {
  auto* jfs = live<Jfs>(jfs_handle);
  return jfs != nullptr ? flush(jfs->sq, cr_cnt, cr) : -URMA_EINVAL;
}

namespace {

urma_status_t post_send(urma_jfs_t* jfs_handle, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  return post(jfs->sq, wr, bad_wr);
}

}  // namespace

urma_status_t urma_post_jfs_wr(urma_jfs_t* jfs, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  return with_perf<post_send>(PerfCall::kJfsPostSend, jfs, wr, bad_wr);
}
