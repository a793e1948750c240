// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/ring.h"

#include <sys/mman.h>

namespace ub::urma {

bool RingMemory::allocate(uint32_t slot_count) {
  size_t bytes = sizeof(QueueIndices) + static_cast<size_t>(slot_count) * kSlotBytes;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  madvise(base, bytes, MADV_DONTFORK);
  base_ = base;
  bytes_ = bytes;
  return true;
}

void RingMemory::release() {
  if (base_ != nullptr) munmap(base_, bytes_);
  base_ = nullptr;
}

}  // namespace ub::urma
