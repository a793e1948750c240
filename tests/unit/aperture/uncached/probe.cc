// SPDX-License-Identifier: Apache-2.0
#include "probe.h"

#include <cpuid.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ub::aperture::test {
namespace {

constexpr int kPlaces[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
constexpr int kSignals[] = {SIGTRAP, SIGILL, SIGFPE, SIGSEGV, SIGBUS};
constexpr size_t kSignalStackBytes = 256 << 10;
constexpr size_t kPartsAt = 464 + 8, kBytesAt = 464 + 16, kPresentAt = 512, kXmmAt = 160;
constexpr uint64_t kParts = 0xe7;
constexpr uint64_t kComparedFlags = 0xcd5;  // of results, and the direction

enum class Stage { kIdle, kLooking, kEntering, kRunning };
Stage g_stage = Stage::kIdle;
Cpu* g_cpu = nullptr;
Stop g_stop;
Cpu g_kept;  // of the test itself

uint64_t word_at(const std::byte* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void take(const ucontext_t& frame, Cpu* cpu) {
  for (int i = 0; i < 16; ++i) cpu->general[i] = static_cast<uint64_t>(frame.uc_mcontext.gregs[kPlaces[i]]);
  cpu->ip = static_cast<uint64_t>(frame.uc_mcontext.gregs[REG_RIP]);
  cpu->flags = static_cast<uint64_t>(frame.uc_mcontext.gregs[REG_EFL]);
  const auto* area = reinterpret_cast<const std::byte*>(frame.uc_mcontext.fpregs);
  uint32_t bytes;
  std::memcpy(&bytes, area + kBytesAt, sizeof bytes);
  cpu->vector_bytes = bytes;
  if (bytes > Cpu::kMostVectorBytes) std::abort();
  std::memcpy(cpu->vectors, area, bytes);
}

void put(const Cpu& cpu, ucontext_t* frame) {
  for (int i = 0; i < 16; ++i) frame->uc_mcontext.gregs[kPlaces[i]] = static_cast<greg_t>(cpu.general[i]);
  frame->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(cpu.ip);
  frame->uc_mcontext.gregs[REG_EFL] = static_cast<greg_t>(cpu.flags);
  std::memcpy(frame->uc_mcontext.fpregs, cpu.vectors, cpu.vector_bytes);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  auto* frame = static_cast<ucontext_t*>(context);
  if (g_stage == Stage::kLooking && signal == SIGTRAP) {
    take(*frame, g_cpu);
    g_stage = Stage::kIdle;
  } else if (g_stage == Stage::kEntering && signal == SIGTRAP) {
    take(*frame, &g_kept);
    g_stage = Stage::kRunning;
    put(*g_cpu, frame);
  } else if (g_stage == Stage::kRunning) {
    take(*frame, g_cpu);
    g_stop = {signal, reinterpret_cast<uint64_t>(info->si_addr)};
    g_stage = Stage::kIdle;
    put(g_kept, frame);
  } else {
    ::signal(signal, SIG_DFL);  // a fault of the test itself
  }
}

// Where the parts of the area lie that do not lie at its beginning, and how long they are.
struct Part {
  const char* name;
  int number;
};
constexpr Part kLateParts[] = {{"ymm", 2}, {"mask", 5}, {"zmm", 6}, {"zmm16", 7}};

void find_part(int number, size_t* at, size_t* bytes) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid_count(0xd, static_cast<unsigned>(number), &a, &b, &c, &d);
  *at = b;
  *bytes = a;
}

// Parts that are not marked as present have their first values, whatever the area holds.
Cpu with_all_parts(const Cpu& as_saved) {
  Cpu cpu = as_saved;
  const uint64_t present = word_at(cpu.vectors + kPresentAt);
  if ((present & 1) == 0) {
    const uint64_t control = 0x37f;
    std::memset(cpu.vectors, 0, 24);
    std::memcpy(cpu.vectors, &control, 2);
    std::memset(cpu.vectors + 32, 0, 128);
  }
  if ((present & 2) == 0) std::memset(cpu.vectors + 160, 0, 256);
  for (const Part& part : kLateParts) {
    size_t at, bytes;
    find_part(part.number, &at, &bytes);
    if ((present >> part.number & 1) == 0 && at + bytes <= cpu.vector_bytes) std::memset(cpu.vectors + at, 0, bytes);
  }
  return cpu;
}

void compare(const char* name, int number, const std::byte* expected, const std::byte* actual, size_t bytes,
             std::string* to) {
  if (std::memcmp(expected, actual, bytes) == 0) return;
  *to += std::string(" ") + name + std::to_string(number) + " is";
  char text[4];
  for (const std::byte* value : {actual, expected}) {
    for (size_t i = 0; i < bytes; ++i) {
      std::snprintf(text, sizeof text, "%s%02x", i % 8 == 0 ? " " : "", static_cast<unsigned>(value[i]));
      *to += text;
    }
    if (value == actual) *to += ", not";
  }
  *to += ";";
}

}  // namespace

// Only once: what was taken later, by the router of faults, would be replaced.
void take_signals() {
  static bool is_taken = false;
  if (std::exchange(is_taken, true)) return;
  for (int signal : kSignals) {
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    ::sigaction(signal, &ours, nullptr);
  }
  use_signal_stack(true);
}

void use_signal_stack(bool yes) {
  static void* const memory =
      ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStackBytes;
  stack.ss_flags = yes ? 0 : SS_DISABLE;
  ::sigaltstack(&stack, nullptr);
}

Stop run(Cpu* cpu) {
  g_cpu = cpu;
  g_stage = Stage::kEntering;
  asm volatile("int3" : : : "memory");
  g_cpu = nullptr;
  return g_stop;
}

Cpu plain_cpu() {
  static const Cpu plain = [] {
    Cpu cpu;
    g_cpu = &cpu;
    g_stage = Stage::kLooking;
    asm volatile("int3" : : : "memory");
    g_cpu = nullptr;
    return cpu;
  }();
  return plain;
}

Cpu random_cpu(std::mt19937_64& random) {
  Cpu cpu = plain_cpu();
  for (uint64_t& value : cpu.general) value = random() >> random() % 64;
  cpu.flags = 0x202 | (random() & 0x8d5);
  const auto fill = [&](size_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 8) {
      const uint64_t value = random();
      std::memcpy(cpu.vectors + at + i, &value, std::min<size_t>(8, bytes - i));
    }
  };
  const auto set16 = [&](size_t at, uint64_t value) { std::memcpy(cpu.vectors + at, &value, 2); };
  set16(0, 0x37f | (random() & 0xc00));  // x87: control, with any rounding
  set16(2, (random() & 7) << 11);        // status: any top of the stack
  set16(4, random() & 0xff);             // which registers are in use
  const auto mxcsr = static_cast<uint32_t>(0x1f80 | (random() & 0x6000));
  std::memcpy(cpu.vectors + 24, &mxcsr, sizeof mxcsr);
  for (size_t i = 0; i < 8; ++i) fill(32 + 16 * i, 10);
  fill(160, 256);
  for (const Part& part : kLateParts) {
    if ((vector_parts_of(cpu) >> part.number & 1) == 0) continue;
    size_t at, bytes;
    find_part(part.number, &at, &bytes);
    fill(at, bytes);
  }
  const uint64_t present = word_at(cpu.vectors + kPresentAt) | (vector_parts_of(cpu) & kParts);
  std::memcpy(cpu.vectors + kPresentAt, &present, sizeof present);
  return cpu;
}

