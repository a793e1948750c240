// SPDX-License-Identifier: Apache-2.0
//
// A window of a program's address space whose bytes are remote memory, and of which nothing is cached: each load and
// store of the program is one of the remote memory, of its own size, done when the program goes on. No page of it is
// accessible, so each access traps, is carried out (x86_access.h), and the program continues behind the instruction.
// `lock` and xchg are remote atomics. Child processes do not get the window.
//
// The low 12 bits of a byte's address here are those of its address there. So what is aligned here is aligned there.
//
// A system call with an address of the window fails with EFAULT, as the kernel does not ask. x86-64 only. Needs the
// right to execute code made at run time (code_table.h).
//
// Errors. The program's handler is called in the thread that made the access, inside of the signal handler, with
// nothing held: it may do what a signal handler may. It says whether the access is to be made again, or is not handled,
// or leaves by a jump. What is not handled becomes a SIGSEGV for the handler before ours, or for the default, which
// ends the process. The registers are then those before the instruction (x86_access.h tells about string instructions).
// Without a handler an error is written to standard error and not handled.
//
//   cause                            why
//   URMA_CR_UNSUPPORTED_OPCODE_ERR   the instruction is not supported: its text and a sentence are there
//   URMA_CR_LOC_ACCESS_ERR           a write to a read-only window
//   URMA_CR_LOC_OPERATION_ERR        a signal handler accesses a window whose paths its own thread was all using
//   others                           what the path said. URMA_CR_ACK_TIMEOUT_ERR of an atomic: it may have run, and
//                                    making it again may do it twice
//
// Thread: all threads may access the window at a time, up to the number of paths at once, others wait. create() and
// destruction: outside of signal handlers; nobody may access the window when it is destroyed. A signal handler that
// interrupts an access and leaves it by siglongjmp takes a path with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/urma/aperture/fault_router.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/aperture/uncached/access_paths.h"
#include "lib/urma/aperture/uncached/window_memory.h"
#include "lib/urma/aperture/window/window_error.h"

namespace ub::aperture {

struct UncachedOptions {
  uint64_t place = 0;  // of the first byte, counted from the first byte of the segment
  size_t bytes = 0;
  uint64_t remote_address = 0;  // of the first byte of the segment
  bool read_only = false;
};

class CodeTable;

class UncachedWindow final : public Window {
 public:
  // Null and `*error`: not an x86-64 CPU; no bytes, or too many; no path, or one that is not signal-safe; no address
  // space; code made at run time may not be executed; faults cannot be taken.
  static std::unique_ptr<UncachedWindow> create(const UncachedOptions&, std::vector<std::unique_ptr<RemotePath>>,
                                                WindowError* error);
  ~UncachedWindow() override;
  UncachedWindow(const UncachedWindow&) = delete;
  UncachedWindow& operator=(const UncachedWindow&) = delete;

  std::byte* data() const { return start_; }
  size_t bytes() const { return bytes_; }

  Served serve(const Fault&, FailedAccess*) override;

 private:
  UncachedWindow(const UncachedOptions&, std::vector<std::unique_ptr<RemotePath>>, CodeTable&);
  bool map(const UncachedOptions&, WindowError* error);

  AccessPaths paths_;
  CodeTable& code_;
  const uint32_t process_;  // fork_generation() of the one that made it
  std::byte* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::byte* start_ = nullptr;
  const size_t bytes_;
  std::optional<WindowMemory> memory_;  // there once the address is known
};

}  // namespace ub::aperture
