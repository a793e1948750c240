// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/x86_access.h"

#include <bit>

#include "lib/urma/aperture/uncached/run.h"

namespace ub::aperture {
namespace {

// They write back what a CPU has cached, and nothing is.
bool is_cache_flush(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_CLFLUSH || mnemonic == ZYDIS_MNEMONIC_CLFLUSHOPT ||
         mnemonic == ZYDIS_MNEMONIC_CLWB || mnemonic == ZYDIS_MNEMONIC_CLDEMOTE;
}

// The bytes from the first to the last one that are enabled.
urma_cr_status_t load_enabled(const Operand& operand, WindowMemory& memory, std::byte* to) {
  const uint64_t enables = operand.enables & low_bits(operand.bytes);
  if (enables == 0) return URMA_CR_SUCCESS;
  const auto first = static_cast<uint32_t>(std::countr_zero(enables));
  const auto behind = static_cast<uint32_t>(std::bit_width(enables));
  return memory.load(operand.address + first, to + first, behind - first);
}

Outcome carry_out_load_or_store(const Access& access, const Operand& operand) {
  Rewritten rewritten;
  if (const char* why = rewrite(access.instruction, &rewritten)) return unsupported(why);
  const void* code = access.code.find_or_add(rewritten);
  if (code == nullptr) return unsupported(kNoRoom);
  OperandCopy copy(operand.address);
  if (operand.is_read) {
    const urma_cr_status_t loaded = load_enabled(operand, access.memory, copy.bytes());
    if (loaded != URMA_CR_SUCCESS) return {loaded, operand.address};
  }
  const bool changes = changes_vectors(access.instruction, operand);
  if (operand.is_written) {
    // What the instruction does to registers counts only when the store was successful.
    MachineState after = access.state;
    run(rewritten, code, copy.bytes(), vector_parts(access.instruction) != 0 ? Vectors::kRead : Vectors::kNone, &after);
    const urma_cr_status_t stored = access.memory.store(operand.address, copy.bytes(), operand.bytes, operand.enables);
    if (stored != URMA_CR_SUCCESS) return {stored, operand.address};
    if (!changes) access.state = after;
  }
  if (changes || !operand.is_written)
    run(rewritten, code, copy.bytes(), changes ? Vectors::kChange : Vectors::kNone, &access.state);
  return {};
}

Outcome carry_out_operand(const Access& access, const Operand& operand) {
  if (is_atomic(access.instruction)) return carry_out_atomic(access, operand);
  return carry_out_load_or_store(access, operand);
}

// The operand is the word with the bit, so the instruction is given the number of the bit in this word.
Outcome carry_out_bit_test(const Access& access, const Operand& operand, const ZydisDecodedOperand& offset) {
  uint64_t& number = access.state.general[general_number(offset.reg.value)];
  const uint64_t kept = number;
  number %= operand.bytes * 8U;
  const Outcome outcome = carry_out_operand(access, operand);
  number = kept;
  return outcome;
}

Outcome carry_out_general(const Access& access) {
  const Instruction& instruction = access.instruction;
  if (is_cache_flush(instruction.info.mnemonic)) return {};
  if (const char* why = find_obstacle(instruction, access.state)) return unsupported(why);
  Operand operand;
  if (const char* why = find_operand(instruction, access.state, access.memory, &operand)) return unsupported(why);
  if (!access.memory.touches(operand.address, operand.bytes)) return unsupported("it accesses another place, too");
  if (const ZydisDecodedOperand* offset = bit_offset(instruction)) return carry_out_bit_test(access, operand, *offset);
  return carry_out_operand(access, operand);
}

}  // namespace

Outcome carry_out(const Instruction& instruction, MachineState* state, WindowMemory& memory, CodeTable& code) {
  const Access access{instruction, *state, memory, code};
  if (is_string_instruction(instruction)) return carry_out_string(access);
  if (is_stack_instruction(instruction)) return carry_out_stack(access);
  const Outcome outcome = carry_out_general(access);
  if (outcome.ok()) state->ip = instruction.next();
  return outcome;
}

}  // namespace ub::aperture
