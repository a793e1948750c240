// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/queued_atomics.h"

#include "lib/urma/log.h"
#include "lib/urma/objects/objects.h"

namespace ub::aperture {

bool QueuedAtomics::prepare(std::string* why) {
  if (below_.carries_atomics() || queue_ != nullptr) return true;
  const auto* segment = urma::live<urma::Segment>(seg_);
  *why = "the segment is not imported any more";
  if (segment != nullptr) queue_ = QueuePath::make(seg_, segment->uasid, why);
  return queue_ != nullptr;
}

urma_cr_status_t QueuedAtomics::atomic(const RemoteAtomic& request, uint64_t* old) {
  if (below_.carries_atomics()) return below_.atomic(request, old);
  if (const urma_cr_status_t status = below_.settle(); status != URMA_CR_SUCCESS) return status;
  std::string why;
  if (!prepare(&why)) {
    URMA_LOG_ERROR("softub_atomic: %s", why.c_str());
    return URMA_CR_LOC_OPERATION_ERR;
  }
  return queue_->atomic(request, old);
}

}  // namespace ub::aperture
