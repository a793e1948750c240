// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/coherent/shared_line_program.h"

#include "emu_hw/coherent/program_start.h"

namespace ub::emu {
namespace {

constexpr uint64_t kShared = 0;
constexpr uint64_t kStart = uint64_t{1} << 40;

}  // namespace

Task SharedLineProgram::run() {
  uint64_t next = kStart;
  Task starting = start(*cores_.front(), next, kLinesOfProgram);
  co_await starting;
  next += kLinesOfProgram;
  for (const auto& core : cores_) {
    Task each = start(*core, next, kLinesOfCore);
    co_await each;
    next += kLinesOfCore;
  }
  for (const auto& core : cores_) spawn(kernel_, core == cores_.front() ? write(*core) : read(*core));
}

Task SharedLineProgram::start(CoherentCore& core, uint64_t first, uint64_t count) {
  for (uint64_t line = first; line < first + count; ++line) {
    Task missing = core.miss(Access::kRead, line);
    co_await missing;
  }
}

Task SharedLineProgram::read(CoherentCore& core) {
  for (;;) {
    if (core.hits(Access::kRead, kShared)) {
      co_await core.loses_a_line();
    } else {
      Task missing = core.miss(Access::kRead, kShared);
      co_await missing;
    }
  }
}

Task SharedLineProgram::write(CoherentCore& core) {
  for (;;) {
    if (!core.hits(Access::kWrite, kShared)) {
      Task missing = core.miss(Access::kWrite, kShared);
      co_await missing;
    }
    ++writes_;
    co_await delay(kernel_, p_.shared_write_pause, "the next write");
  }
}

}  // namespace ub::emu
