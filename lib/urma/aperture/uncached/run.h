// SPDX-License-Identifier: Apache-2.0
//
// Executes one rewritten instruction on the CPU with the registers of the interrupted thread: they are loaded, the
// instruction runs against the copy of its operand, and they are read back. So results and flags are those of the CPU.
//
// A division error or an unmasked floating-point exception raises SIGFPE, as on real memory; the address that the
// signal names then lies in the library. Thread: that of the signal handler; takes no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/urma/aperture/uncached/machine_state.h"
#include "lib/urma/aperture/uncached/rewrite.h"

namespace ub::aperture {

// What becomes of the vector registers, of x87 and MXCSR: they are left alone; the instruction sees them; it sees them,
// and what it makes of them is written to the signal frame.
enum class Vectors : uint8_t { kNone, kRead, kChange };

// `code` is the instruction in CodeTable. `operand` is the copy, which is aligned as the operand was.
void run(const Rewritten&, const void* code, std::byte* operand, Vectors, MachineState*);

}  // namespace ub::aperture
