// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/queue_path.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/urma/clock.h"
#include "lib/urma/include/ub/umdk/urma/softub_api.h"

namespace ub::aperture {
namespace {

// Some id, to name the instance: one-sided requests do not look at the queue that they are posted for.
constexpr uint32_t kAnyId = 1;
constexpr uint8_t kForEver = 7;  // a retry for want of resources is no failure of the access

bool opcode_of(AtomicOp op, urma_opcode_t* opcode) {
  switch (op) {
    case AtomicOp::kCompareSwap:
      *opcode = URMA_OPC_CAS;
      return true;
    case AtomicOp::kSwap:
      *opcode = URMA_OPC_SWAP;
      return true;
    case AtomicOp::kFetchAdd:
      *opcode = URMA_OPC_FADD;
      return true;
    case AtomicOp::kFetchSub:
      *opcode = URMA_OPC_FSUB;
      return true;
    case AtomicOp::kFetchAnd:
      *opcode = URMA_OPC_FAND;
      return true;
    case AtomicOp::kFetchOr:
      *opcode = URMA_OPC_FOR;
      return true;
    case AtomicOp::kFetchXor:
      *opcode = URMA_OPC_FXOR;
      return true;
    default:
      return false;
  }
}

}  // namespace

// ---- life ------------------------------------------------------------------------------------------------------

std::unique_ptr<QueuePath> QueuePath::make(urma_target_seg_t* seg, uint32_t owner_uasid, std::string* error) {
  std::unique_ptr<QueuePath> path(new QueuePath(seg));
  if (!path->set_up(owner_uasid, error)) return nullptr;
  return path;
}

bool QueuePath::set_up(uint32_t owner_uasid, std::string* error) {
  urma_context_t* context = seg_->urma_ctx;
  urma_jfc_cfg_t jfc{};
  jfc.depth = kDepth;
  jfc_ = urma_create_jfc(context, &jfc);
  urma_jfs_cfg_t jfs{};
  jfs.depth = kDepth;
  jfs.trans_mode = URMA_TM_RM;
  jfs.flag.bs.order_type = URMA_OI;
  jfs.max_inline_data = kInlineBytes;
  jfs.rnr_retry = kForEver;
  jfs.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  jfs.jfc = jfc_;
  jfs_ = jfc_ != nullptr ? urma_create_jfs(context, &jfs) : nullptr;
  buffer_ = static_cast<std::byte*>(softub_alloc(size_t{kSlots} * kMaxBlockBytes));
  if (jfs_ == nullptr || buffer_ == nullptr) {
    *error = "no memory or no queue left for a handle";
    return false;
  }
  urma_seg_cfg_t seg{};
  seg.va = reinterpret_cast<uintptr_t>(buffer_);
  seg.len = uint64_t{kSlots} * kMaxBlockBytes;
  seg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  buffer_seg_ = urma_register_seg(context, &seg);
  urma_rjetty_t owner{};
  owner.jetty_id.eid = seg_->seg.ubva.eid;
  owner.jetty_id.uasid = owner_uasid;
  owner.jetty_id.id = kAnyId;
  owner.trans_mode = URMA_TM_RM;
  owner.type = URMA_JETTY;
  target_ = urma_import_jetty(context, &owner, nullptr);
  if (buffer_seg_ == nullptr || target_ == nullptr) {
    *error = "the owner of the segment cannot be reached, or no segment is left for a handle";
    return false;
  }
  return true;
}

QueuePath::~QueuePath() {
  if (jfs_ != nullptr) {
    urma_jfs_attr_t error{};
    error.mask = JFS_STATE;
    error.state = URMA_JETTY_STATE_ERROR;
    urma_modify_jfs(jfs_, &error);
    urma_delete_jfs(jfs_);
  }
  if (target_ != nullptr) urma_unimport_jetty(target_);
  if (jfc_ != nullptr) urma_delete_jfc(jfc_);
  if (buffer_seg_ != nullptr) urma_unregister_seg(buffer_seg_);
  softub_free(buffer_);
}

urma_cr_status_t QueuePath::check(uint64_t at, uint32_t bytes) const {
  if (broken_) return URMA_CR_ACK_TIMEOUT_ERR;
  if (bytes == 0 || bytes > kMaxBlockBytes) return URMA_CR_LOC_LEN_ERR;
  return at < seg_->seg.len && bytes <= seg_->seg.len - at ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR;
}

// ---- requests --------------------------------------------------------------------------------------------------

urma_sge_t QueuePath::local(const void* bytes, uint32_t count) const {
  urma_sge_t sge{};
  sge.addr = reinterpret_cast<uintptr_t>(bytes);
  sge.len = count;
  sge.tseg = buffer_seg_;
  return sge;
}

urma_sge_t QueuePath::remote(uint64_t at, uint32_t count) const {
  urma_sge_t sge{};
  sge.addr = seg_->seg.ubva.va + at;
  sge.len = count;
  sge.tseg = seg_;
  return sge;
}

// A part of the buffer that nobody uses; kNoSlot: there is none.
uint64_t QueuePath::free_slot() const {
  const auto is_free = [](const Slot& slot) { return slot.requests == 0; };
  return static_cast<uint64_t>(std::find_if(slots_.begin(), slots_.end(), is_free) - slots_.begin());
}

// The same; waits for one.
uint64_t QueuePath::take_slot() {
  for (;;) {
    if (const uint64_t slot = free_slot(); slot != kNoSlot) return slot;
    poll();
  }
}

// Is a request in flight that writes to any of these bytes?
bool QueuePath::overlaps(uint64_t at, uint32_t bytes) const {
  for (uint32_t i = 0; i < in_flight_; ++i) {
    const Range& range = ranges_[(oldest_ + i) % kDepth];
    if (range.at < at + bytes && at < range.at + range.bytes) return true;
  }
  return false;
}

urma_cr_status_t QueuePath::post(urma_jfs_wr_t& request, uint64_t slot, uint64_t at, uint32_t bytes) {
  request.tjetty = target_;
  request.user_ctx = slot;
  request.flag.bs.complete_enable = 1;
  while (in_flight_ == kDepth) poll();
  if (broken_) return URMA_CR_ACK_TIMEOUT_ERR;
  urma_jfs_wr_t* bad = nullptr;
  if (urma_post_jfs_wr(jfs_, &request, &bad) != URMA_SUCCESS) return URMA_CR_LOC_OPERATION_ERR;
  ranges_[(oldest_ + in_flight_) % kDepth] = {at, bytes};
  ++in_flight_;
  if (slot != kNoSlot) ++slots_[slot].requests;
  return URMA_CR_SUCCESS;
}

// Records are kept until they are handled: the program may leave complete() by a jump, out of the handler of a fault in
// its buffer.
void QueuePath::poll() {
  int count = static_cast<int>(records_end_ - records_at_);
  if (count == 0) {
    count = urma_poll_jfc(jfc_, static_cast<int>(records_.size()), records_.data());
    records_at_ = 0;
    records_end_ = static_cast<uint32_t>(std::max(count, 0));
  }
  while (records_at_ != records_end_) complete(records_[records_at_++]);
  if (count > 0) {
    waits_since_ns_ = 0;
  } else if (count < 0) {
    give_up();  // the library has ended, and with it the queue
  } else if (waits_since_ns_ == 0) {
    waits_since_ns_ = urma::now_ns();
  } else if (urma::now_ns() - waits_since_ns_ > kPatience.ns) {
    give_up();
  }
}

void QueuePath::give_up() {
  broken_ = true;
  in_flight_ = 0;
  records_at_ = records_end_ = 0;
  slots_ = {};
  if (load_error_ == URMA_CR_SUCCESS) load_error_ = URMA_CR_ACK_TIMEOUT_ERR;
  if (store_error_ == URMA_CR_SUCCESS) store_error_ = URMA_CR_ACK_TIMEOUT_ERR;
}

void QueuePath::complete(const urma_cr_t& record) {
  --in_flight_;
  ++oldest_;
  if (record.status == URMA_CR_ACK_TIMEOUT_ERR) broken_ = true;
  if (record.user_ctx != kNoSlot) {
    Slot& slot = slots_[record.user_ctx];
    --slot.requests;
    if (slot.is_load) return end_load(slot, record.user_ctx, record.status);
  }
  if (store_error_ == URMA_CR_SUCCESS) store_error_ = record.status;
}

// Or an atomic. The bytes are copied last: the program's memory may fault, and its handler leave by a jump.
void QueuePath::end_load(Slot& slot, uint64_t index, urma_cr_status_t status) {
  void* to = std::exchange(slot.to, nullptr);
  slot.is_load = false;
  if (EarlyLoad* early = std::exchange(slot.early, nullptr); early != nullptr) {
    early->status = status;
    early->is_done = true;
  } else if (load_error_ == URMA_CR_SUCCESS) {
    load_error_ = status;
  }
  if (status == URMA_CR_SUCCESS && to != nullptr) std::memcpy(to, memory_of(index), slot.bytes);
}

// Whoever left a load by a jump does not want its bytes any more.
void QueuePath::forget_abandoned() {
  if (!waits_) return;
  for (Slot& slot : slots_) {
    if (slot.early == nullptr) slot.to = nullptr;
  }
}

void QueuePath::drain() {
  while (in_flight_ != 0) poll();
}

// ---- RemotePath ------------------------------------------------------------------------------------------------

urma_cr_status_t QueuePath::load(std::span<const LoadBlock> blocks) {
  for (const LoadBlock& block : blocks) {
    if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  }
  forget_abandoned();
  drain();
  load_error_ = URMA_CR_SUCCESS;
  waits_ = true;
  for (const LoadBlock& block : blocks) {
    if (const urma_cr_status_t status = read(block, take_slot()); status != URMA_CR_SUCCESS) {
      load_error_ = status;
      break;
    }
  }
  drain();
  waits_ = false;
  return load_error_;
}

urma_cr_status_t QueuePath::read(const LoadBlock& block, uint64_t slot) {
  slots_[slot].to = block.to;
  slots_[slot].is_load = true;
  slots_[slot].bytes = block.bytes;
  urma_sge_t to = local(memory_of(slot), block.bytes), from = remote(block.at, block.bytes);
  urma_jfs_wr_t request{};
  request.opcode = URMA_OPC_READ;
  request.rw.src = {&from, 1};
  request.rw.dst = {&to, 1};
  const urma_cr_status_t status = post(request, slot, block.at, 0);
  if (status != URMA_CR_SUCCESS) slots_[slot] = {};
  return status;
}

// A load must see the stores before it, which would have to be waited for.
bool QueuePath::ask(EarlyLoad* early) {
  const LoadBlock& block = early->block;
  forget_abandoned();
  if (check(block.at, block.bytes) != URMA_CR_SUCCESS || overlaps(block.at, block.bytes) || in_flight_ == kDepth)
    return false;
  const auto used = std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.requests != 0; });
  if (used >= kSlots - kSlotsForOthers) return false;
  const uint64_t slot = free_slot();
  if (read(block, slot) != URMA_CR_SUCCESS) return false;
  slots_[slot].early = early;
  return true;
}

