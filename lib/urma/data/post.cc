// SPDX-License-Identifier: Apache-2.0
// Hot: urma_jfs_wr_t -> Wqe, written in place. A request is judged completely before anything of it is
// written; a chain rings the doorbell once. No allocation, no system call, one lock (none with lock_free).
#include <cstring>

#include "lib/base/atomic_operation.h"
#include "lib/urma/clock.h"
#include "lib/urma/data/faults.h"
#include "lib/urma/data/send_queue.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/log.h"
#include "lib/urma/spinlock.h"

namespace ub::urma {
namespace {

// A completion is published before its request is counted as finished, and whoever posts in answer to it must not be
// refused for that. So a queue that looks full is waited for while its driver is between the two; that is nanoseconds,
// or as long as the driver is not running.
[[gnu::noinline, gnu::cold]] bool has_place(SendQueue& sq) {
  constexpr int64_t kPatienceNs = 1'000'000'000;  // with a driver that was stopped or died there
  constexpr int kLooks = 64;                      // before the processor is left to the driver
  const QueueIndices& indices = *sq.ring.indices;
  int64_t until = 0;
  for (int look = 0;; ++look) {
    const uint32_t retiring = indices.retiring.load(std::memory_order_acquire);
    sq.retired_seen = indices.retired.load(std::memory_order_acquire);
    if (sq.posted - sq.retired_seen < sq.depth) return true;
    if (static_cast<int32_t>(retiring - sq.retired_seen) <= 0) return false;
    if (look < kLooks) {
      cpu_relax();
      continue;
    }
    if (look == kLooks) until = now_ns() + kPatienceNs;
    if (now_ns() >= until) return false;
    sched_yield();
  }
}

[[gnu::noinline, gnu::cold]] urma_status_t refuse(const char* why) {
  URMA_LOG_ERROR("send request refused: %s", why);
  return URMA_EINVAL;
}

// The key of a remote range.
struct RemoteKey {
  uint32_t token_id = 0;
  uint32_t token_value = 0;
  bool token_required = false;
  bool exclusive = false;
};

// A request, taken apart.
struct Request {
  WrOp op = WrOp::kNop;
  bool may_inline = false;
  uint8_t hint = 0;
  uint32_t local_count = 0;
  const urma_sge_t* local = nullptr;
  const urma_sge_t* remote = nullptr;  // [1] is the notify address of a WRITE_NOTIFY
  uint64_t immediate = 0, immediate_high = 0;
  uint64_t compare = 0, compare_high = 0;

