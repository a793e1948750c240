// SPDX-License-Identifier: Apache-2.0
#include "lib/roce/queue_pair.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace ub::verbs {
namespace {

constexpr uint32_t kMaxSges = 16;
constexpr uint32_t kMaxDepth = 16384;
constexpr uint32_t kAtomicBytes = 8;

size_t ring_bytes(uint32_t slots) { return sizeof(QueueIndices) + size_t{slots} * kSlotBytes; }

template <class Slot>
void set_up(const ipc::Mapping& memory, uint32_t slots, urma::RingProducer<Slot>* ring) {
  ring->indices = reinterpret_cast<QueueIndices*>(memory.data());
  ring->slots = reinterpret_cast<Slot*>(memory.data() + sizeof(QueueIndices));
  ring->mask = slots - 1;
}

WrOp op_of(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::kRdmaWrite:
      return WrOp::kWrite;
    case WrOpcode::kRdmaWriteWithImm:
      return WrOp::kWriteImm;
    case WrOpcode::kSend:
      return WrOp::kSend;
    case WrOpcode::kSendWithImm:
      return WrOp::kSendImm;
    case WrOpcode::kRdmaRead:
      return WrOp::kRead;
    case WrOpcode::kAtomicCmpAndSwp:
      return WrOp::kCompareSwap;
    case WrOpcode::kAtomicFetchAndAdd:
      return WrOp::kFetchAdd;
    case WrOpcode::kSendWithInv:
      return WrOp::kSendInvalidate;
  }
  return WrOp::kSkip;
}

uint64_t length_of(std::span<const Sge> list) {
  uint64_t length = 0;
  for (const Sge& sge : list) length += sge.length;
  return length;
}

}  // namespace

// ---- receives ------------------------------------------------------------------------------------------------------

ReceiveQueue::~ReceiveQueue() {
  if (id_ == 0) return;
  device_.control([&](Nic::NicCore& core, Instant now) { return core.destroy_jfr(now, id_); });
}

Status ReceiveQueue::open(Owner owner, uint32_t jfc, uint32_t max_wr, uint32_t max_sge) {
  if (max_wr == 0 || max_wr > kMaxDepth || max_sge > kMaxSges) return Status::kInvalid;
  max_sge_ = std::max(max_sge, 1u);
  stride_ = urma::round_up_pow2(rqe_slots(max_sge_));
  limit_ = max_wr * stride_;
  const uint32_t slots = urma::round_up_pow2(max_wr) * stride_;
  if (!memory_.map_private(ring_bytes(slots))) return Status::kNoMemory;
  set_up(memory_, slots, &ring_);
  JfrConfig config;
  config.slots = ring_.slots;
  config.slot_count = slots;
  config.indices = ring_.indices;
  config.receive_slots = static_cast<uint8_t>(stride_);
  config.jfc = jfc;
  config.owner = owner;
  uint32_t id = 0;
  const Status status = device_.control([&](Nic::NicCore& core, Instant) { return core.create_jfr(config, &id); });
  if (status == Status::kOk) id_ = id;
  return status;
}

Status ReceiveQueue::post(const ReceiveRequest& request) {
  if (request.sg_list.size() > max_sge_ || length_of(request.sg_list) > UINT32_MAX) return Status::kInvalid;
  if (ring_.produced - ring_.consumed_seen >= limit_) {
    ring_.consumed_seen = ring_.indices->consumed.load(std::memory_order_acquire);
    if (ring_.produced - ring_.consumed_seen >= limit_) return Status::kBusy;
  }
  Rqe& rqe = ring_.at(ring_.produced);
  rqe.user_ctx = request.wr_id;
  rqe.length = static_cast<uint32_t>(length_of(request.sg_list));
  rqe.sge_count = static_cast<uint8_t>(request.sg_list.size());
  rqe.slots = static_cast<uint8_t>(stride_);
  rqe.skip = 0;
  Sge* const tail = reinterpret_cast<Sge*>(&rqe + 1);
  for (uint32_t i = 0; i < request.sg_list.size(); ++i) {
    (i < kRqeOwnSges ? rqe.sge[i] : tail[i - kRqeOwnSges]) = request.sg_list[i];
  }
  ring_.produced += stride_;
  ring_.publish();
  return Status::kOk;
}

bool ReceiveQueue::wants_bell() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between what was posted and the question
  return ring_.indices->armed.load(std::memory_order_relaxed) != 0;
}

Status SharedReceiveQueue::create(ProtectionDomain& domain, uint32_t max_wr, uint32_t max_sge,
                                  std::unique_ptr<SharedReceiveQueue>* out) {
  std::unique_ptr<SharedReceiveQueue> queue(new SharedReceiveQueue(domain.device_));
  Status status = CompletionQueue::create(domain.device_, 1, &queue->unused_);
  if (status == Status::kOk) status = queue->receives_.open(domain.owner_, queue->unused_->jfc_, max_wr, max_sge);
  if (status == Status::kOk) *out = std::move(queue);
  return status;
}