void QueuePath::finish(EarlyLoad* early) {
  forget_abandoned();
  while (!early->is_done && in_flight_ != 0) poll();
  if (early->is_done) return;
  early->is_done = true;
  early->status = URMA_CR_ACK_TIMEOUT_ERR;
}

urma_cr_status_t QueuePath::write(uint64_t at, const std::byte* from, uint32_t bytes, uint64_t slot) {
  urma_sge_t source = local(from, bytes), to = remote(at, bytes);
  urma_jfs_wr_t request{};
  request.opcode = URMA_OPC_WRITE;
  request.rw.src = {&source, 1};
  request.rw.dst = {&to, 1};
  request.flag.bs.inline_flag = slot == kNoSlot;
  return post(request, slot, at, bytes);
}

// Each run of enabled bytes is a WRITE.
urma_cr_status_t QueuePath::store(const StoreBlock& block) {
  if (const urma_cr_status_t status = check(block.at, block.bytes); status != URMA_CR_SUCCESS) return status;
  forget_abandoned();
  if (overlaps(block.at, block.bytes)) drain();
  const bool is_inline = block.bytes <= kInlineBytes;
  const uint64_t slot = is_inline ? kNoSlot : take_slot();
  // Copied before the library is asked to send: the program's memory may fault.
  std::byte few[kInlineBytes];
  std::byte* from = is_inline ? few : memory_of(slot);
  std::memcpy(from, block.from, block.bytes);
  const auto enabled = [&block](uint32_t i) { return is_enabled(block, i); };
  for (uint32_t start = 0; start < block.bytes;) {
    if (!enabled(start)) {
      ++start;
      continue;
    }
    uint32_t end = block.enables == nullptr ? block.bytes : start + 1;
    while (end < block.bytes && enabled(end)) ++end;
    const urma_cr_status_t status = write(block.at + start, from + start, end - start, slot);
    if (status != URMA_CR_SUCCESS) return status;
    start = end;
  }
  return URMA_CR_SUCCESS;
}

