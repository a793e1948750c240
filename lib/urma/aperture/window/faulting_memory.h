// SPDX-License-Identifier: Apache-2.0
//
// Anonymous memory whose faults the program itself serves: of pages that are missing, and of writes to pages that are
// write-protected. The kernel reports each as SIGBUS to the thread that made it (userfaultfd in user mode), and a
// system call that meets such a page fails with EFAULT. The child of a fork gets nothing of the memory.
//
// Pages are counted from the start of the memory. Thread: create() once; then any. Each page is changed by one thread
// at a time, which its callers see to. All but create() is safe in a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/ipc/fd.h"
#include "lib/urma/aperture/window/window_error.h"

namespace ub::aperture {

class FaultingMemory {
 public:
  FaultingMemory() = default;
  ~FaultingMemory();
  FaultingMemory(const FaultingMemory&) = delete;
  FaultingMemory& operator=(const FaultingMemory&) = delete;

  // All pages are missing. False and `*error`: out of memory or addresses (URMA_ENOMEM), or userfaultfd is refused or
  // cannot do what is needed (URMA_ENOPERM).
  bool create(uint64_t pages, WindowError* error);

  std::byte* data() const { return data_; }
  std::byte* at(uint64_t page) const;
  // Is this the child of a fork, where the memory does not exist?
  bool is_inherited() const { return process_ != ipc::fork_generation(); }

  // Missing pages become present with these bytes, writable or write-protected. How many did, from the first on.
  uint64_t fill(uint64_t first, uint64_t count, const std::byte* from, bool writable);
  // Pages that are present become write-protected or writable. When protect() returns, no write is under way. False:
  // the kernel refuses, as after the program has unmapped the pages.
  bool protect(uint64_t first, uint64_t count) { return set_protection(first, count, true); }
  bool unprotect(uint64_t first, uint64_t count) { return set_protection(first, count, false); }
  // The pages are missing again, and their memory is given back. False as above.
  bool drop(uint64_t first, uint64_t count);

 private:
  bool open_faults(WindowError* error);
  bool watch(WindowError* error);
  bool set_protection(uint64_t first, uint64_t count, bool protect);

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  uint32_t process_ = 0;
  ipc::Fd faults_;
};

}  // namespace ub::aperture
