// SPDX-License-Identifier: Apache-2.0
//
// The same instruction with another place for its memory operand: a register that the instruction does not use points
// to it. Everything else stays, so the CPU can execute the instruction against a copy of the operand. Prefixes that
// concern the place (segment, address size) and `lock` are left out; the copy is private.
#pragma once

#include <cstdint>

#include "lib/urma/aperture/uncached/instruction.h"

namespace ub::aperture {

struct Rewritten {
  uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH] = {};
  uint8_t length = 0;
  uint8_t pointer = kRdi;   // the register that points to the copy
  bool rbp_is_rsp = false;  // the instruction works on rsp: rbp takes its place, so that the stack stays ours
};

// Null, or a sentence that says why it cannot be done.
const char* rewrite(const Instruction&, Rewritten*);

// `cmp` and `mov` of rax, or the lower part of it of 1, 2, 4 or 8 bytes, with the copy.
enum class WithRax : uint8_t { kCompare = 0x3a, kLoad = 0x8a };
Rewritten write_with_rax(WithRax, uint32_t bytes);

}  // namespace ub::aperture
