// SPDX-License-Identifier: Apache-2.0
//
// The target's record of what requests were answered with, on channels of CTP that may lose packets (UB Base
// Specification Rev 2.0, 7.3.1.1; 6.3 there leaves the number to us). No request is executed twice, but a READ, which
// changes nothing. The initiator sends no request 64 or more TASSNs ahead of its oldest unanswered one, so what may
// still be repeated is always on record.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

// Is this request, which came by a channel with Repeats, to be executed now? If not, it has been dealt with:
//  * its result is on record, and it says Retry: it is answered with that once more;
//  * its result is on record, and it does not: the network doubled it, so it is dropped (kCtpRxDuplicate);
//  * it is older than the record: it is dropped, because it may have been executed (kCtpRxOld);
//  * more queues of the peer than set-up allows have sent requests: it is dropped (kCtpRxNoRecord).
bool is_to_be_executed(CoreState& s, uint32_t channel, const wire::Btah& request);

// A request of a channel with Repeats is answered. One that was not executed, and has to come again, leaves no result.
void keep_result(CoreState& s, uint32_t channel, const wire::Btah& request, const KeptResult& result);

}  // namespace ub::ta