urma_cr_status_t QueuePath::fence() {
  forget_abandoned();
  drain();
  if (store_error_ == URMA_CR_SUCCESS && broken_) return URMA_CR_ACK_TIMEOUT_ERR;
  return std::exchange(store_error_, URMA_CR_SUCCESS);
}

urma_cr_status_t QueuePath::atomic(const RemoteAtomic& a, uint64_t* old) {
  if (const urma_cr_status_t status = check(a.at, a.bytes); status != URMA_CR_SUCCESS) return status;
  urma_jfs_wr_t request{};
  if (!opcode_of(a.op, &request.opcode) || (a.bytes != 4 && a.bytes != 8)) return URMA_CR_UNSUPPORTED_OPCODE_ERR;
  forget_abandoned();
  drain();
  load_error_ = URMA_CR_SUCCESS;
  const uint64_t slot = take_slot();
  *old = 0;
  slots_[slot].to = old;
  slots_[slot].is_load = true;
  slots_[slot].bytes = a.bytes;
  urma_sge_t result = local(memory_of(slot), a.bytes), to = remote(a.at, a.bytes);
  if (a.op == AtomicOp::kCompareSwap || a.op == AtomicOp::kSwap) {
    request.cas.dst = &to;
    request.cas.src = &result;
    request.cas.cmp_data = a.compare;
    request.cas.swap_data = a.operand;
  } else {
    request.faa.dst = &to;
    request.faa.src = &result;
    request.faa.operand = a.operand;
  }
  const urma_cr_status_t status = post(request, slot, a.at, 0);
  if (status != URMA_CR_SUCCESS) {
    slots_[slot] = {};
    return status;
  }
  drain();
  return load_error_;
}

}  // namespace ub::aperture
