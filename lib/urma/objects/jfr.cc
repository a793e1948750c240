// SPDX-License-Identifier: Apache-2.0
// Receive queues. Posting is in post_receive.cc.
#include <algorithm>

#include "lib/urma/data/receive_queue.h"
#include "lib/urma/data/send_queue.h"
#include "lib/urma/device/device_limits.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/number.h"
#include "lib/urma/objects/jfc.h"
#include "lib/urma/objects/life.h"
#include "lib/urma/objects/order.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

namespace {

// A default order type is written back.
bool check(const urma_context_t* ctx, urma_jfr_cfg_t& cfg, Jfc** jfc) {
  *jfc = jfc_of(ctx, cfg.jfc);
  if (*jfc == nullptr) return false;
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
  return check_wanted_id(cfg.id);
}

void set_up(Jfr& jfr, uint32_t slots) {
  const urma_jfr_cfg_t& cfg = jfr.pub.jfr_cfg;
  jfr.ring = {.slots = jfr.memory.slots<Rqe>(), .indices = jfr.memory.indices(), .mask = slots - 1};
  jfr.limit = cfg.depth * jfr.stride;
  jfr.max_sge = cfg.max_sge;
  jfr.lock_free = cfg.flag.bs.lock_free;
  jfr.rx_threshold = 0;
  jfr.in_error.store(false, std::memory_order_relaxed);
}

Status create(JfrConfig config, uint32_t* id) {
  Status status = backend().create_jfr(config, id);
  if (status != Status::kExists || config.wanted_id == 0) return status;
  config.wanted_id = 0;  // a wanted id is a wish
  return backend().create_jfr(config, id);
}

// For the configuration in jfr.pub, which was checked.
Status bring_up(Jfr& jfr, Jfc& jfc) {
  urma_jfr_t& pub = jfr.pub;
  urma_jfr_cfg_t& cfg = pub.jfr_cfg;
  cfg.max_sge = std::max<uint8_t>(cfg.max_sge, 1);
  context_of(pub.urma_ctx).async.readmit(jfr.async);
  jfr.stride = round_up_pow2(rqe_slots(cfg.max_sge));
  uint32_t slots = round_up_pow2(cfg.depth) * jfr.stride;
  if (!jfr.memory.allocate(slots)) return Status::kNoMemory;
  set_up(jfr, slots);

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
  uint32_t id = 0;
  Status status = create(config, &id);
  if (status != Status::kOk) {
    make_inactive(jfr);
    jfr.memory.release();
    return status;
  }
  pub.jfr_id = full_id(*pub.urma_ctx, id);
  pub.handle = id;
  cfg.id = id;
  pub.urma_jfr_opt.urma_jfr_id = id;
  pub.urma_jfr_opt.is_actived = true;
  jfc.users.fetch_add(1);
  return Status::kOk;
}

}  // namespace

namespace ub::urma {

urma_status_t activate(Jfr& jfr) {
  urma_jfr_t& pub = jfr.pub;
  Jfc* jfc = nullptr;
  if (pub.urma_jfr_opt.jfr_opt_mask.bs.urma_jfr_id) pub.jfr_cfg.id = pub.urma_jfr_opt.urma_jfr_id;
  if (!check(pub.urma_ctx, pub.jfr_cfg, &jfc)) return URMA_EINVAL;
  return activated(bring_up(jfr, *jfc));
}

urma_status_t deactivate(Jfr& jfr) {
  urma_jfr_t& pub = jfr.pub;
  if (jfr.users.load(std::memory_order_acquire) != 0) {
    URMA_LOG_ERROR("JFR %u is still shared by a jetty", pub.jfr_id.id);
    return URMA_FAIL;
  }
  auto acked = [&] { return all_acked(jfr.async.handed_out.load(), pub.async_events_acked); };
  if (pub.jfr_cfg.flag.bs.non_blocking && acks_missing(pub, acked)) return URMA_EAGAIN;
  Status status = backend().destroy_jfr(pub.jfr_id.id);
  if (status != Status::kOk) return status_of(status);
  leave_jfc(pub.jfr_cfg.jfc, &pub);
  context_of(pub.urma_ctx).async.remove(jfr.async);
  wait_for_acks(pub, acked);
  make_inactive(jfr);
  jfr.memory.release();
  pub.urma_jfr_opt.is_actived = false;
  return URMA_SUCCESS;
}

Status change_state(Jfr& jfr, QueueState state) {
  const uint32_t id = jfr.pub.jfr_id.id;
  if (backend().state(id) == state) return Status::kOk;
  const Status status = backend().set_state(id, state);
  if (status == Status::kOk) jfr.in_error.store(state == QueueState::kError, std::memory_order_relaxed);
  return status;
}

}  // namespace ub::urma

urma_jfr_t* urma_create_jfr(urma_context_t* ctx, urma_jfr_cfg_t* jfr_cfg) {
  Jfc* jfc = nullptr;
  if (live<Context>(ctx) == nullptr || jfr_cfg == nullptr || !check(ctx, *jfr_cfg, &jfc)) return fail(EINVAL);
  auto* jfr = new_inactive<Jfr>(ctx, *jfr_cfg);
  return jfr != nullptr ? created(*jfr, bring_up(*jfr, *jfc)) : fail(ENOMEM);
}

urma_status_t urma_modify_jfr(urma_jfr_t* jfr_handle, urma_jfr_attr_t* attr) {
  auto* jfr = live<Jfr>(jfr_handle);
  constexpr uint32_t kKnown = JFR_RX_THRESHOLD | JFR_STATE;
  if (jfr == nullptr || attr == nullptr || attr->mask == 0 || (attr->mask & ~kKnown) != 0) return URMA_EINVAL;
  if ((attr->mask & JFR_RX_THRESHOLD) != 0 && attr->rx_threshold > jfr->pub.jfr_cfg.depth) return URMA_EINVAL;
  uint32_t id = jfr->pub.jfr_id.id;
  if ((attr->mask & JFR_STATE) != 0) {
    QueueState state;
    switch (number_of(attr->state)) {
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
    Status status = change_state(*jfr, state);
    if (status != Status::kOk) return status_of(status);
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

urma_status_t urma_delete_jfr(urma_jfr_t* jfr) { return delete_object<Jfr>(jfr); }