void set_vectors(Cpu* cpu, std::byte value) {
  std::memset(cpu->vectors + kXmmAt, static_cast<int>(value), 256);
  for (const Part& part : kLateParts) {
    size_t at, bytes;
    find_part(part.number, &at, &bytes);
    if ((vector_parts_of(*cpu) >> part.number & 1) != 0) std::memset(cpu->vectors + at, static_cast<int>(value), bytes);
  }
}

void clear_vector(Cpu* cpu, int number) {
  if (number < 16) std::memset(cpu->vectors + kXmmAt + 16 * number, 0, 16);
  for (const Part& part : kLateParts) {
    size_t at, bytes;
    find_part(part.number, &at, &bytes);
    if (part.number == 5 || (vector_parts_of(*cpu) >> part.number & 1) == 0) continue;
    const bool is_of_upper_half = part.number == 7;
    if (is_of_upper_half == (number < 16)) continue;
    std::memset(cpu->vectors + at + bytes / 16 * static_cast<size_t>(number % 16), 0, bytes / 16);
  }
}

void set_ymm(Cpu* cpu, int number, const void* bytes) {
  size_t at, all;
  find_part(2, &at, &all);
  const size_t place = 16 * static_cast<size_t>(number);
  std::memcpy(cpu->vectors + kXmmAt + place, bytes, 16);
  std::memcpy(cpu->vectors + at + place, static_cast<const std::byte*>(bytes) + 16, 16);
}

void set_mask(Cpu* cpu, int number, uint64_t bits) {
  size_t at, all;
  find_part(5, &at, &all);
  std::memcpy(cpu->vectors + at + 8 * static_cast<size_t>(number), &bits, sizeof bits);
}

uint64_t vector_parts_of(const Cpu& cpu) { return word_at(cpu.vectors + kPartsAt); }

std::string difference(const Cpu& expected_as_saved, const Cpu& actual_as_saved) {
  const Cpu expected = with_all_parts(expected_as_saved), actual = with_all_parts(actual_as_saved);
  std::string text;
  const auto bytes_of = [](const uint64_t& value) { return reinterpret_cast<const std::byte*>(&value); };
  for (int i = 0; i < 16; ++i)
    compare("general register ", i, bytes_of(expected.general[i]), bytes_of(actual.general[i]), 8, &text);
  const uint64_t flags[] = {expected.flags & kComparedFlags, actual.flags & kComparedFlags};
  compare("flags ", 0, bytes_of(flags[0]), bytes_of(flags[1]), 8, &text);
  const auto part = [&](const char* name, size_t at, size_t each, size_t step, int count) {
    for (int i = 0; i < count; ++i) {
      const size_t place = at + step * static_cast<size_t>(i);
      if (place + each <= expected.vector_bytes)
        compare(name, i, expected.vectors + place, actual.vectors + place, each, &text);
    }
  };
  part("x87 control, status, tags ", 0, 5, 0, 1);  // not the address of the last instruction, which is ours
  part("mxcsr ", 24, 4, 0, 1);
  part("st", 32, 10, 16, 8);
  part("xmm", 160, 16, 16, 16);
  for (const Part& late : kLateParts) {
    if ((vector_parts_of(expected) >> late.number & 1) == 0) continue;
    size_t at, bytes;
    find_part(late.number, &at, &bytes);
    const size_t each = late.number == 5 ? 8 : bytes / 16;
    part(late.name, at, each, each, static_cast<int>(bytes / each));
  }
  return text;
}

}  // namespace ub::aperture::test
