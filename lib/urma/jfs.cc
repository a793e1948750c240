// SPDX-License-Identifier: Apache-2.0
// Send-only queues.
#include <cstring>

#include "lib/urma/children.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/jfc.h"
#include "lib/urma/library.h"
#include "lib/urma/order.h"
#include "lib/urma/send_queue.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

Status bring_up(Jfs& jfs, const urma_jfs_cfg_t& cfg, Jfc& jfc) {
  JettyConfig config;
  config.kind = ObjectKind::kJfs;
  config.mode = core_mode(cfg.trans_mode);
  config.lower_layer_order = pinned_to_lane(cfg.trans_mode, cfg.flag.bs.order_type);
  config.user_data = reinterpret_cast<uintptr_t>(&jfs);
  if (!set_up(jfs.sq, cfg, jfc, &config.sq)) return Status::kNoMemory;
  jfs.magic = live_magic<Jfs>();
  Status status = backend().create_jetty(config, &jfs.sq.id);
  if (status != Status::kOk) {
    jfs.magic = 0;
    jfs.sq.memory.release();
  }
  return status;
}

}  // namespace

urma_jfs_t* urma_create_jfs(urma_context_t* ctx, urma_jfs_cfg_t* jfs_cfg) {
  if (live<Context>(ctx) == nullptr || jfs_cfg == nullptr) return fail(EINVAL);
  Jfc* jfc = jfc_of(ctx, jfs_cfg->jfc);
  if (jfc == nullptr || !check_send_order(*jfs_cfg) || !check_send_limits(*jfs_cfg)) return fail(EINVAL);
  Library& library = Library::get();
  auto* jfs = library.take<Jfs>();
  if (jfs == nullptr) return fail(ENOMEM);
  urma_jfs_t& pub = jfs->pub;
  pub.urma_ctx = ctx;
  pub.jfs_cfg = effective(*jfs_cfg);
  pub.urma_jfs_opt.is_actived = true;
  init_event_members(pub);
  jfs->async.element = &pub;

  Status status = bring_up(*jfs, pub.jfs_cfg, *jfc);
  if (status != Status::kOk) {
    destroy_event_members(pub);
    library.give(jfs);
    return fail(errno_of(status));
  }
  memcpy(&pub.jfs_id.eid, &ctx->eid, sizeof pub.jfs_id.eid);
  pub.jfs_id.uasid = ctx->uasid;
  pub.jfs_id.id = jfs->sq.id;
  pub.handle = jfs->sq.id;
  jfc->users.fetch_add(1);
  add_child(ctx);
  return &pub;
}

urma_status_t urma_modify_jfs(urma_jfs_t* jfs_handle, urma_jfs_attr_t* attr) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr || attr == nullptr || (attr->mask & JFS_STATE) == 0) return URMA_EINVAL;
  return change_state(jfs->sq, attr->state);
}

urma_status_t urma_query_jfs(urma_jfs_t* jfs_handle, urma_jfs_cfg_t* cfg, urma_jfs_attr_t* attr) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr || cfg == nullptr || attr == nullptr) return URMA_EINVAL;
  *cfg = jfs->pub.jfs_cfg;
  attr->mask = JFS_STATE;
  attr->state = state_of(jfs->sq);
  return URMA_SUCCESS;
}

urma_status_t urma_delete_jfs(urma_jfs_t* jfs_handle) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr) return URMA_EINVAL;
  urma_jfs_t& pub = jfs->pub;
  auto acked = [&] { return all_acked(jfs->async.handed_out.load(), pub.async_events_acked); };
  if (pub.jfs_cfg.flag.bs.non_blocking && acks_missing(pub, acked)) return URMA_EAGAIN;
  Status status = backend().destroy_jetty(jfs->sq.id);
  if (status != Status::kOk) return status_of(status);
  auto* jfc = live<Jfc>(pub.jfs_cfg.jfc);
  if (jfc != nullptr) {
    purge(*jfc, &pub);
    jfc->users.fetch_sub(1);
  }
  context_of(pub.urma_ctx).async.remove(jfs->async);
  wait_for_acks(pub, acked);
  jfs->magic = 0;
  destroy_event_members(pub);
  jfs->sq.memory.release();
  drop_child(pub.urma_ctx);
  Library::get().give(jfs);
  return URMA_SUCCESS;
}

int urma_flush_jfs(urma_jfs_t* jfs_handle, int cr_cnt, urma_cr_t* cr) {
  auto* jfs = live<Jfs>(jfs_handle);
  return jfs != nullptr ? flush(jfs->sq, cr_cnt, cr) : -URMA_EINVAL;
}

urma_status_t urma_post_jfs_wr(urma_jfs_t* jfs_handle, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  auto* jfs = live<Jfs>(jfs_handle);
  if (jfs == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  return post(jfs->sq, wr, bad_wr);
}
