// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/run.h"

namespace ub::aperture {
namespace {

// What the code below works on; it knows the places.
struct Block {
  uint64_t general[kRegisters];  // 0
  uint64_t flags;                // 128
  const void* code;              // 136
  std::byte* vectors;            // 144; null: they are left alone
  uint64_t parts;                // 152; 0: the format of FXSAVE
  uint32_t keep;                 // 160; not 0: vectors are written back
  uint32_t mxcsr;                // 164; of the handler itself
  uint16_t control;              // 168; the x87 control word of the handler itself
};
static_assert(offsetof(Block, flags) == 128 && offsetof(Block, code) == 136 && offsetof(Block, vectors) == 144);
static_assert(offsetof(Block, parts) == 152 && offsetof(Block, keep) == 160 && offsetof(Block, control) == 168);

// Of the flags only those of results are loaded: the trap flag, say, would stop in here.
constexpr uint64_t kAlwaysSet = 2;

}  // namespace

extern "C" void ub_aperture_run_block(Block*);

// The stack pointer stays that of the handler, so that a signal which comes meanwhile finds a stack. The registers of
// the program take all others, so the block is found again through the stack.
asm(R"(
  .text
  .hidden ub_aperture_run_block
  .globl ub_aperture_run_block
  .type ub_aperture_run_block, @function
ub_aperture_run_block:
  .cfi_startproc
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  .cfi_def_cfa_offset 56
  .cfi_offset %rbx, -16
  .cfi_offset %rbp, -24
  .cfi_offset %r12, -32
  .cfi_offset %r13, -40
  .cfi_offset %r14, -48
  .cfi_offset %r15, -56
  mov 144(%rdi), %rcx
  test %rcx, %rcx
  je 2f
  stmxcsr 164(%rdi)
  fnstcw 168(%rdi)
  mov 152(%rdi), %rax
  mov %rax, %rdx
  shr $32, %rdx
  test %rax, %rax
  je 1f
  xrstor64 (%rcx)
  jmp 2f
1:
  fxrstor64 (%rcx)
2:
  push %rdi
  push 136(%rdi)
  .cfi_def_cfa_offset 72
  push 128(%rdi)
  popfq
  mov 0(%rdi), %rax
  mov 8(%rdi), %rcx
  mov 16(%rdi), %rdx
  mov 24(%rdi), %rbx
  mov 40(%rdi), %rbp
  mov 48(%rdi), %rsi
  mov 64(%rdi), %r8
  mov 72(%rdi), %r9
  mov 80(%rdi), %r10
  mov 88(%rdi), %r11
  mov 96(%rdi), %r12
  mov 104(%rdi), %r13
  mov 112(%rdi), %r14
  mov 120(%rdi), %r15
  mov 56(%rdi), %rdi
  call *(%rsp)
  mov %rdi, (%rsp)
  mov 8(%rsp), %rdi
  mov %rax, 0(%rdi)
  mov %rcx, 8(%rdi)
  mov %rdx, 16(%rdi)
  mov %rbx, 24(%rdi)
  mov %rbp, 40(%rdi)
  mov %rsi, 48(%rdi)
  mov %r8, 64(%rdi)
  mov %r9, 72(%rdi)
  mov %r10, 80(%rdi)
  mov %r11, 88(%rdi)
  mov %r12, 96(%rdi)
  mov %r13, 104(%rdi)
  mov %r14, 112(%rdi)
  mov %r15, 120(%rdi)
  pop %rax
  mov %rax, 56(%rdi)
  pushfq
  pop 128(%rdi)
  add $8, %rsp
  .cfi_def_cfa_offset 56
  mov 144(%rdi), %rcx
  test %rcx, %rcx
  je 5f
  mov 152(%rdi), %rax
  mov %rax, %rdx
  shr $32, %rdx
  cmpl $0, 160(%rdi)
  je 4f
  test %rax, %rax
  je 3f
  xsave64 (%rcx)
  jmp 4f
3:
  fxsave64 (%rcx)
4:
  fninit
  fldcw 168(%rdi)
  ldmxcsr 164(%rdi)
  test $4, %al
  je 5f
  vzeroupper
5:
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size ub_aperture_run_block, . - ub_aperture_run_block
)");

void run(const Rewritten& instruction, const void* code, std::byte* operand, Vectors vectors, MachineState* state) {
  Block block;
  for (int i = 0; i < kRegisters; ++i) block.general[i] = state->general[i];
  if (instruction.rbp_is_rsp) block.general[kRbp] = state->general[kRsp];
  block.general[instruction.pointer] = reinterpret_cast<uint64_t>(operand);
  block.flags = (state->flags & kStatusFlags) | kAlwaysSet;
  block.code = code;
  block.vectors = vectors == Vectors::kNone ? nullptr : state->vectors.at;
  block.parts = state->vectors.parts;
  block.keep = vectors == Vectors::kChange;

  ub_aperture_run_block(&block);

  for (int i = 0; i < kRegisters; ++i) {
    if (i == kRsp || i == instruction.pointer || (i == kRbp && instruction.rbp_is_rsp)) continue;
    state->general[i] = block.general[i];
  }
  if (instruction.rbp_is_rsp) state->general[kRsp] = block.general[kRbp];
  state->flags = (state->flags & ~kStatusFlags) | (block.flags & kStatusFlags);
}

}  // namespace ub::aperture
