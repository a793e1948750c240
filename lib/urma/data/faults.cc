// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/data/faults.h"

#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/base/fault/program_faults.h"
#include "lib/urma/data/receive_queue.h"
#include "lib/urma/data/send_queue.h"
#include "lib/urma/spinlock.h"

namespace ub::urma {
namespace {

using fault::Occasion;
using fault::Side;

SpinLock lock;
std::optional<fault::ProgramFaults> faults;  // under `lock`

WrOp op_of(const Cqe& cqe) {
  if ((cqe.flags & kCqeReceive) == 0) return cqe.op;
  switch (cqe.opcode) {
    case CrOpcode::kSend:
      return WrOp::kSend;
    case CrOpcode::kSendImm:
      return WrOp::kSendImm;
    case CrOpcode::kSendInvalidate:
      return WrOp::kSendInvalidate;
    case CrOpcode::kWriteImm:
      return WrOp::kWriteImm;
    case CrOpcode::kNone:
      break;
  }
  return WrOp::kSkip;
}

urma_status_t refuse(const Occasion& occasion) {
  std::lock_guard guard(lock);
  const auto error = faults ? faults->post(occasion) : std::nullopt;
  if (!error) return URMA_SUCCESS;
  return *error == fault::PostError::kFull ? URMA_ENOMEM : URMA_EINVAL;
}

// Of a queue in READY, by the rules of Core::set_state(): requests are flushed only in ERROR, and a queue that suspends
// does so for every other error.
void stop_send_queue(SendQueue& sq, const urma_jfs_cfg_t& cfg, uint32_t status) {
  const bool flushed = status == URMA_CR_WR_FLUSH_ERR;
  if (!flushed && !cfg.flag.bs.error_suspend) return;
  if (backend().state(sq.id) != QueueState::kReady) return;
  change_state(sq, flushed ? URMA_JETTY_STATE_ERROR : URMA_JETTY_STATE_SUSPENDED);
}

void stop_receive_queue(Jfr& jfr, uint32_t status) {
  if (status == URMA_CR_WR_FLUSH_ERR) change_state(jfr, QueueState::kError);
}

// The queue that the record is of, if it still exists.
void stop_queue(const urma_cr_t& cr) {
  const bool receive = cr.flag.bs.s_r;
  if (cr.flag.bs.jetty) {
    auto* jetty = live<Jetty>(reinterpret_cast<urma_jetty_t*>(cr.user_data));
    if (jetty == nullptr) return;
    receive ? stop_receive_queue(*jetty->jfr, cr.status)
            : stop_send_queue(jetty->sq, jetty->pub.jetty_cfg.jfs_cfg, cr.status);
  } else if (receive) {
    if (auto* jfr = live<Jfr>(reinterpret_cast<urma_jfr_t*>(cr.user_data))) stop_receive_queue(*jfr, cr.status);
  } else if (auto* jfs = live<Jfs>(reinterpret_cast<urma_jfs_t*>(cr.user_data))) {
    stop_send_queue(jfs->sq, jfs->pub.jfs_cfg, cr.status);
  }
}

}  // namespace

void set_faults(const fault::ProgramPlan& plan) {
  std::optional<fault::ProgramFaults> next(plan);
  {
    std::lock_guard guard(lock);
    faults.swap(next);
  }
  live_state.faults.store(!plan.empty(), std::memory_order_relaxed);
}

fault::ProgramCounts fault_counts() {
  std::lock_guard guard(lock);
  return faults ? faults->counts() : fault::ProgramCounts{};
}

urma_status_t refuse_request(WrOp op, uint32_t queue) {
  return refuse({.side = Side::kSend, .op = op, .queue = queue, .jfc = 0});
}

urma_status_t refuse_receive(uint32_t jfr) {
  return refuse({.side = Side::kReceive, .op = WrOp::kSkip, .queue = jfr, .jfc = 0});
}

bool change_record(const Cqe& cqe, uint32_t jfc, urma_cr_t& cr) {
  if (cqe.status != CrStatus::kSuccess) return false;
  const Side side = (cqe.flags & kCqeReceive) != 0 ? Side::kReceive : Side::kSend;
  std::lock_guard guard(lock);
  if (!faults) return false;
  const auto status = faults->completion({.side = side, .op = op_of(cqe), .queue = cqe.local_id, .jfc = jfc});
  if (status) cr.status = static_cast<urma_cr_status_t>(*status);
  return status.has_value();
}

void stop_queues(const urma_cr_t* records, uint32_t changed) {
  for (; changed != 0; changed &= changed - 1) {
    stop_queue(records[std::countr_zero(changed)]);
  }
}

}  // namespace ub::urma
