// SPDX-License-Identifier: Apache-2.0
//
// Instructions with `lock`, and xchg, as remote atomics. Where there is a remote atomic that does to memory what the
// instruction does, it is used; everything else, and what has less than 4 bytes, is a loop of compare-and-swaps on the
// aligned word of 4 or 8 bytes around it. Either way the CPU executes the instruction on the former value for registers
// and flags.
#include <cstring>

#include "lib/urma/aperture/uncached/run.h"
#include "lib/urma/aperture/uncached/x86_access.h"

namespace ub::aperture {
namespace {

// A remote atomic with the same effect on memory.
struct Direct {
  AtomicOp op;
  uint64_t operand;
  uint64_t compare = 0;
};

// The second operand: a register or an immediate.
uint64_t source(const Access& access) {
  const ZydisDecodedOperand& o = access.instruction.operands[1];
  if (o.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return o.imm.value.u;
  return access.state.general[general_number(o.reg.value)];
}
uint64_t bit_of_source(const Access& access, const Operand& operand) {
  return uint64_t{1} << source(access) % (operand.bytes * 8U);
}

// False: there is none.
bool find_direct(const Access& access, const Operand& operand, Direct* direct) {
  switch (access.instruction.info.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_XADD:
      *direct = {AtomicOp::kFetchAdd, source(access)};
      return true;
    case ZYDIS_MNEMONIC_SUB:
      *direct = {AtomicOp::kFetchSub, source(access)};
      return true;
    case ZYDIS_MNEMONIC_INC:
      *direct = {AtomicOp::kFetchAdd, 1};
      return true;
    case ZYDIS_MNEMONIC_DEC:
      *direct = {AtomicOp::kFetchSub, 1};
      return true;
    case ZYDIS_MNEMONIC_AND:
      *direct = {AtomicOp::kFetchAnd, source(access)};
      return true;
    case ZYDIS_MNEMONIC_OR:
      *direct = {AtomicOp::kFetchOr, source(access)};
      return true;
    case ZYDIS_MNEMONIC_XOR:
      *direct = {AtomicOp::kFetchXor, source(access)};
      return true;
    case ZYDIS_MNEMONIC_NOT:
      *direct = {AtomicOp::kFetchXor, ~uint64_t{0}};
      return true;
    case ZYDIS_MNEMONIC_BTS:
      *direct = {AtomicOp::kFetchOr, bit_of_source(access, operand)};
      return true;
    case ZYDIS_MNEMONIC_BTR:
      *direct = {AtomicOp::kFetchClear, bit_of_source(access, operand)};
      return true;
    case ZYDIS_MNEMONIC_BTC:
      *direct = {AtomicOp::kFetchXor, bit_of_source(access, operand)};
      return true;
    case ZYDIS_MNEMONIC_XCHG:
      *direct = {AtomicOp::kSwap, source(access)};
      return true;
    case ZYDIS_MNEMONIC_CMPXCHG:
      *direct = {AtomicOp::kCompareSwap, source(access), access.state.general[kRax]};
      return true;
    default:
      return false;
  }
}

// The instruction, and the aligned word that holds its operand.
struct Atomic {
  const Access& access;
  const Operand& operand;
  Rewritten rewritten;
  const void* code;
  uint64_t word_at;
  uint32_t word_bytes;

  uint32_t offset() const { return static_cast<uint32_t>(operand.address - word_at); }
};

// Executes the instruction on a word; `*state` becomes what it is behind it. Returns the word that it leaves.
uint64_t execute_on(const Atomic& atomic, uint64_t word, MachineState* state) {
  OperandCopy copy(atomic.operand.address);
  std::byte* const of_word = reinterpret_cast<std::byte*>(&word) + atomic.offset();
  std::memcpy(copy.bytes(), of_word, atomic.operand.bytes);
  run(atomic.rewritten, atomic.code, copy.bytes(), Vectors::kNone, state);
  std::memcpy(of_word, copy.bytes(), atomic.operand.bytes);
  return word;
}

Outcome carry_out_direct(const Atomic& atomic, const Direct& direct) {
  const uint64_t mask = low_bits(atomic.word_bytes * 8);
  uint64_t old = 0;
  const urma_cr_status_t status = atomic.access.memory.atomic(
      {direct.op, atomic.word_bytes, atomic.word_at, direct.operand & mask, direct.compare & mask}, &old);
  if (status != URMA_CR_SUCCESS) return {status, atomic.operand.address};
  execute_on(atomic, old, &atomic.access.state);
  return {};
}

Outcome carry_out_by_compare_swap(const Atomic& atomic) {
  uint64_t expected = 0;
  urma_cr_status_t status =
      atomic.access.memory.load(atomic.word_at, reinterpret_cast<std::byte*>(&expected), atomic.word_bytes);
  while (status == URMA_CR_SUCCESS) {
    MachineState after = atomic.access.state;
    const uint64_t desired = execute_on(atomic, expected, &after);
    uint64_t old = 0;
    status = atomic.access.memory.atomic({AtomicOp::kCompareSwap, atomic.word_bytes, atomic.word_at, desired, expected},
                                         &old);
    if (status != URMA_CR_SUCCESS) break;
    if (old == expected) {
      atomic.access.state = after;
      return {};
    }
    expected = old;
  }
  return {status, atomic.operand.address};
}

// The smallest word of 4 or 8 bytes that the operand lies in; false: it lies in none.
bool find_word(Atomic* atomic) {
  for (uint32_t bytes : {4U, 8U}) {
    const uint64_t at = atomic->operand.address / bytes * bytes;
    if (atomic->operand.address + atomic->operand.bytes > at + bytes) continue;
    atomic->word_at = at;
    atomic->word_bytes = bytes;
    return true;
  }
  return false;
}

}  // namespace

// xchg with memory is always locked.
bool is_atomic(const Instruction& instruction) {
  return instruction.has(ZYDIS_ATTRIB_HAS_LOCK) || instruction.info.mnemonic == ZYDIS_MNEMONIC_XCHG;
}

Outcome carry_out_atomic(const Access& access, const Operand& operand) {
  Atomic atomic{access, operand, {}, nullptr, 0, 0};
  if (!find_word(&atomic)) return unsupported("a remote atomic concerns one aligned word of at most 8 bytes");
  if (!access.memory.contains(atomic.word_at, atomic.word_bytes))
    return unsupported("the word around its operand goes beyond the window");
  if (const char* why = rewrite(access.instruction, &atomic.rewritten)) return unsupported(why);
  atomic.code = access.code.find_or_add(atomic.rewritten);
  if (atomic.code == nullptr) return unsupported(kNoRoom);
  Direct direct;
  const bool is_word = atomic.word_bytes == operand.bytes;
  if (is_word && find_direct(access, operand, &direct)) return carry_out_direct(atomic, direct);
  return carry_out_by_compare_swap(atomic);
}

}  // namespace ub::aperture
