// SPDX-License-Identifier: Apache-2.0
//
// Runs a piece of code from any state of the registers, and says what they are when it ends. The registers get their
// values, and are read, by the kernel as it enters and leaves signal handlers, so nothing of the code under test helps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace ub::aperture::test {

// Registers in the order of the encoding (rax, rcx, rdx, rbx, rsp, ...), and the kernel's XSAVE area.
struct Cpu {
  static constexpr size_t kMostVectorBytes = 8192;
  uint64_t general[16] = {};
  uint64_t ip = 0;
  uint64_t flags = 0x202;
  alignas(64) std::byte vectors[kMostVectorBytes] = {};
  size_t vector_bytes = 0;
};

struct Stop {
  int signal = 0;        // SIGTRAP: the code came to its end, an `int3`
  uint64_t address = 0;  // what the signal said of it
};

// Takes the signals that code under test can raise, before the first window is made; later it does nothing.
void take_signals();
// Whether handlers run on a stack of their own, which is the rule, or on that of the code.
void use_signal_stack(bool yes);

// The state of this thread, as a beginning: with all vector registers.
Cpu plain_cpu();
// Random registers, flags and vectors; exceptions of floating point are masked, rounding is any.
Cpu random_cpu(std::mt19937_64&);
// All bytes of all vector and mask registers; all of one vector register (0 to 31).
void set_vectors(Cpu*, std::byte value);
void clear_vector(Cpu*, int number);
void set_ymm(Cpu*, int number, const void* bytes);  // 0 to 15
void set_mask(Cpu*, int number, uint64_t bits);
// From `cpu->ip` to the first signal that nobody serves.
Stop run(Cpu* cpu);

// What differs between two states, apart from the instruction pointer; "" if nothing does.
std::string difference(const Cpu& expected, const Cpu& actual);

uint64_t vector_parts_of(const Cpu&);  // XSAVE components of the area

}  // namespace ub::aperture::test