  // Found out while judging.
  uint32_t length = 0;
  uint32_t sges = 0;  // local ranges that are not empty
  bool inlined = false;
  RemoteKey key;
  RemoteKey notify_key;
};

bool find_key(const urma_sge_t& sge, const Target& target, RemoteKey* key) {
  if (sge.tseg != nullptr) [[likely]] {
    auto* segment = live<Segment>(sge.tseg);
    if (segment == nullptr) return false;
    // The channel follows the target: memory of another instance is not behind it.
    if (segment->uasid != target.uasid) return false;
    *key = {segment->token_id, segment->token_value, segment->token_required,
            segment->exclusive.load(std::memory_order_relaxed)};
    return true;
  }
  if (sge.user_tseg == nullptr) return false;
  // It names no instance; its token id does, among those of the target's host.
  *key = {sge.user_tseg->token_id, sge.user_tseg->token_value.token,
          sge.user_tseg->attr.bs.token_policy != URMA_TOKEN_NONE};
  return true;
}

const char* take_transfer(const urma_sg_t& local, const urma_sg_t& remote, uint32_t remote_needed, Request* r) {
  r->local = local.sge;
  r->local_count = local.num_sge;
  r->remote = remote.sge;
  // More remote pieces than needed are the rest of one contiguous range.
  if (remote.sge == nullptr || remote.num_sge < remote_needed) return "the remote piece is missing";
  return nullptr;
}

// Out of line: take_apart() stays small enough to be part of posting.
[[gnu::noinline]] const char* take_atomic(const urma_sge_t* remote, const urma_sge_t* local, Request* r) {
  if (remote == nullptr || local == nullptr) return "a piece of the atomic is missing";
  r->remote = remote;
  r->local = local;
  r->local_count = 1;
  if (!is_atomic_width(remote->len)) return "atomics are 1, 2, 4, 8 or, where the CPU can, 16 bytes wide";
  if (local->len < remote->len) return "no room for the old value";
  if (remote->addr % remote->len != 0) return "the remote address of an atomic is not aligned";
  return nullptr;
}

// An operand: its value, or its address if it has 16 bytes. False: no address.
bool take_operand(uint64_t given, uint32_t bytes, uint64_t* low, uint64_t* high) {
  *low = given;
  if (bytes <= sizeof given) return true;
  if (given == 0) return false;
  uint64_t halves[2];
  memcpy(halves, reinterpret_cast<const void*>(given), sizeof halves);
  *low = halves[0];
  *high = halves[1];
  return true;
}

[[gnu::noinline]] const char* take_operands(uint64_t operand, uint64_t compare, Request* r) {
  const uint32_t bytes = r->remote->len;
  const bool compares = r->op == WrOp::kCompareSwap;
  return take_operand(operand, bytes, &r->immediate, &r->immediate_high) &&
                 (!compares || take_operand(compare, bytes, &r->compare, &r->compare_high))
             ? nullptr
             : "an operand of 16 bytes is given by its address, which is missing";
}

// Which union member, which direction. Null: fine.
const char* take_apart(const urma_jfs_wr_t& wr, Request* r) {
  switch (static_cast<int>(wr.opcode)) {
    case URMA_OPC_WRITE:
    case URMA_OPC_WRITE_IMM:
    case URMA_OPC_WRITE_NOTIFY:
      r->op = wr.opcode == URMA_OPC_WRITE       ? WrOp::kWrite
              : wr.opcode == URMA_OPC_WRITE_IMM ? WrOp::kWriteImm
                                                : WrOp::kWriteNotify;
      r->may_inline = true;
      r->hint = wr.rw.target_hint;
      r->immediate = wr.rw.notify_data;
      return take_transfer(wr.rw.src, wr.rw.dst, r->op == WrOp::kWriteNotify ? 2 : 1, r);
    case URMA_OPC_READ:
      r->op = WrOp::kRead;
      r->hint = wr.rw.target_hint;
      return take_transfer(wr.rw.dst, wr.rw.src, 1, r);
    case URMA_OPC_CAS:
    case URMA_OPC_SWAP:
      r->op = wr.opcode == URMA_OPC_CAS ? WrOp::kCompareSwap : WrOp::kSwap;
      if (const char* why = take_atomic(wr.cas.dst, wr.cas.src, r)) return why;
      return take_operands(wr.cas.swap_data, wr.cas.cmp_data, r);
    case URMA_OPC_FADD:
    case URMA_OPC_FSUB:
    case URMA_OPC_FAND:
    case URMA_OPC_FOR:
    case URMA_OPC_FXOR:
      static_assert(URMA_OPC_FXOR - URMA_OPC_FADD == 4 &&
                    static_cast<int>(WrOp::kFetchXor) - static_cast<int>(WrOp::kFetchAdd) == 4);
      r->op = static_cast<WrOp>(static_cast<int>(WrOp::kFetchAdd) + (wr.opcode - URMA_OPC_FADD));
      if (const char* why = take_atomic(wr.faa.dst, wr.faa.src, r)) return why;
      return take_operands(wr.faa.operand, 0, r);
    case URMA_OPC_SEND:
    case URMA_OPC_SEND_IMM:
      r->op = wr.opcode == URMA_OPC_SEND ? WrOp::kSend : WrOp::kSendImm;
      r->immediate = wr.send.imm_data;
      break;
    case URMA_OPC_SEND_INVALIDATE: {
      r->op = WrOp::kSendInvalidate;
      auto* segment = live<Segment>(wr.send.tseg);
      if (segment == nullptr) return "the segment to invalidate is missing";
      r->key = {segment->token_id, segment->token_value, false};  // it travels as data, not to gain access
      r->immediate = static_cast<uint64_t>(segment->token_value) << 32 | segment->token_id;
      break;
    }
    case URMA_OPC_NOP:
      r->op = WrOp::kNop;
      return nullptr;
    default:
      return "the opcode is not supported";
  }
  r->may_inline = true;
  r->hint = wr.send.target_hint;
  r->local = wr.send.src.sge;
  r->local_count = wr.send.src.num_sge;
  return nullptr;
}

// Local ranges: number, sum, and that each has a segment unless its bytes are taken now.
const char* judge_local(const SendQueue& sq, Request* r) {
  if (r->local_count > sq.max_sge) return "more local pieces than max_sge";
  if (r->local_count != 0 && r->local == nullptr) return "local pieces without a list";
  uint64_t length = 0;
  for (uint32_t i = 0; i < r->local_count; ++i) {
    const urma_sge_t& sge = r->local[i];
    if (sge.len == 0) continue;
    length += sge.len;
    ++r->sges;
    if (r->inlined) continue;
    auto* segment = live<Segment>(sge.tseg);
    if (segment == nullptr || segment->imported) return "a local piece without registered segment";
  }
  if (r->inlined) r->sges = 0;
  if (has_extra(r->op) && r->op != WrOp::kWriteNotify) length = r->remote->len;
  if (length > sq.max_length) return "the message is too long";
  if (r->inlined && length > sq.max_inline) return "more inline bytes than max_inline_data";
  r->length = static_cast<uint32_t>(length);
  return nullptr;
}

void write_local(Wqe& wqe, const Request& r) {
  if (r.inlined) {
    auto* to = const_cast<std::byte*>(inline_bytes(wqe));
    for (uint32_t i = 0; i < r.local_count; ++i) {
      const urma_sge_t& sge = r.local[i];
      if (sge.len == 0) continue;
      memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.len);
      to += sge.len;
    }
    return;
  }
  auto* tail = reinterpret_cast<Sge*>(&wqe + (has_extra(r.op) ? 2 : 1));
  uint32_t count = 0;
  for (uint32_t i = 0; i < r.local_count; ++i) {
    const urma_sge_t& sge = r.local[i];
    if (sge.len == 0) continue;
    Sge& out = count == 0 ? wqe.sge : tail[count - 1];
    out.address = sge.addr;
    out.length = has_extra(r.op) && r.op != WrOp::kWriteNotify ? r.length : sge.len;
    out.segment = reinterpret_cast<const Segment*>(sge.tseg)->handle;
    ++count;
  }
}

uint8_t flags_of(const SendQueue& sq, const urma_jfs_wr_flag_t& flag, const Request& r) {
  uint8_t flags = flag.bs.complete_enable ? kWrSignaled : 0;
  if (flag.bs.solicited_enable) flags |= kWrSolicited;
  if (r.inlined) flags |= kWrInline;
  if (r.key.token_required || r.notify_key.token_required) flags |= kWrToken;
  if (sq.ordered) {
    if (flag.bs.fence) flags |= kWrFence;
    if (flag.bs.comp_order) flags |= kWrCompOrder;
  }
  return flags;
}

// Most requests are a WRITE or READ of RM with one local range and no flag but that for a completion. This judges and
// writes such a one in few steps. False: it is none, or something is wrong with it, so post_one() has to say what.
bool post_plain(SendQueue& sq, const urma_jfs_wr_t& wr) {
  urma_jfs_wr_flag_t completes = {};
  completes.bs.complete_enable = 1;
  const bool write = wr.opcode == URMA_OPC_WRITE;
  if (!write && wr.opcode != URMA_OPC_READ) [[unlikely]]
    return false;
  const urma_sg_t& here = write ? wr.rw.src : wr.rw.dst;
  const urma_sg_t& there = write ? wr.rw.dst : wr.rw.src;
  if (here.num_sge != 1 || here.sge == nullptr || there.num_sge == 0 || there.sge == nullptr) [[unlikely]]
    return false;
  if (sq.mode != Mode::kRm || (wr.flag.value & ~completes.value) != 0 || has_faults()) [[unlikely]]
    return false;
  const urma_sge_t& local = *here.sge;
  const auto* segment = live<Segment>(local.tseg);
  const auto* target = live<Target>(wr.tjetty);
  RemoteKey key;
  if (local.len == 0 || local.len > sq.max_length || segment == nullptr || segment->imported) [[unlikely]]
    return false;
  if (target == nullptr || target->mode != Mode::kRm || !find_key(*there.sge, *target, &key)) [[unlikely]]
    return false;
  if (sq.posted - sq.retired_seen >= sq.depth) [[unlikely]]
    return false;
  Wqe* wqe = reserve(sq.ring, 1);
  if (wqe == nullptr) [[unlikely]]
    return false;
  *wqe = {
      .op = write ? WrOp::kWrite : WrOp::kRead,
      .flags = static_cast<uint8_t>((wr.flag.value != 0 ? kWrSignaled : 0) | (key.token_required ? kWrToken : 0)),
      .sge_count = 1,
      .slots = 1,
      .target = target->handle,
      .user_ctx = wr.user_ctx,
      .remote_address = there.sge->addr,
      .token_id = key.token_id,
      .token_value = key.token_value,
      .immediate = write ? wr.rw.notify_data : 0,
      .length = local.len,
      .place_order = 0,
      .hint = wr.rw.target_hint,
      .exclusive = key.exclusive,
      .reserved = 0,
      .sge = {local.addr, local.len, segment->handle},
  };
  ++sq.ring.produced;
  ++sq.posted;
  return true;
}

urma_status_t post_one(SendQueue& sq, const urma_jfs_wr_t& wr) {
  Request r;
  if (const char* why = take_apart(wr, &r)) [[unlikely]]
    return refuse(why);

  const Target* target;
  if (sq.mode == Mode::kRc) {
    target = sq.bound.load(std::memory_order_acquire);
    if (target == nullptr) return refuse("the RC queue is not bound");
  } else {
    target = live<Target>(wr.tjetty);
    if (target == nullptr || target->mode != sq.mode) [[unlikely]] {
      if (r.op != WrOp::kNop) return refuse("the target is missing or of another transport mode");
      target = nullptr;
    }
  }
  if (sq.mode == Mode::kUm && r.op != WrOp::kSend && r.op != WrOp::kSendImm && r.op != WrOp::kNop) {
    return refuse("UM carries nothing but SEND");
  }
  if (wr.flag.bs.place_order > URMA_STRONG_ORDER) return refuse("unknown place_order");
  r.inlined = wr.flag.bs.inline_flag && r.may_inline;  // elsewhere the flag has no meaning
  if (const char* why = judge_local(sq, &r)) [[unlikely]]
    return refuse(why);
  if (r.remote != nullptr && !find_key(r.remote[0], *target, &r.key)) {
    return refuse("the remote piece has no segment, or one of another instance than the target");
  }
  if (r.op == WrOp::kWriteNotify && !find_key(r.remote[1], *target, &r.notify_key)) {
    return refuse("the notify address has no segment, or one of another instance than the target");
  }

  if (has_faults()) [[unlikely]] {
    const urma_status_t refused = refuse_request(r.op, sq.id);
    if (refused != URMA_SUCCESS) return refused;
  }
  if (sq.posted - sq.retired_seen >= sq.depth && !has_place(sq)) return URMA_ENOMEM;
  uint32_t slots = wqe_slots(r.op, r.sges, r.inlined ? r.length : 0);
  Wqe* wqe = reserve(sq.ring, slots);
  if (wqe == nullptr) return URMA_ENOMEM;

  wqe->op = r.op;
  wqe->flags = flags_of(sq, wr.flag, r);
  wqe->sge_count = static_cast<uint8_t>(r.sges);
  wqe->slots = static_cast<uint8_t>(slots);
  wqe->target = target != nullptr ? target->handle : 0;
  wqe->user_ctx = wr.user_ctx;
  wqe->remote_address = r.remote != nullptr ? r.remote->addr : 0;
  wqe->token_id = r.key.token_id;
  wqe->token_value = r.key.token_value;
  wqe->immediate = r.immediate;
  wqe->length = r.length;
  wqe->place_order = sq.ordered ? static_cast<uint8_t>(wr.flag.bs.place_order) : 0;
  wqe->hint = r.hint;
  wqe->exclusive = r.key.exclusive || r.notify_key.exclusive;
  wqe->reserved = 0;
  if (has_extra(r.op)) {
    auto& extra = reinterpret_cast<WqeExtra&>(wqe[1]);
    extra.compare = r.compare;
    extra.compare_high = r.compare_high;
    extra.operand_high = r.immediate_high;
    extra.notify_address = r.op == WrOp::kWriteNotify ? r.remote[1].addr : 0;
    extra.notify_token_id = r.notify_key.token_id;
    extra.notify_token_value = r.notify_key.token_value;
  }
  write_local(*wqe, r);
  sq.ring.produced += slots;
  ++sq.posted;
  return URMA_SUCCESS;
}

}  // namespace

