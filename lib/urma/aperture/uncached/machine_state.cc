// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/machine_state.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>

namespace ub::aperture {
namespace {

// Where the kernel keeps which register.
constexpr int kPlaces[kRegisters] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

// What the kernel writes into the unused end of the FXSAVE part if an XSAVE area follows.
struct SoftwareBytes {
  uint32_t magic;
  uint32_t bytes_with_end;  // of the area and the second magic number
  uint64_t parts;
  uint32_t bytes;
};
constexpr size_t kSoftwareBytesAt = 464;
constexpr uint32_t kMagic = 0x46505853, kMagicAtEnd = 0x46505845;

// The layout of the area.
constexpr size_t kXmmAt = 160, kPresentAt = 512, kYmmHighAt = 576, kXmmBytes = 16;

template <class T>
T read_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Components that are not marked as present have their initial value, zero.
bool is_present(const VectorArea& area, uint64_t part) {
  if (area.parts == 0) return part == kSsePart;
  return (read_at<uint64_t>(area.at + kPresentAt) & part) != 0;
}

size_t find_masks() {
  unsigned bytes = 0, at = 0, c = 0, d = 0;
  __get_cpuid_count(0xd, 5, &bytes, &at, &c, &d);
  return at;
}
// Where the CPU puts mask registers. CPUID is slow in a virtual machine, so it is asked before there is any handler.
const size_t g_masks_at = find_masks();

uint64_t segment_base(int which) {
  uint64_t base = 0;
  ::syscall(SYS_arch_prctl, which, &base);
  return base;
}

}  // namespace

MachineState take_state(void* machine) {
  const mcontext_t& frame = static_cast<ucontext_t*>(machine)->uc_mcontext;
  MachineState state;
  for (int i = 0; i < kRegisters; ++i) state.general[i] = static_cast<uint64_t>(frame.gregs[kPlaces[i]]);
  state.ip = static_cast<uint64_t>(frame.gregs[REG_RIP]);
  state.flags = static_cast<uint64_t>(frame.gregs[REG_EFL]);
  state.vectors.at = reinterpret_cast<std::byte*>(frame.fpregs);
  const auto software = read_at<SoftwareBytes>(state.vectors.at + kSoftwareBytesAt);
  if (software.magic == kMagic && read_at<uint32_t>(state.vectors.at + software.bytes) == kMagicAtEnd)
    state.vectors.parts = software.parts & (kX87Part | kSsePart | kAvxPart | kAvx512Parts);
  return state;
}

void put_state(const MachineState& state, void* machine) {
  mcontext_t& frame = static_cast<ucontext_t*>(machine)->uc_mcontext;
  for (int i = 0; i < kRegisters; ++i) frame.gregs[kPlaces[i]] = static_cast<greg_t>(state.general[i]);
  frame.gregs[REG_RIP] = static_cast<greg_t>(state.ip);
  frame.gregs[REG_EFL] = static_cast<greg_t>(state.flags);
}

uint64_t mask_register(const VectorArea& area, int number) {
  if (!is_present(area, kMaskPart)) return 0;
  return read_at<uint64_t>(area.at + g_masks_at + 8 * static_cast<size_t>(number));
}

uint64_t sign_bits(const VectorArea& area, int number, uint32_t element_bytes, uint32_t elements) {
  std::byte value[2 * kXmmBytes] = {};
  const size_t place = kXmmBytes * static_cast<size_t>(number);
  if (is_present(area, kSsePart)) std::memcpy(value, area.at + kXmmAt + place, kXmmBytes);
  if (is_present(area, kAvxPart)) std::memcpy(value + kXmmBytes, area.at + kYmmHighAt + place, kXmmBytes);
  uint64_t bits = 0;
  for (uint32_t i = 0; i < elements; ++i) {
    const auto top = std::to_integer<uint64_t>(value[(i + 1) * element_bytes - 1] >> 7);
    bits |= top << i;
  }
  return bits;
}

uint64_t fs_base() { return segment_base(ARCH_GET_FS); }
uint64_t gs_base() { return segment_base(ARCH_GET_GS); }

}  // namespace ub::aperture
