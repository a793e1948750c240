// SPDX-License-Identifier: Apache-2.0
#include "lib/roce/completion_queue.h"

#include <algorithm>
#include <cstring>

#include "lib/urma/data/ring.h"

namespace ub::verbs {
namespace {

WcStatus status_of(CrStatus status) {
  switch (status) {
    case CrStatus::kSuccess:
      return WcStatus::kSuccess;
    case CrStatus::kLocLen:
      return WcStatus::kLocLenErr;
    case CrStatus::kUnsupportedOpcode:
    case CrStatus::kLocOperation:
      return WcStatus::kLocQpOpErr;
    case CrStatus::kLocAccess:
      return WcStatus::kLocProtErr;
    case CrStatus::kRemRespLen:
      return WcStatus::kBadRespErr;
    case CrStatus::kRemUnsupported:
      return WcStatus::kRemInvReqErr;
    case CrStatus::kRemOperation:
      return WcStatus::kRemOpErr;
    case CrStatus::kRemAccessAbort:
      return WcStatus::kRemAccessErr;
    case CrStatus::kAckTimeout:
      return WcStatus::kRetryExcErr;
    case CrStatus::kRnrRetryExceeded:
      return WcStatus::kRnrRetryExcErr;
    case CrStatus::kWrFlush:
      return WcStatus::kWrFlushErr;
    default:
      return WcStatus::kGeneralErr;
  }
}

WcOpcode opcode_of_send(WrOp op) {
  switch (op) {
    case WrOp::kWrite:
    case WrOp::kWriteImm:
      return WcOpcode::kRdmaWrite;
    case WrOp::kRead:
      return WcOpcode::kRdmaRead;
    case WrOp::kCompareSwap:
      return WcOpcode::kCompSwap;
    case WrOp::kFetchAdd:
      return WcOpcode::kFetchAdd;
    default:
      return WcOpcode::kSend;
  }
}

void take_receive(const Cqe& cqe, WorkCompletion* wc) {
  wc->opcode = cqe.opcode == CrOpcode::kWriteImm ? WcOpcode::kRecvRdmaWithImm : WcOpcode::kRecv;
  wc->src_qp = cqe.remote_id;
  wc->imm_data = static_cast<uint32_t>(cqe.immediate);
  if (cqe.opcode == CrOpcode::kWriteImm || cqe.opcode == CrOpcode::kSendImm) wc->wc_flags |= kWcWithImm;
  if (cqe.opcode == CrOpcode::kSendInvalidate) wc->wc_flags |= kWcWithInv;
  std::memcpy(wc->src_gid.bytes.data(), cqe.remote_eid, sizeof cqe.remote_eid);
  if (wc->src_gid != Gid{}) wc->wc_flags |= kWcGrh;
}

WorkCompletion convert(const Cqe& cqe) {
  WorkCompletion wc;
  wc.wr_id = cqe.user_ctx;
  wc.status = status_of(cqe.status);
  wc.byte_len = cqe.length;
  wc.qp_num = cqe.local_id;
  if ((cqe.flags & kCqeReceive) != 0) {
    take_receive(cqe, &wc);
  } else {
    wc.opcode = opcode_of_send(static_cast<WrOp>(cqe.remote_id));
  }
  return wc;
}

}  // namespace

const char* wc_status_name(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return "success";
    case WcStatus::kLocLenErr:
      return "local length error";
    case WcStatus::kLocQpOpErr:
      return "local queue pair operation error";
    case WcStatus::kLocProtErr:
      return "local protection error";
    case WcStatus::kWrFlushErr:
      return "flushed: the queue pair is in error";
    case WcStatus::kBadRespErr:
      return "bad response";
    case WcStatus::kRemInvReqErr:
      return "the peer calls the request invalid";
    case WcStatus::kRemAccessErr:
      return "the peer refuses access to its memory";
    case WcStatus::kRemOpErr:
      return "the peer could not carry it out";
    case WcStatus::kRetryExcErr:
      return "the peer does not answer";
    case WcStatus::kRnrRetryExcErr:
      return "the peer has no receive posted";
    case WcStatus::kGeneralErr:
      break;
  }
  return "error";
}

Status CompletionQueue::create(Device& device, uint32_t cqe, std::unique_ptr<CompletionQueue>* out) {
  if (cqe == 0 || cqe > 1u << 20) return Status::kInvalid;
  std::unique_ptr<CompletionQueue> queue(new CompletionQueue(device));
  const uint32_t slots = urma::round_up_pow2(cqe);
  if (!queue->memory_.map_private(sizeof(QueueIndices) + size_t{slots} * kSlotBytes)) return Status::kNoMemory;
  queue->indices_ = reinterpret_cast<QueueIndices*>(queue->memory_.data());
  queue->slots_ = reinterpret_cast<Cqe*>(queue->memory_.data() + sizeof(QueueIndices));
  queue->mask_ = slots - 1;
  queue->depth_ = cqe;
  JfcConfig config;
  config.slots = queue->slots_;
  config.slot_count = slots;
  config.depth = cqe;
  config.indices = queue->indices_;
  const Status status =
      device.control([&](Nic::NicCore& core, Instant) { return core.create_jfc(config, &queue->jfc_); });
  if (status != Status::kOk) queue->jfc_ = 0;
  if (status == Status::kOk) *out = std::move(queue);
  return status;
}

CompletionQueue::~CompletionQueue() {
  if (jfc_ != 0) device_.control([&](Nic::NicCore& core, Instant) { return core.destroy_jfc(jfc_); });
}

size_t CompletionQueue::poll(std::span<WorkCompletion> out) {
  if (size_t count = take(out); count != 0) return count;
  // What found no room comes now. A full queue that was emptied in one go is not seen as full by the next look.
  if (read_since_told_ >= depth_ / 2) tell_read();
  device_.drive();
  return take(out);
}

bool CompletionQueue::wait(std::chrono::nanoseconds limit) {
  if (waiting() != 0) return true;
  arm(*indices_, Armed::kAny);
  device_.control([&](Nic::NicCore& core, Instant now) {
    core.on_armed(now, jfc_);
    return true;
  });
  return device_.wait_until(limit, [this] { return waiting() != 0; });
}

uint32_t CompletionQueue::waiting() const {
  return indices_->produced.load(std::memory_order_acquire) - indices_->consumed.load(std::memory_order_relaxed);
}

size_t CompletionQueue::take(std::span<WorkCompletion> out) {
  const uint32_t consumed = indices_->consumed.load(std::memory_order_relaxed);
  const uint32_t there = waiting();
  const auto count = static_cast<uint32_t>(std::min<size_t>(there, out.size()));
  for (uint32_t i = 0; i < count; ++i) {
    const Cqe& cqe = slots_[(consumed + i) & mask_];
    out[i] = convert(cqe);
    if ((cqe.flags & kCqeReceive) != 0 && cqe.status == CrStatus::kWrFlush) {
      const std::lock_guard guard(device_.lock_);
      const auto found = device_.qpn_of_receive_queue_.find(cqe.local_id);
      if (found != device_.qpn_of_receive_queue_.end()) out[i].qp_num = found->second;
    }
  }
  indices_->consumed.store(consumed + count, std::memory_order_release);
  read_since_told_ += count;
  if (count != 0 && there >= depth_) tell_read();
  return count;
}

void CompletionQueue::tell_read() {
  read_since_told_ = 0;
  device_.control([&](Nic::NicCore& core, Instant now) {
    core.on_completions_read(now, jfc_);
    return true;
  });
}

}  // namespace ub::verbs
