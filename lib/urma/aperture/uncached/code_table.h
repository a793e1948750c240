// SPDX-License-Identifier: Apache-2.0
//
// Executable copies of rewritten instructions, each followed by `ret`. An instruction is written once and never
// changed, so threads share it, nobody has to be kept away from it, and no CPU executes code that changes under it.
//
// The memory is mapped twice, once for writing and once for executing, because many systems allow no memory that is
// both. One whose policy allows no new code at all (SELinux without `execmem` for the file, a seccomp filter) refuses
// here, and open() says so. Neither mapping is inherited by a child process, which must not write our code.
//
// Thread: open() from any thread outside handlers; find_or_add() from any thread, also in a signal handler: it takes no
// lock and waits for nobody. A handler that is left half-way through costs one place.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "lib/ipc/memfd.h"
#include "lib/urma/aperture/uncached/rewrite.h"

namespace ub::aperture {

class CodeTable {
 public:
  static constexpr uint32_t kPlaces = 65536;  // power of two; instructions of all windows, not of all their uses

  // The table of this process, which is never given back. Null and `*error`: no memory that may be executed. Throws
  // std::bad_alloc.
  static CodeTable* open(std::string* error);

  // Code that executes the instruction and returns. Null: all places are taken.
  const void* find_or_add(const Rewritten&);

 private:
  static constexpr uint32_t kBytesOfPlace = 16;
  enum State : uint8_t { kFree, kBeingWritten, kReady };

  bool map(std::string* error);

  ipc::Mapping writable_;
  const std::byte* executable_ = nullptr;
  std::atomic<uint8_t> states_[kPlaces]{};
};

}  // namespace ub::aperture
