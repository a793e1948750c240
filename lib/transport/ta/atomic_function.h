// SPDX-License-Identifier: Apache-2.0
//
// What an atomic of a peer does to the value in memory (UB Base Specification Rev 2.0, 7.4). That of an atomic store or
// load is a function that UDETAH names; the opcode of the others says it.
#pragma once

#include "lib/base/atomic_operation.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

constexpr AtomicOp kNoAtomicOp{};

constexpr AtomicOp atomic_op(wire::AtomicAlu function) {
  switch (function) {
    case wire::AtomicAlu::kAdd:
      return AtomicOp::kFetchAdd;
    case wire::AtomicAlu::kClr:
      return AtomicOp::kFetchClear;
    case wire::AtomicAlu::kEor:
      return AtomicOp::kFetchXor;
    case wire::AtomicAlu::kSet:
      return AtomicOp::kFetchOr;
    case wire::AtomicAlu::kSmax:
      return AtomicOp::kFetchSignedMax;
    case wire::AtomicAlu::kSmin:
      return AtomicOp::kFetchSignedMin;
    case wire::AtomicAlu::kUmax:
      return AtomicOp::kFetchMax;
    case wire::AtomicAlu::kUmin:
      return AtomicOp::kFetchMin;
  }
  return kNoAtomicOp;
}

// kNoAtomicOp: the packet is no atomic, or one whose function is missing or unknown.
constexpr AtomicOp atomic_op(const wire::TaPacket& ta) {
  switch (ta.req.opcode) {
    case wire::TaOpcode::kAtomicCompareSwap:
      return AtomicOp::kCompareSwap;
    case wire::TaOpcode::kAtomicSwap:
      return AtomicOp::kSwap;
    case wire::TaOpcode::kAtomicStore:
    case wire::TaOpcode::kAtomicLoad:
      return ta.has_ud ? atomic_op(static_cast<wire::AtomicAlu>(ta.ud >> wire::kUdAluShift & 0xF)) : kNoAtomicOp;
    case wire::TaOpcode::kAtomicFetchAdd:
      return AtomicOp::kFetchAdd;
    case wire::TaOpcode::kAtomicFetchSub:
      return AtomicOp::kFetchSub;
    case wire::TaOpcode::kAtomicFetchAnd:
      return AtomicOp::kFetchAnd;
    case wire::TaOpcode::kAtomicFetchOr:
      return AtomicOp::kFetchOr;
    case wire::TaOpcode::kAtomicFetchXor:
      return AtomicOp::kFetchXor;
    default:
      return kNoAtomicOp;
  }
}

}  // namespace ub::ta
