// SPDX-License-Identifier: Apache-2.0
//
// How a work request is cut into segments, each with a TASSN and an answer of its own, and how segments are cut into
// packets (UB Base Specification Rev 2.0, 7.4). A SEND of any length is one segment. A WRITE with immediate or notify
// ends with a segment of at most one packet, which is sent after the others are answered.
#pragma once

#include <cstdint>

#include "lib/base/work_queue.h"
#include "lib/transport/core_types.h"
#include "lib/transport/wire/opcodes.h"

namespace ub::ta {

struct SegmentShape {
  uint64_t offset;  // of the first byte of the segment in the request
  uint32_t bytes;
  uint32_t packets;  // that its request has: those of the payload, and one for a READ
  WrOp op;           // of the segment; all but the last of a WRITE_IMM or WRITE_NOTIFY are plain WRITEs
};

// A set of operations as bits. All values of WrOp are less than 31, except kSkip, which is in no set.
template <class... Ops>
constexpr uint32_t ops(Ops... op) {
  return ((uint32_t{1} << static_cast<unsigned>(op)) | ...);
}
constexpr bool is_one_of(WrOp op, uint32_t set) { return (set >> (static_cast<unsigned>(op) & 31) & 1) != 0; }

constexpr uint32_t kSends = ops(WrOp::kSend, WrOp::kSendImm, WrOp::kSendInvalidate);
constexpr uint32_t kAtomics = ops(WrOp::kCompareSwap, WrOp::kSwap, WrOp::kFetchAdd, WrOp::kFetchSub, WrOp::kFetchAnd,
                                  WrOp::kFetchOr, WrOp::kFetchXor);

constexpr bool takes_receive(WrOp op) { return is_one_of(op, kSends | ops(WrOp::kWriteImm)); }
constexpr bool is_send(WrOp op) { return is_one_of(op, kSends); }
constexpr bool is_atomic(WrOp op) { return is_one_of(op, kAtomics); }
constexpr bool is_fenced(WrOp op) { return is_one_of(op, kAtomics | ops(WrOp::kRead)); }
constexpr bool ends_apart(WrOp op) { return is_one_of(op, ops(WrOp::kWriteImm, WrOp::kWriteNotify)); }

constexpr uint32_t packets_of(uint32_t bytes, uint32_t mtu) { return bytes == 0 ? 1 : (bytes + mtu - 1) / mtu; }

// A longer WRITE does not go by CTP: at most 64 segments of a request may be unanswered, and each has at least kMinMtu
// bytes.
constexpr uint32_t kMostCompactBytes = 64 * kMinMtu;

// How many bytes lie in front of the final segment of a WRITE_IMM or WRITE_NOTIFY.
constexpr uint32_t body_bytes(uint32_t length, uint32_t mtu) { return length <= mtu ? 0 : (length - 1) / mtu * mtu; }

constexpr uint32_t segment_count(WrOp op, uint32_t length, uint32_t mtu, uint32_t segment_bytes) {
  if (ends_apart(op)) return 1 + (body_bytes(length, mtu) + segment_bytes - 1) / segment_bytes;
  const bool cut = op == WrOp::kWrite || op == WrOp::kRead;
  return !cut || length <= segment_bytes ? 1 : 1 + (length - 1) / segment_bytes;
}

// At least as many segments as a request of this length has, whatever it does and whatever channel carries it.
constexpr uint32_t most_segments(uint32_t length, uint32_t segment_bytes) {
  if (length <= kMinMtu) return 1;
  return 2 + length / (length <= kMostCompactBytes ? kMinMtu : segment_bytes);
}

// The operation of one segment: SegmentShape::op, where the number of segments is already known.
constexpr WrOp op_of_segment(WrOp op, uint32_t segment, uint32_t segments) {
  return ends_apart(op) && segment + 1 != segments ? WrOp::kWrite : op;
}

constexpr SegmentShape shape_of(WrOp op, uint32_t length, uint32_t mtu, uint32_t segment_bytes, uint32_t segment) {
  if (!ends_apart(op) && op != WrOp::kWrite && op != WrOp::kRead) {
    return {0, length, is_send(op) ? packets_of(length, mtu) : 1, op};
  }
  uint32_t body = ends_apart(op) ? body_bytes(length, mtu) : length;
  uint64_t offset = uint64_t{segment} * segment_bytes;
  if (ends_apart(op) && offset >= body) return {body, length - body, 1, op};
  uint32_t bytes = body - offset < segment_bytes ? static_cast<uint32_t>(body - offset) : segment_bytes;
  if (op == WrOp::kRead) return {offset, bytes, 1, op};
  return {offset, bytes, packets_of(bytes, mtu), WrOp::kWrite};
}

constexpr wire::TaOpcode wire_opcode(WrOp op) {
  switch (op) {
    case WrOp::kWrite:
      return wire::TaOpcode::kWrite;
    case WrOp::kWriteImm:
      return wire::TaOpcode::kWriteImmediate;
    case WrOp::kWriteNotify:
      return wire::TaOpcode::kWriteNotify;
    case WrOp::kRead:
      return wire::TaOpcode::kRead;
    case WrOp::kCompareSwap:
      return wire::TaOpcode::kAtomicCompareSwap;
    case WrOp::kSwap:
      return wire::TaOpcode::kAtomicSwap;
    case WrOp::kFetchAdd:
      return wire::TaOpcode::kAtomicFetchAdd;
    case WrOp::kFetchSub:
      return wire::TaOpcode::kAtomicFetchSub;
    case WrOp::kFetchAnd:
      return wire::TaOpcode::kAtomicFetchAnd;
    case WrOp::kFetchOr:
      return wire::TaOpcode::kAtomicFetchOr;
    case WrOp::kFetchXor:
      return wire::TaOpcode::kAtomicFetchXor;
    case WrOp::kSendImm:
      return wire::TaOpcode::kSendImmediate;
    case WrOp::kSendInvalidate:
      return wire::TaOpcode::kSendInvalidate;
    default:
      return wire::TaOpcode::kSend;
  }
}

}  // namespace ub::ta
