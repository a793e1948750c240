// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/private_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "lib/ipc/fd.h"

namespace ub::urma {

std::shared_ptr<std::byte> private_memory(size_t bytes) try {
  const uint32_t process = ipc::fork_generation();
  auto unmap = [bytes, process](std::byte* at) {
    if (process == ipc::fork_generation()) munmap(at, bytes);
  };
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_DONTFORK);
  return {static_cast<std::byte*>(at), unmap};  // a constructor that throws unmaps
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace ub::urma
