// SPDX-License-Identifier: Apache-2.0
//
// Instructions that move a word between the window and the stack, or take the address of the next instruction from the
// window: push, pop, call and jmp with a memory operand.
#include <cstring>

#include "lib/urma/aperture/uncached/x86_access.h"

namespace ub::aperture {
namespace {

// The stack usually lies in ordinary memory, and may lie in a window.
urma_cr_status_t push(const Access& access, const std::byte* value, uint32_t bytes) {
  const uint64_t top = access.state.general[kRsp] - bytes;
  const urma_cr_status_t status = access.memory.store(top, value, bytes);
  if (status == URMA_CR_SUCCESS) access.state.general[kRsp] = top;
  return status;
}

Outcome carry_out_pop(const Access& access, uint32_t bytes) {
  std::byte value[sizeof(uint64_t)];
  const uint64_t top = access.state.general[kRsp];
  const urma_cr_status_t loaded = access.memory.load(top, value, bytes);
  if (loaded != URMA_CR_SUCCESS) return {loaded, top};
  // An address relative to the stack pointer counts from its new value.
  MachineState after = access.state;
  after.general[kRsp] = top + bytes;
  const uint64_t to = address_of(access.instruction, access.instruction.operands[0], after);
  const urma_cr_status_t stored = access.memory.store(to, value, bytes);
  if (stored != URMA_CR_SUCCESS) return {stored, to};
  after.ip = access.instruction.next();
  access.state = after;
  return {};
}

}  // namespace

bool is_stack_instruction(const Instruction& instruction) {
  if (instruction.operands[0].type != ZYDIS_OPERAND_TYPE_MEMORY) return false;
  if (instruction.operands[0].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) return false;
  switch (instruction.info.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
      return true;
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_JMP:
      return instruction.info.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR;
    default:
      return false;
  }
}

Outcome carry_out_stack(const Access& access) {
  const Instruction& instruction = access.instruction;
  const uint32_t bytes = instruction.operands[0].size / 8U;
  const bool is_branch = instruction.info.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR;
  if (is_branch && bytes != sizeof(uint64_t)) return unsupported("its target has less than 8 bytes");
  if (instruction.info.mnemonic == ZYDIS_MNEMONIC_POP) return carry_out_pop(access, bytes);

  const uint64_t from = address_of(instruction, instruction.operands[0], access.state);
  std::byte value[sizeof(uint64_t)];
  const urma_cr_status_t loaded = access.memory.load(from, value, bytes);
  if (loaded != URMA_CR_SUCCESS) return {loaded, from};
  uint64_t next = instruction.next();
  urma_cr_status_t pushed = URMA_CR_SUCCESS;
  if (instruction.info.mnemonic == ZYDIS_MNEMONIC_PUSH) pushed = push(access, value, bytes);
  if (instruction.info.mnemonic == ZYDIS_MNEMONIC_CALL)
    pushed = push(access, reinterpret_cast<const std::byte*>(&next), sizeof next);
  if (pushed != URMA_CR_SUCCESS) return {pushed, access.state.general[kRsp] - bytes};
  if (is_branch) std::memcpy(&next, value, sizeof next);
  access.state.ip = next;
  return {};
}

}  // namespace ub::aperture
