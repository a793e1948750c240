// SPDX-License-Identifier: Apache-2.0
// receive_queue.h - posting to a JFR, by itself or through a jetty that shares it, and its state.
#pragma once

#include "lib/urma/objects/objects.h"

namespace ub::urma {

urma_status_t post_receives(Jfr& jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr);

// A state of urma_jfr_state_t (jfr.cc).
Status change_state(Jfr& jfr, QueueState state);

}  // namespace ub::urma
