// SPDX-License-Identifier: Apache-2.0
//
// The same functions, compiled in several ways: each of them works on the memory that it is given and returns a number
// that depends on all that it did. A window must give the numbers that ordinary memory gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ub::aperture::test {

constexpr size_t kProgramBytes = 16384;

struct ProgramFunction {
  const char* name;
  uint64_t (*run)(std::byte* memory);  // zeroed, kProgramBytes, aligned to a page
};

struct Program {
  const char* how;  // the compiler and its options
  void (*begin)();  // before each function: random numbers start again
  std::vector<ProgramFunction> functions;
};

}  // namespace ub::aperture::test
