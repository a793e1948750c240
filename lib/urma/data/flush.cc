// SPDX-License-Identifier: Apache-2.0
// Flushing a queue in ERROR or SUSPENDED: requests that were never started come back here, after the marker was polled
// (URMA API 0.9, 6.5).
#include <algorithm>

#include "lib/urma/data/send_queue.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/jfc.h"

namespace ub::urma {

int flush(SendQueue& sq, int cr_cnt, urma_cr_t* cr) {
  if (cr == nullptr) return -URMA_EINVAL;
  if (cr_cnt < 1 || static_cast<uint32_t>(cr_cnt) > sq.depth) {
    URMA_LOG_ERROR("flush: room for %d records is not in 1 .. %u, the depth of the queue", cr_cnt, sq.depth);
    return -URMA_EINVAL;
  }
  if (!sq.marker_polled.load(std::memory_order_acquire)) return 0;
  constexpr uint32_t kBatch = 32;
  Cqe batch[kBatch];
  int taken = 0;
  while (taken < cr_cnt) {
    uint32_t wanted = std::min<uint32_t>(kBatch, static_cast<uint32_t>(cr_cnt - taken));
    uint32_t got = backend().take_unhandled(sq.id, batch, wanted);
    for (uint32_t i = 0; i < got; ++i) convert(batch[i], cr[taken++]);
    if (got < wanted) break;
  }
  return taken;
}

}  // namespace ub::urma