// ---- queue pair ----------------------------------------------------------------------------------------------------

Status QueuePair::create(ProtectionDomain& domain, const QpInitAttributes& attributes,
                         std::unique_ptr<QueuePair>* out) {
  const QpCapabilities& cap = attributes.cap;
  if (attributes.send_cq == nullptr || attributes.recv_cq == nullptr || cap.max_send_wr == 0 ||
      &attributes.send_cq->device_ != &domain.device_ || &attributes.recv_cq->device_ != &domain.device_ ||
      (attributes.srq != nullptr && &attributes.srq->receives_.device() != &domain.device_) ||
      cap.max_send_wr > kMaxDepth || cap.max_send_sge > kMaxSges || cap.max_inline_data > roce::kMaxInline) {
    return Status::kInvalid;
  }
  std::unique_ptr<QueuePair> qp(new QueuePair(domain.device_, attributes));
  const Status status = qp->open(domain.owner_);
  if (status == Status::kOk) *out = std::move(qp);
  return status;
}

Status QueuePair::open(Owner owner) {
  const QpCapabilities& cap = attributes_.cap;
  const uint32_t largest = wqe_slots(WrOp::kCompareSwap, cap.max_send_sge, cap.max_inline_data);
  const uint32_t slots = urma::round_up_pow2(static_cast<uint32_t>(urma::send_ring_slots(cap.max_send_wr, largest)));
  if (!memory_.map_private(ring_bytes(slots)) ||
      !work_.map_private(roce::Engine<PortSet>::work_bytes(cap.max_send_wr))) {
    return Status::kNoMemory;
  }
  set_up(memory_, slots, &ring_);
  if (attributes_.srq == nullptr) {
    own_receives_ = std::make_unique<ReceiveQueue>(device_);
    const Status status =
        own_receives_->open(owner, attributes_.recv_cq->jfc_, std::max(cap.max_recv_wr, 1u), cap.max_recv_sge);
    if (status != Status::kOk) return status;
  }
  roce::QpConfig config;
  config.type = attributes_.qp_type;
  config.sq.slots = ring_.slots;
  config.sq.slot_count = slots;
  config.sq.depth = cap.max_send_wr;
  config.sq.indices = ring_.indices;
  config.sq.work = work_.data();
  config.sq.jfc = attributes_.send_cq->jfc_;
  config.jfr = own_receives_ ? own_receives_->id() : attributes_.srq->receives_.id();
  config.srq = !own_receives_;
  config.recv_jfc = attributes_.recv_cq->jfc_;
  config.owner = owner;
  config.user_data = attributes_.qp_context;
  uint32_t qpn = 0;
  const Status status = device_.engine([&](auto& engine, Instant) { return engine.create_qp(config, &qpn); });
  if (status != Status::kOk) return status;
  qpn_ = qpn;
  if (own_receives_) {
    const std::lock_guard guard(device_.lock_);
    device_.qpn_of_receive_queue_[own_receives_->id()] = qpn;
  }
  return status;
}

QueuePair::~QueuePair() {
  if (qpn_ == 0) return;
  device_.engine([&](auto& engine, Instant now) { return engine.destroy_qp(now, qpn_); });
  if (own_receives_) {
    const std::lock_guard guard(device_.lock_);
    device_.qpn_of_receive_queue_.erase(own_receives_->id());
  }
}

Status QueuePair::modify(const QpAttributes& attributes, uint32_t mask) {
  if ((mask & roce::kQpAccess) != 0 && (attributes.qp_access_flags & ~kEveryAccess) != 0) return Status::kInvalid;
  QpAttributes translated = attributes;
  translated.qp_access_flags = to_engine_access(attributes.qp_access_flags);
  return device_.engine([&](auto& engine, Instant now) { return engine.modify_qp(now, qpn_, translated, mask); });
}

Status QueuePair::query(QpAttributes* attributes) const {
  const Status status = device_.engine([&](auto& engine, Instant) { return engine.query_qp(qpn_, attributes); });
  if (status == Status::kOk) attributes->qp_access_flags = from_engine_access(attributes->qp_access_flags);
  return status;
}

Status QueuePair::post_recv(const ReceiveRequest& request) {
  if (!own_receives_) return Status::kInvalid;
  const Status status = own_receives_->post(request);
  if (status == Status::kOk && own_receives_->wants_bell()) device_.nic_->posted(qpn_);
  return status;
}

// ---- sending -------------------------------------------------------------------------------------------------------

