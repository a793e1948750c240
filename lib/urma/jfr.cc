// SPDX-License-Identifier: Apache-2.0
// Receive queues. Posting is in post_receive.cc.
#include <algorithm>
#include <cstring>

#include "lib/urma/children.h"
#include "lib/urma/device_limits.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/jfc.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/order.h"
#include "lib/urma/send_queue.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

bool check(urma_jfr_cfg_t& cfg) {
  const urma_device_cap_t& caps = Library::get().caps();
  if (!valid_mode(cfg.trans_mode)) {
    URMA_LOG_ERROR("transport mode %d is none of RM, RC and UM", cfg.trans_mode);
    return false;
  }
  // The pairing of mode and order is checked by the jetty that shares the queue.
  if (cfg.flag.bs.order_type == URMA_DEF_ORDER) cfg.flag.bs.order_type = default_order(cfg.trans_mode);
  if (cfg.flag.bs.order_type > URMA_NO) {
    URMA_LOG_ERROR("order type %u is unknown", cfg.flag.bs.order_type);
    return false;
  }
  if (cfg.flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT) {
    URMA_LOG_ERROR("token policy %u is not supported", cfg.flag.bs.token_policy);
    return false;
  }
  if (cfg.depth == 0 || cfg.depth > caps.max_jfr_depth) {
    URMA_LOG_ERROR("JFR depth %u is not in 1 .. %u", cfg.depth, caps.max_jfr_depth);
    return false;
  }
  if (cfg.max_sge > caps.max_jfr_sge || cfg.min_rnr_timer > kMaxTimerCode) {
    URMA_LOG_ERROR("JFR max_sge %u (limit %u) or min_rnr_timer %u (limit %u) is too large", cfg.max_sge,
                   caps.max_jfr_sge, cfg.min_rnr_timer, kMaxTimerCode);
    return false;
  }
  if (cfg.id != 0 && (cfg.id < kReservedIdMin || cfg.id >= kIdLimit)) {
    URMA_LOG_ERROR("JFR id %u is not in %u .. %u", cfg.id, kReservedIdMin, kIdLimit - 1);
    return false;
  }
  return true;
}

Status bring_up(Jfr& jfr, const urma_jfr_cfg_t& cfg, Jfc& jfc, uint32_t* id) {
  jfr.stride = round_up_pow2(rqe_slots(cfg.max_sge));
  uint32_t slots = round_up_pow2(cfg.depth) * jfr.stride;
  if (!jfr.memory.allocate(slots)) return Status::kNoMemory;
  jfr.ring.slots = jfr.memory.slots<Rqe>();
  jfr.ring.indices = jfr.memory.indices();
  jfr.ring.mask = slots - 1;
  jfr.limit = cfg.depth * jfr.stride;
  jfr.max_sge = cfg.max_sge;
  jfr.lock_free = cfg.flag.bs.lock_free;

  JfrConfig config;
  config.wanted_id = cfg.id;
  config.mode = core_mode(cfg.trans_mode);
  config.slots = jfr.ring.slots;
  config.slot_count = slots;
  config.indices = jfr.ring.indices;
  config.jfc = jfc.handle;
  config.token.required = cfg.flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
  config.token.value = cfg.token_value.token;
  config.min_rnr_timer = cfg.min_rnr_timer;
  config.user_data = reinterpret_cast<uintptr_t>(&jfr);
  jfr.magic = live_magic<Jfr>();
  Status status = backend().create_jfr(config, id);
  if (status == Status::kExists && config.wanted_id != 0) {
    config.wanted_id = 0;  // a wanted id is a wish
    status = backend().create_jfr(config, id);
  }
  if (status != Status::kOk) {
    jfr.magic = 0;
    jfr.memory.release();
  }
  return status;
}

}  // namespace

urma_jfr_t* urma_create_jfr(urma_context_t* ctx, urma_jfr_cfg_t* jfr_cfg) {
  if (live<Context>(ctx) == nullptr || jfr_cfg == nullptr) return fail(EINVAL);
  Jfc* jfc = jfc_of(ctx, jfr_cfg->jfc);
  if (jfc == nullptr || !check(*jfr_cfg)) return fail(EINVAL);
  Library& library = Library::get();
  auto* jfr = library.take<Jfr>();
  if (jfr == nullptr) return fail(ENOMEM);
  urma_jfr_t& pub = jfr->pub;
  pub.urma_ctx = ctx;
  pub.jfr_cfg = *jfr_cfg;
  pub.jfr_cfg.max_sge = std::max<uint8_t>(jfr_cfg->max_sge, 1);
  pub.urma_jfr_opt.is_actived = true;
  init_event_members(pub);
  jfr->async.element = &pub;

  uint32_t id = 0;
  Status status = bring_up(*jfr, pub.jfr_cfg, *jfc, &id);
  if (status != Status::kOk) {
    destroy_event_members(pub);
    library.give(jfr);
    return fail(errno_of(status));
  }
  memcpy(&pub.jfr_id.eid, &ctx->eid, sizeof pub.jfr_id.eid);
  pub.jfr_id.uasid = ctx->uasid;
  pub.jfr_id.id = id;
  pub.jfr_cfg.id = id;
  pub.handle = id;
  jfc->users.fetch_add(1);
  add_child(ctx);
  return &pub;
}

