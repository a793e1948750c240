// SPDX-License-Identifier: Apache-2.0
//
// The elements of the three queues through which an application and a Core talk, and the indices beside them.
//
// A queue is a ring of 64-byte slots with free-running 32-bit indices; the number of slots is a power of two. The
// application produces send and receive elements, and the Core produces completions. Each index has one writer. The
// same layout serves in one process and in memory that is shared with a daemon (which works on a validated copy). So
// nothing here is a pointer, except `Cqe::user_data`, which the Core only echoes.
//
// The slots of one work request are contiguous: if an element would wrap in its middle, the producer first puts a kSkip
// element, which fills the end of the ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/uint128.h"

namespace ub {

constexpr size_t kSlotBytes = 64;

// The operations of send elements.
enum class WrOp : uint8_t {
  kWrite,
  kWriteImm,
  kWriteNotify,
  kRead,
  kCompareSwap,
  kSwap,
  kFetchAdd,
  kFetchSub,
  kFetchAnd,
  kFetchOr,
  kFetchXor,
  kSend,
  kSendImm,
  kSendInvalidate,
  kNop,
  kSkip = 0xff,  // fills the ring up to its end
};

// The bits of Wqe::flags.
constexpr uint8_t kWrSignaled = 1 << 0;   // the request completes also if it succeeds (errors always complete)
constexpr uint8_t kWrFence = 1 << 1;      // starts after all earlier READs and atomics of the queue are answered
constexpr uint8_t kWrSolicited = 1 << 2;  // the receive completion counts as solicited
constexpr uint8_t kWrInline = 1 << 3;     // the payload of `length` bytes lies in the element, see inline_bytes()
constexpr uint8_t kWrCompOrder = 1 << 4;  // receives complete in the order of sending (ODR[2])
constexpr uint8_t kWrToken = 1 << 5;      // `token_value` is presented to the target (PLAIN_TEXT)
constexpr uint8_t kWrDead = 1 << 6;  // the Core sets it: the request completes with an error as soon as it is reached
constexpr uint8_t kWrReported = 1 << 7;  // the Core sets it: the request has completed before older ones

// One range of local memory. `segment` is the handle that the Core gave at registration.
struct Sge {
  uint64_t address;
  uint32_t length;
  uint32_t segment;
};
static_assert(sizeof(Sge) == 16);

// A send element: this slot, then `slots - 1` further slots for what does not fit into it (see the accessors below).
struct alignas(kSlotBytes) Wqe {
  WrOp op;
  uint8_t flags;
  uint8_t sge_count;
  uint8_t slots;      // how many slots this element takes, with this one
  uint32_t target;    // handle of an imported target
  uint64_t user_ctx;  // comes back in the completion
  uint64_t remote_address;
  uint32_t token_id;     // of the remote segment; SEND_INVALIDATE: the token id to revoke
  uint32_t token_value;  // valid with kWrToken
  uint64_t immediate;    // immediate, notify data, or the value or operand of an atomic
  uint32_t length;       // payload bytes of the whole request
  uint8_t place_order;   // 0 none, 1 relaxed, 2 strong
  uint8_t hint;          // group member hint
  uint8_t exclusive;     // 1: the packets say so (E_bit), as exclusive memory wants it
  uint8_t reserved;
  Sge sge;  // the first local range
};
static_assert(sizeof(Wqe) == kSlotBytes);

// What the second slot of an atomic or a WRITE_NOTIFY holds.
struct alignas(kSlotBytes) WqeExtra {
  uint64_t compare;         // of a compare-and-swap
  uint64_t notify_address;  // of a WRITE_NOTIFY
  uint32_t notify_token_id;
  uint32_t notify_token_value;
  uint64_t operand_high, compare_high;  // of atomics of 16 bytes: the upper halves of Wqe::immediate and of `compare`
  uint8_t pad[24];
};
static_assert(sizeof(WqeExtra) == kSlotBytes);

// Is the second slot of this operation a WqeExtra? Further SGEs come behind it.
constexpr bool has_extra(WrOp op) {
  return op == WrOp::kWriteNotify || (op >= WrOp::kCompareSwap && op <= WrOp::kFetchXor);
}

inline const WqeExtra& extra_of(const Wqe& wqe) { return *reinterpret_cast<const WqeExtra*>(&wqe + 1); }
// The operands of an atomic. As many of their bytes count as the atomic is wide.
inline uint128 operand_of(const Wqe& wqe) { return make_uint128(wqe.immediate, extra_of(wqe).operand_high); }
inline uint128 compare_of(const Wqe& wqe) { return make_uint128(extra_of(wqe).compare, extra_of(wqe).compare_high); }
// Inline payload begins in the place of `sge` and runs on, or begins behind the WqeExtra if there is one.
inline const std::byte* inline_bytes(const Wqe& wqe) {
  if (has_extra(wqe.op)) return reinterpret_cast<const std::byte*>(&wqe + 2);
  return reinterpret_cast<const std::byte*>(&wqe.sge);
}
// Local range i of an element that is not inline.
inline const Sge& sge_of(const Wqe& wqe, uint32_t i) {
  if (i == 0) return wqe.sge;
  const Wqe* tail = &wqe + (has_extra(wqe.op) ? 2 : 1);
  return reinterpret_cast<const Sge*>(tail)[i - 1];
}
// How many slots an element with so many ranges or inline bytes takes.
constexpr uint32_t wqe_slots(WrOp op, uint32_t sges, uint32_t inline_length) {
  uint32_t slots = has_extra(op) ? 2 : 1;
  uint32_t room = has_extra(op) ? 0 : sizeof(Sge);
  if (inline_length > room) slots += (inline_length - room + kSlotBytes - 1) / kSlotBytes;
  if (sges > 1) slots += ((sges - 1) * sizeof(Sge) + kSlotBytes - 1) / kSlotBytes;
  return slots;
}

// A receive element.
struct alignas(kSlotBytes) Rqe {
  uint64_t user_ctx;
  uint32_t length;  // sum of the lengths of all ranges
  uint8_t sge_count;
  uint8_t slots;
  uint8_t skip;  // 1: the element only fills the ring up to its end
  uint8_t reserved;
  Sge sge[3];  // further ranges follow, four in each slot
};
static_assert(sizeof(Rqe) == kSlotBytes);

constexpr uint32_t kRqeOwnSges = 3;
inline const Sge& sge_of(const Rqe& rqe, uint32_t i) {
  if (i < kRqeOwnSges) return rqe.sge[i];
  return reinterpret_cast<const Sge*>(&rqe + 1)[i - kRqeOwnSges];
}
constexpr uint32_t rqe_slots(uint32_t sges) { return sges <= kRqeOwnSges ? 1 : 1 + (sges - kRqeOwnSges + 3) / 4; }

// The values of Cqe::status are those of urma_cr_status_t, the values of Cqe::opcode those of urma_cr_opcode_t.
enum class CrStatus : uint8_t {
  kSuccess = 0,
  kUnsupportedOpcode = 1,
  kLocLen = 2,
  kLocOperation = 3,
  kLocAccess = 4,
  kRemRespLen = 5,
  kRemUnsupported = 6,
  kRemOperation = 7,
  kRemAccessAbort = 8,
  kAckTimeout = 9,
  kRnrRetryExceeded = 10,
  kWrFlush = 11,
  kWrSuspendDone = 12,
  kWrFlushDone = 13,
  kWrUnhandled = 14,
  kLocDataPoison = 15,
  kRemDataPoison = 16,
};

enum class CrOpcode : uint8_t { kSend = 0, kSendImm = 1, kSendInvalidate = 2, kWriteImm = 3, kNone = 0xff };

// The bits of Cqe::flags.
constexpr uint8_t kCqeReceive = 1 << 0;    // the completion of a receive
constexpr uint8_t kCqeJetty = 1 << 1;      // local_id names a jetty
constexpr uint8_t kCqeSolicited = 1 << 2;  // it counts for an event that was armed "solicited only"

struct alignas(kSlotBytes) Cqe {
  uint64_t user_ctx;
  uint64_t immediate;  // SEND_INVALIDATE: token id in the low half, token value in the high half
  uint8_t remote_eid[16];
  union {
    uint32_t remote_uasid;  // of a receive completion
    uint32_t stamp;         // of a send completion: what `retired` of its queue becomes when the request retires
  };
  uint32_t remote_id;
  uint32_t local_id;
  uint32_t length;
  uint32_t tpn;
  CrStatus status;
  CrOpcode opcode;
  uint8_t flags;
  WrOp op;             // of a request that succeeded
  uint64_t user_data;  // the value that was given when the local object was created
};
static_assert(sizeof(Cqe) == kSlotBytes);

// The indices of one queue. The producer and the consumer never share a cache line. `produced` and `consumed` count
// slots.
struct QueueIndices {
  alignas(kSlotBytes) std::atomic<uint32_t> produced;
  alignas(kSlotBytes) std::atomic<uint32_t> consumed;
  std::atomic<uint32_t> retired;  // send queues: work requests that are finished (the depth limits requests, not slots)
  std::atomic<uint32_t> retiring;  // what `retired` becomes next; set before the completion is published
  // Completion queues: what the consumer wants to be told (see Armed); the Core clears it when it tells. Receive
  // queues: the Core sets it to kAny while they are in ERROR, because it does not see what is posted unless it is told.
  alignas(kSlotBytes) std::atomic<uint32_t> armed;
  std::atomic<uint32_t> armed_at;  // completion queues: `consumed` when the consumer armed, stored before `armed`
};

// For a send or receive queue: so many requests are over, and the slots up to `end` are the application's again. The
// order of the two stores matters. An application that finds room in the depth then also finds it in the ring. And if a
// daemon dies in between, the one who takes over its ring does not complete the request again.
inline void retire(QueueIndices& queue, uint32_t end, uint32_t requests) {
  queue.consumed.store(end, std::memory_order_release);
  queue.retired.store(queue.retired.load(std::memory_order_relaxed) + requests, std::memory_order_release);
}

enum class Armed : uint32_t { kNo = 0, kSolicited = 1, kAny = 2 };

// The consumer of a completion queue wants an event. Who drives the Core has to be told then.
inline void arm(QueueIndices& queue, Armed wanted) {
  queue.armed_at.store(queue.consumed.load(std::memory_order_relaxed), std::memory_order_relaxed);
  queue.armed.store(static_cast<uint32_t>(wanted), std::memory_order_seq_cst);
}

}  // namespace ub
