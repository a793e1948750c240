// SPDX-License-Identifier: Apache-2.0
//
// Carries out an instruction that accesses memory of a window, so that the program can go on behind it.
//
// How: there were two ways.
//  (A) To write down what each instruction does. It needs no code at run time, and simple moves cost nothing extra. But
//      flags, widths, zeroing of upper halves, rounding and x87 have to be written for more than a thousand
//      instructions, each a chance to be subtly wrong, and new CPUs add more.
//  (B) To let the CPU do it. The operand is loaded into a copy; the same instruction, with a register in the place of
//      its address (rewrite.h), runs against the copy with the registers of the thread (run.h); if it writes its
//      operand, the copy is stored. Results, flags and vector forms are then right by construction, for instructions,
//      too, that nobody thought of. It needs memory that can be executed (code_table.h), and about 100 ns to load and
//      save vector registers for the instructions that use them.
// B was taken, since a trap costs microseconds anyway and a wrong flag costs days. By hand is done only what has more
// than one memory operand, or does something to memory that a copy cannot show: string instructions (x86_string.cc),
// push, pop, call and jmp (x86_stack.cc), and atomics (x86_atomic.cc), which are remote atomics; there the CPU makes
// registers and flags from the former value.
//
// Not supported: gathers and scatters, maskmovdqu, `lock cmpxchg16b` and atomics that cross an aligned word of 8 bytes
// (remote atomics have at most 8), operands of more than 64 bytes (fxsave, xsave, fnsave, frstor), loads of segment
// registers, far jumps, a stack in a window, code in a window, vector registers that the kernel did not save, the stack
// pointer as a source of BMI instructions, and masked operations other than moves at the end of a window.
//
// An instruction that is not served to its end leaves the thread's registers as they were; string instructions, as on
// real memory, leave what they have done and can be continued. A store that fails may have been made in part.
//
// Thread: that of the signal handler. Takes no lock, holds nothing when it returns.
#pragma once

#include <cstdint>

#include "lib/urma/aperture/uncached/code_table.h"
#include "lib/urma/aperture/uncached/instruction.h"
#include "lib/urma/aperture/uncached/machine_state.h"
#include "lib/urma/aperture/uncached/window_memory.h"
#include "lib/urma/aperture/uncached/x86_operand.h"

namespace ub::aperture {

struct Outcome {
  urma_cr_status_t cause = URMA_CR_SUCCESS;  // URMA_CR_UNSUPPORTED_OPCODE_ERR: see `why`; others: of WindowMemory
  uint64_t address = 0;                      // of the access that failed
  const char* why = nullptr;                 // a sentence, if the instruction is not supported

  bool ok() const { return cause == URMA_CR_SUCCESS; }
};
inline Outcome unsupported(const char* why) { return {URMA_CR_UNSUPPORTED_OPCODE_ERR, 0, why}; }
inline constexpr char kNoRoom[] = "there is no room for the code of more instructions";

// What the parts share: one instruction, and what it works on.
struct Access {
  const Instruction& instruction;
  MachineState& state;
  WindowMemory& memory;
  CodeTable& code;
};

// A copy of an operand. Its address has the alignment of the original, so that the CPU complains of the same ones.
class OperandCopy {
 public:
  explicit OperandCopy(uint64_t address) : bytes_(room_ + address % kLineBytes) {}
  OperandCopy(const OperandCopy&) = delete;
  OperandCopy& operator=(const OperandCopy&) = delete;
  std::byte* bytes() { return bytes_; }

 private:
  alignas(kLineBytes) std::byte room_[2 * kLineBytes] = {};
  std::byte* const bytes_;
};

// Carries out the instruction that `state` points to and changes the state to what it is behind it.
Outcome carry_out(const Instruction&, MachineState* state, WindowMemory&, CodeTable&);

// The parts. Those of one operand leave the instruction pointer to carry_out().
Outcome carry_out_string(const Access&);
bool is_stack_instruction(const Instruction&);  // push, pop, call, jmp with a memory operand
Outcome carry_out_stack(const Access&);
bool is_atomic(const Instruction&);
Outcome carry_out_atomic(const Access&, const Operand&);

}  // namespace ub::aperture
