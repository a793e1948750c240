// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the messages of a channel means something for the transactions that they are part of, and the other
// way round: packets acknowledged, and requests and READs that end before all of their packets were sent.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/tp/acknowledgement.h"

namespace ub::ta {

// A request gets on; a READ that was served is done with.
void on_acknowledged(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged);

// If a message of this request, or the response of this READ, is half sent, it ends here with a fake packet.
void stop_request(CoreState& s, uint32_t channel, uint32_t queue, uint32_t number);
void stop_response(CoreState& s, uint32_t channel, uint32_t job);

}  // namespace ub::ta