urma_status_t post(SendQueue& sq, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  if (wr == nullptr || bad_wr == nullptr) [[unlikely]] {
    if (bad_wr != nullptr) *bad_wr = wr;
    return URMA_EINVAL;
  }
  urma_status_t status = URMA_SUCCESS;
  bool any;
  {
    MaybeLocked guard(sq.lock, sq.lock_free);
    uint32_t before = sq.posted;
    for (; wr != nullptr; wr = wr->next) {
      if (post_plain(sq, *wr)) [[likely]]
        continue;
      status = post_one(sq, *wr);
      if (status != URMA_SUCCESS) [[unlikely]] {
        *bad_wr = wr;
        break;
      }
    }
    sq.ring.publish();
    any = sq.posted != before;
  }
  // Outside the lock: this drives the NIC, which may take a while.
  if (any) {
    backend().posted(sq.id);
  } else if (status == URMA_ENOMEM) {
    backend().drive();  // a caller that only posts until there is room must see room
  }
  return status;
}

}  // namespace ub::urma

using namespace ub::urma;

namespace {

urma_status_t post_single(urma_jfs_t* jfs, urma_jfs_wr_t& wr, urma_target_jetty_t* target, urma_jfs_wr_flag_t flag,
                          uint64_t user_ctx) {
  wr.flag = flag;
  wr.tjetty = target;
  wr.user_ctx = user_ctx;
  urma_jfs_wr_t* bad = nullptr;
  return urma_post_jfs_wr(jfs, &wr, &bad);
}

urma_sge_t one_piece(uint64_t addr, uint32_t len, urma_target_seg_t* tseg) {
  urma_sge_t sge{};
  sge.addr = addr;
  sge.len = len;
  sge.tseg = tseg;
  return sge;
}

}  // namespace

