// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/data/ring.h"

#include "lib/urma/objects/live.h"

namespace ub::urma {

bool RingMemory::allocate(uint32_t slot_count) {
  memory_ = backend().memory(sizeof(QueueIndices) + static_cast<size_t>(slot_count) * kSlotBytes);
  return memory_ != nullptr;
}

}  // namespace ub::urma
