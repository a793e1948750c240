// SPDX-License-Identifier: Apache-2.0
//
// The registers of an interrupted x86-64 thread, taken out of its signal frame and put back. General-purpose registers
// are copies, so that an instruction which fails half-way leaves the frame as it was. Vector registers stay where they
// are: the kernel saved them behind the frame in the format of XSAVE (without compaction), or of FXSAVE where it does
// not use XSAVE, and loads them from there when the handler returns.
//
// Thread: that of the signal handler. Nothing is owned.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub::aperture {

// Numbers of general-purpose registers, as instructions encode them.
enum Register : uint8_t { kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi };
inline constexpr int kRegisters = 16;

// The bits of the flags register that instructions with a memory operand write: CF, PF, AF, ZF, SF, OF.
inline constexpr uint64_t kStatusFlags = 0x8d5;
inline constexpr uint64_t kZeroFlag = 0x40;
inline constexpr uint64_t kDirectionFlag = 0x400;

// Components of an XSAVE area, as bits.
inline constexpr uint64_t kX87Part = 1, kSsePart = 2, kAvxPart = 4, kMaskPart = 0x20;
inline constexpr uint64_t kAvx512Parts = 0xe0;  // masks, upper halves of 0 to 15, registers 16 to 31

struct VectorArea {
  std::byte* at = nullptr;  // aligned to 64 bytes, or to 16 in the format of FXSAVE
  uint64_t parts = 0;       // which components it holds; 0: the format is that of FXSAVE
};

struct MachineState {
  uint64_t general[kRegisters];
  uint64_t ip;
  uint64_t flags;
  VectorArea vectors;
};

// `machine` is the ucontext_t of a signal handler.
MachineState take_state(void* machine);
// Registers, flags and instruction pointer.
void put_state(const MachineState&, void* machine);

// A mask register (k0 to k7), and where the sign bits of the elements of a vector register (0 to 15) are set: bit i is
// that of element i. The area must hold the parts.
uint64_t mask_register(const VectorArea&, int number);
uint64_t sign_bits(const VectorArea&, int number, uint32_t element_bytes, uint32_t elements);

// The first byte of what the segment registers fs and gs stand for.
uint64_t fs_base();
uint64_t gs_base();

}  // namespace ub::aperture