urma_status_t urma_write(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr, urma_target_seg_t* dst_tseg,
                         urma_target_seg_t* src_tseg, uint64_t dst, uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag,
                         uint64_t user_ctx) {
  if (jfs == nullptr || target_jfr == nullptr || dst_tseg == nullptr) return URMA_EINVAL;
  if (src_tseg == nullptr && !flag.bs.inline_flag) return URMA_EINVAL;
  urma_sge_t local = one_piece(src, len, src_tseg);
  urma_sge_t remote = one_piece(dst, len, dst_tseg);
  urma_jfs_wr_t wr{};
  wr.opcode = URMA_OPC_WRITE;
  wr.rw.src = {&local, 1};
  wr.rw.dst = {&remote, 1};
  return post_single(jfs, wr, target_jfr, flag, user_ctx);
}

urma_status_t urma_read(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr, urma_target_seg_t* dst_tseg,
                        urma_target_seg_t* src_tseg, uint64_t dst, uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag,
                        uint64_t user_ctx) {
  if (jfs == nullptr || target_jfr == nullptr || dst_tseg == nullptr || src_tseg == nullptr) return URMA_EINVAL;
  urma_sge_t local = one_piece(dst, len, dst_tseg);
  urma_sge_t remote = one_piece(src, len, src_tseg);
  urma_jfs_wr_t wr{};
  wr.opcode = URMA_OPC_READ;
  wr.rw.src = {&remote, 1};
  wr.rw.dst = {&local, 1};
  return post_single(jfs, wr, target_jfr, flag, user_ctx);
}

urma_status_t urma_send(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr, urma_target_seg_t* src_tseg, uint64_t src,
                        uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx) {
  if (jfs == nullptr || target_jfr == nullptr) return URMA_EINVAL;
  if (src_tseg == nullptr && !flag.bs.inline_flag) return URMA_EINVAL;
  urma_sge_t local = one_piece(src, len, src_tseg);
  urma_jfs_wr_t wr{};
  wr.opcode = URMA_OPC_SEND;
  wr.send.src = {&local, 1};
  return post_single(jfs, wr, target_jfr, flag, user_ctx);
}
