// SPDX-License-Identifier: Apache-2.0
//
// What an instruction with one memory operand needs of memory and of vector registers.
#pragma once

#include "lib/urma/aperture/uncached/instruction.h"
#include "lib/urma/aperture/uncached/machine_state.h"
#include "lib/urma/aperture/uncached/window_memory.h"

namespace ub::aperture {

struct Operand {
  uint64_t address = 0;
  uint32_t bytes = 0;
  bool is_read = false, is_written = false;
  uint64_t enables = WindowMemory::kAllBytes;  // which bytes are accessed
};

// Null, or a sentence that says why the operand cannot be served. Operands of the stack that push, pop and call have
// beside it are not looked at.
const char* find_operand(const Instruction&, const MachineState&, const WindowMemory&, Operand*);

// The components of the vector area that the instruction works on; 0: none.
uint64_t vector_parts(const Instruction&);

// Does it change vector registers, x87 or MXCSR?
bool changes_vectors(const Instruction&, const Operand&);

// Null, or a sentence: the instruction is not one of those that run with the registers of the thread alone.
const char* find_obstacle(const Instruction&, const MachineState&);

// The register of a `bt`, `bts`, `btr` or `btc` that says which bit is meant, counted from the first byte of the
// operand, and maybe far behind or before it; null: none.
const ZydisDecodedOperand* bit_offset(const Instruction&);

}  // namespace ub::aperture
