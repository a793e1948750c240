// SPDX-License-Identifier: Apache-2.0
//
// The started requests of a send queue that have refused segments: a doubly linked ring in the order of their age. Only
// the initiator uses it.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// The age of a request: its distance from the oldest started one. The ring holds only refused requests, so the others
// cost no time, however many they are.
inline uint32_t age_of(const SendQueue& q, uint32_t index) { return (index - q.started_head) & q.work_mask; }

inline void link_refused(SendQueue& q, uint32_t number) {
  const auto index = static_cast<uint16_t>(number & q.work_mask);
  WrState& wr = q.work[index];
  if (q.retries++ == 0) {
    q.oldest_refused = wr.older_refused = wr.newer_refused = index;
    return;
  }
  uint16_t older = q.work[q.oldest_refused].older_refused;  // the search begins at the newest, which mostly fits
  const bool oldest = age_of(q, index) < age_of(q, q.oldest_refused);
  while (!oldest && age_of(q, older) > age_of(q, index)) older = q.work[older].older_refused;
  wr.older_refused = older;
  wr.newer_refused = q.work[older].newer_refused;
  q.work[wr.newer_refused].older_refused = q.work[older].newer_refused = index;
  if (oldest) q.oldest_refused = index;
}

inline void unlink_refused(SendQueue& q, const WrState& wr) {
  if (q.oldest_refused == (&wr - q.work)) q.oldest_refused = wr.newer_refused;
  q.work[wr.older_refused].newer_refused = wr.newer_refused;
  q.work[wr.newer_refused].older_refused = wr.older_refused;
  --q.retries;
}

}  // namespace ub::ta
