// SPDX-License-Identifier: Apache-2.0
//
// An x86-64 instruction that has trapped, read by Zydis, and the questions that serving it asks. Safe in a signal
// handler; nothing is allocated.
#pragma once

#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>

#include "lib/urma/aperture/uncached/machine_state.h"

namespace ub::aperture {

struct Instruction {
  uint64_t address;
  uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
  ZydisDecodedInstruction info;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  uint64_t next() const { return address + info.length; }
  bool has(ZydisInstructionAttributes attribute) const { return (info.attributes & attribute) != 0; }
};

// Reads the instruction at an address, which the CPU has just read, too. False: no instruction that Zydis knows.
bool decode(uint64_t address, Instruction*);

// Writes the instruction in the notation of Intel, as far as there is room, with a zero at the end.
void write_text(const Instruction&, char* to, size_t room);

// The number (0 to 15) of the general-purpose register that a register is or is part of; -1: it is none.
int general_number(ZydisRegister);

// Does an operand name this general-purpose register, visibly or not, except to form the address of memory?
bool uses_register(const Instruction&, int number);

// Where a memory operand lies when the registers are these.
uint64_t address_of(const Instruction&, const ZydisDecodedOperand&, const MachineState&);

// movs, stos, lods, scas or cmps?
bool is_string_instruction(const Instruction&);

}  // namespace ub::aperture