Status QueuePair::check(const SendRequest& request, uint32_t* length) const {
  const QpCapabilities& cap = attributes_.cap;
  const WrOp op = op_of(request.opcode);
  const bool is_ud = attributes_.qp_type == QpType::kUd;
  const uint64_t bytes = length_of(request.sg_list);
  if (op == WrOp::kSkip || request.sg_list.size() > std::max(cap.max_send_sge, 1u) || bytes > UINT32_MAX) {
    return Status::kInvalid;
  }
  if (is_ud && (request.ah == nullptr || (op != WrOp::kSend && op != WrOp::kSendImm))) return Status::kInvalid;
  if (attributes_.qp_type == QpType::kUc && (op == WrOp::kRead || op == WrOp::kSendInvalidate || has_extra(op))) {
    return Status::kInvalid;
  }
  if (has_extra(op) && bytes != kAtomicBytes) return Status::kInvalid;
  if ((request.send_flags & kSendInline) != 0 && (bytes > cap.max_inline_data || has_extra(op) || op == WrOp::kRead)) {
    return Status::kInvalid;
  }
  *length = static_cast<uint32_t>(bytes);
  return Status::kOk;
}

// A completion is published before its request counts as finished, and who posts in answer to it must find room: so a
// queue that looks full is looked at again while its driver is between the two.
bool QueuePair::has_place() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);  // for a driver that was stopped there
  for (;;) {
    const uint32_t retiring = ring_.indices->retiring.load(std::memory_order_acquire);
    const uint32_t retired = ring_.indices->retired.load(std::memory_order_acquire);
    if (posted_ - retired < attributes_.cap.max_send_wr) return true;
    if (static_cast<int32_t>(retiring - retired) <= 0 || std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
}

void QueuePair::write(const SendRequest& request, uint32_t length, uint32_t slots, Wqe* wqe) const {
  *wqe = {};
  wqe->op = op_of(request.opcode);
  wqe->slots = static_cast<uint8_t>(slots);
  wqe->user_ctx = request.wr_id;
  wqe->length = length;
  wqe->remote_address = request.remote_addr;
  wqe->token_id = wqe->op == WrOp::kSendInvalidate ? request.invalidate_rkey : request.rkey;
  wqe->immediate = request.imm_data;
  if ((request.send_flags & kSendSignaled) != 0 || attributes_.sq_sig_all) wqe->flags |= kWrSignaled;
  if ((request.send_flags & kSendFence) != 0) wqe->flags |= kWrFence;
  if ((request.send_flags & kSendSolicited) != 0) wqe->flags |= kWrSolicited;
  if (attributes_.qp_type == QpType::kUd) {
    wqe->token_id = request.remote_qpn;
    wqe->token_value = request.remote_qkey;
    wqe->target = request.ah->handle();
  }
  if (has_extra(wqe->op)) {
    auto& extra = *reinterpret_cast<WqeExtra*>(wqe + 1);
    extra = {};
    extra.compare = request.compare_add;
    wqe->immediate = wqe->op == WrOp::kFetchAdd ? request.compare_add : request.swap;
  }
  if ((request.send_flags & kSendInline) != 0) {
    wqe->flags |= kWrInline;
    auto* to = reinterpret_cast<std::byte*>(&wqe->sge);
    for (const Sge& sge : request.sg_list) {
      std::memcpy(to, reinterpret_cast<const void*>(sge.address), sge.length);
      to += sge.length;
    }
    return;
  }
  wqe->sge_count = static_cast<uint8_t>(request.sg_list.size());
  Sge* const tail = reinterpret_cast<Sge*>(wqe + (has_extra(wqe->op) ? 2 : 1));
  for (uint32_t i = 0; i < request.sg_list.size(); ++i) (i == 0 ? wqe->sge : tail[i - 1]) = request.sg_list[i];
}

Status QueuePair::post_send(const SendRequest& request) {
  uint32_t length = 0;
  if (Status status = check(request, &length); status != Status::kOk) return status;
  const bool is_inline = (request.send_flags & kSendInline) != 0;
  const auto sges = static_cast<uint32_t>(request.sg_list.size());
  const uint32_t slots = wqe_slots(op_of(request.opcode), is_inline ? 0 : sges, is_inline ? length : 0);
  Wqe* wqe = has_place() ? urma::reserve(ring_, slots) : nullptr;
  if (wqe == nullptr) {
    device_.drive();  // a caller that only posts until there is room must see room
    return Status::kBusy;
  }
  write(request, length, slots, wqe);
  ring_.produced += slots;
  ++posted_;
  ring_.publish();
  device_.nic_->posted(qpn_);
  return Status::kOk;
}

}  // namespace ub::verbs
