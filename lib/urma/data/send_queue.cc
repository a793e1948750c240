// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/data/send_queue.h"

#include <algorithm>
#include <iterator>

#include "lib/urma/device/device_limits.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/order.h"
#include "lib/urma/status.h"

namespace ub::urma {
namespace {

// Slots of the largest request that the configuration allows. A WRITE_NOTIFY takes the most.
uint32_t largest_request(uint32_t max_sge, uint32_t max_inline) {
  return std::max(wqe_slots(WrOp::kWriteNotify, max_sge, 0), wqe_slots(WrOp::kWriteNotify, 0, max_inline));
}

// Nobody asked for inline data: a slot of it, or as much as fits into the slots that the ranges need anyway.
uint32_t default_inline(uint32_t max_sge) {
  uint32_t slots = wqe_slots(WrOp::kWriteNotify, max_sge, 0) - wqe_slots(WrOp::kWriteNotify, 0, 0);
  return std::min<uint32_t>(std::max<uint32_t>(slots, 1) * kSlotBytes, kMaxInline);
}

bool within(const char* what, uint32_t value, uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return true;
  URMA_LOG_ERROR("%s %u is not in %u .. %u", what, value, least, most);
  return false;
}

}  // namespace

bool check_send_limits(const urma_jfs_cfg_t& cfg) {
  const urma_device_cap_t& caps = Library::get().caps();
  return within("send depth", cfg.depth, 1, caps.max_jfs_depth) &&
         within("max_sge", cfg.max_sge, 0, caps.max_jfs_sge) &&
         within("max_rsge", cfg.max_rsge, 0, caps.max_jfs_rsge) &&
         within("max_inline_data", cfg.max_inline_data, 0, caps.max_jfs_inline_len) &&
         within("rnr_retry", cfg.rnr_retry, 0, kMaxRnrRetry) &&
         within("err_timeout", cfg.err_timeout, 0, kMaxTimerCode) &&
         within("priority", cfg.priority, 0, URMA_MAX_PRIORITY);
}

bool check_send_order(urma_jfs_cfg_t& cfg) {
  if (!valid_mode(cfg.trans_mode)) {
    URMA_LOG_ERROR("transport mode %d is none of RM, RC and UM", cfg.trans_mode);
    return false;
  }
  if (cfg.flag.bs.order_type == URMA_DEF_ORDER) cfg.flag.bs.order_type = default_order(cfg.trans_mode);
  if (!order_fits(cfg.trans_mode, cfg.flag.bs.order_type)) {
    URMA_LOG_ERROR("order type %u (%s) is not allowed in mode %s: RM has OI, RC has OT and OL, UM has NO, 0 chooses",
                   cfg.flag.bs.order_type, order_name(cfg.flag.bs.order_type), mode_name(cfg.trans_mode));
    return false;
  }
  return true;
}

bool check_wanted_id(uint32_t id) { return id == 0 || within("wanted id", id, kReservedIdMin, kIdLimit - 1); }

Status create_queue(JettyConfig config, uint32_t* id) {
  Status status = backend().create_jetty(config, id);
  if (status != Status::kExists || config.wanted_id == 0) return status;
  config.wanted_id = 0;
  return backend().create_jetty(config, id);
}

Jfc* jfc_of(const urma_context_t* ctx, const urma_jfc_t* jfc) {
  Jfc* object = live<Jfc>(jfc);
  if (object != nullptr && object->pub.urma_ctx == ctx) return object;
  URMA_LOG_ERROR("the JFC is missing or not one of this context");
  return nullptr;
}

urma_jfs_cfg_t effective(const urma_jfs_cfg_t& cfg) {
  urma_jfs_cfg_t out = cfg;
  out.max_sge = std::max<uint8_t>(cfg.max_sge, 1);
  out.max_rsge = std::max<uint8_t>(cfg.max_rsge, 1);
  if (out.max_inline_data == 0) out.max_inline_data = default_inline(out.max_sge);
  if (out.trans_mode == URMA_TM_UM) out.flag.bs.outorder_comp = 0;  // datagrams finish in order
  out.flag.bs.multi_path = 0;
  return out;
}

bool set_up(SendQueue& sq, const urma_jfs_cfg_t& cfg, const Jfc& jfc, SendQueueConfig* out) {
  uint64_t slots = send_ring_slots(cfg.depth, largest_request(cfg.max_sge, cfg.max_inline_data));
  uint32_t slot_count = round_up_pow2(static_cast<uint32_t>(slots));
  if (!sq.memory.allocate(slot_count)) return false;
  sq.ring = {.slots = sq.memory.slots<Wqe>(), .indices = sq.memory.indices(), .mask = slot_count - 1};
  sq.posted = 0;
  sq.retired_seen = 0;
  sq.marker_polled.store(false, std::memory_order_relaxed);
  sq.depth = cfg.depth;
  sq.max_sge = cfg.max_sge;
  sq.max_inline = static_cast<uint16_t>(cfg.max_inline_data);
  sq.mode = core_mode(cfg.trans_mode);
  sq.max_length = sq.mode == Mode::kUm ? backend().port_mtu_bytes() : kMaxMessage;
  sq.lock_free = cfg.flag.bs.lock_free;
  sq.ordered = sq.mode != Mode::kUm && !cfg.flag.bs.outorder_comp;

  out->slots = sq.ring.slots;
  out->slot_count = slot_count;
  out->depth = cfg.depth;
  out->indices = sq.ring.indices;
  out->jfc = jfc.handle;
  out->rnr_retry = cfg.rnr_retry;
  out->err_timeout = cfg.err_timeout;
  out->priority = cfg.priority;
  out->suspends = cfg.flag.bs.error_suspend != 0;
  out->completes_early = cfg.flag.bs.outorder_comp;
  return true;
}

urma_status_t change_state(SendQueue& sq, uint32_t wanted) {
  QueueState state;
  switch (wanted) {
    case URMA_JETTY_STATE_RESET:
      state = QueueState::kReset;
      break;
    case URMA_JETTY_STATE_READY:
      state = QueueState::kReady;
      break;
    case URMA_JETTY_STATE_SUSPENDED:
      state = QueueState::kSuspended;
      break;
    case URMA_JETTY_STATE_ERROR:
      state = QueueState::kError;
      break;
    default:
      return URMA_EINVAL;
  }
  QueueState now = backend().state(sq.id);
  // A second FLUSH_ERR_DONE would be one too many.
  if (now == state) return URMA_SUCCESS;
  if (now == QueueState::kError) {
    // Leaving ERROR empties the queue: what nobody flushed is dropped.
    Cqe dropped[32];
    while (backend().take_unhandled(sq.id, dropped, std::size(dropped)) != 0) {
    }
  }
  Status status = backend().set_state(sq.id, state);
  if (status == Status::kBusy) {
    URMA_LOG_ERROR(
        "queue %u holds requests that have not ended: poll its JFC; in ERROR or SUSPENDED until the marker comes, then "
        "take all its requests back (urma_flush_jfs, urma_flush_jetty)",
        sq.id);
    return URMA_EAGAIN;
  }
  if (status == Status::kOk) sq.marker_polled.store(false, std::memory_order_relaxed);
  return status_of(status);
}

urma_jetty_state_t state_of(const SendQueue& sq) {
  switch (backend().state(sq.id)) {
    case QueueState::kReset:
      return URMA_JETTY_STATE_RESET;
    case QueueState::kReady:
      return URMA_JETTY_STATE_READY;
    case QueueState::kSuspended:
      return URMA_JETTY_STATE_SUSPENDED;
    case QueueState::kError:
      break;
  }
  return URMA_JETTY_STATE_ERROR;
}

}  // namespace ub::urma