urma_status_t urma_modify_jfr(urma_jfr_t* jfr_handle, urma_jfr_attr_t* attr) {
  auto* jfr = live<Jfr>(jfr_handle);
  constexpr uint32_t kKnown = JFR_RX_THRESHOLD | JFR_STATE;
  if (jfr == nullptr || attr == nullptr || attr->mask == 0 || (attr->mask & ~kKnown) != 0) return URMA_EINVAL;
  if ((attr->mask & JFR_RX_THRESHOLD) != 0 && attr->rx_threshold > jfr->pub.jfr_cfg.depth) return URMA_EINVAL;
  uint32_t id = jfr->pub.jfr_id.id;
  if ((attr->mask & JFR_STATE) != 0) {
    QueueState state;
    switch (attr->state) {
      case URMA_JFR_STATE_RESET:
        state = QueueState::kReset;
        break;
      case URMA_JFR_STATE_READY:
        state = QueueState::kReady;
        break;
      case URMA_JFR_STATE_ERROR:
        state = QueueState::kError;
        break;
      default:
        return URMA_EINVAL;
    }
    if (backend().state(id) != state) {
      Status status = backend().set_state(id, state);
      if (status != Status::kOk) return status_of(status);
      jfr->in_error.store(state == QueueState::kError, std::memory_order_relaxed);
    }
  }
  if ((attr->mask & JFR_RX_THRESHOLD) != 0) {
    Status status = backend().set_receive_threshold(id, attr->rx_threshold * jfr->stride);
    if (status != Status::kOk) return status_of(status);
    jfr->rx_threshold = attr->rx_threshold;
  }
  return URMA_SUCCESS;
}

urma_status_t urma_query_jfr(urma_jfr_t* jfr_handle, urma_jfr_cfg_t* cfg, urma_jfr_attr_t* attr) {
  auto* jfr = live<Jfr>(jfr_handle);
  if (jfr == nullptr || cfg == nullptr || attr == nullptr) return URMA_EINVAL;
  *cfg = jfr->pub.jfr_cfg;
  attr->mask = JFR_RX_THRESHOLD | JFR_STATE;
  attr->rx_threshold = jfr->rx_threshold;
  switch (backend().state(jfr->pub.jfr_id.id)) {
    case QueueState::kReset:
      attr->state = URMA_JFR_STATE_RESET;
      break;
    case QueueState::kError:
      attr->state = URMA_JFR_STATE_ERROR;
      break;
    default:
      attr->state = URMA_JFR_STATE_READY;
      break;
  }
  return URMA_SUCCESS;
}

urma_status_t urma_delete_jfr(urma_jfr_t* jfr_handle) {
  auto* jfr = live<Jfr>(jfr_handle);
  if (jfr == nullptr) return URMA_EINVAL;
  urma_jfr_t& pub = jfr->pub;
  if (jfr->users.load(std::memory_order_acquire) != 0) {
    URMA_LOG_ERROR("JFR %u is still shared by a jetty", pub.jfr_id.id);
    return URMA_FAIL;
  }
  auto acked = [&] { return all_acked(jfr->async.handed_out.load(), pub.async_events_acked); };
  if (pub.jfr_cfg.flag.bs.non_blocking && acks_missing(pub, acked)) return URMA_EAGAIN;
  Status status = backend().destroy_jfr(pub.jfr_id.id);
  if (status != Status::kOk) return status_of(status);
  auto* jfc = live<Jfc>(pub.jfr_cfg.jfc);
  if (jfc != nullptr) {
    purge(*jfc, &pub);
    jfc->users.fetch_sub(1);
  }
  context_of(pub.urma_ctx).async.remove(jfr->async);
  wait_for_acks(pub, acked);
  jfr->magic = 0;
  destroy_event_members(pub);
  jfr->memory.release();
  drop_child(pub.urma_ctx);
  Library::get().give(jfr);
  return URMA_SUCCESS;
}
