// SPDX-License-Identifier: Apache-2.0
// jfc.h - the consumer's end of a completion queue, for the files that take records out of it.
#pragma once

#include "lib/urma/objects/objects.h"

namespace ub::urma {

// Fills all 80 bytes of a record, padding included: callers bring uninitialised arrays.
void convert(const Cqe& cqe, urma_cr_t& cr);

// Stores the consumer index. True: the queue was full, so tell_read() is due, without the queue's lock.
//
// A Core that finds a queue full parks the completion until it is told that records were read. It may count
// records that are still on their way, and may have seen an old index while we stored a new one. So, besides
// the certain sign above, it is told whenever the queue is found empty after a good part of its depth was
// read since the last time (tell_if_drained): a Core that has parked produces little more, and the queue runs
// empty.
[[nodiscard]] bool consume(Jfc& jfc, uint32_t produced, uint32_t consumed);
void tell_read(Jfc& jfc);
void tell_if_drained(Jfc& jfc);

// Removes the records of a queue that goes away (Cqe::user_data = its public address), as far as nobody can
// be reading them: not from a lock_free JFC, whose reader takes no lock.
void purge(Jfc& jfc, const void* user_data);

// A queue that completes into this JFC goes away: its records are purged, and it is no user any more.
void leave_jfc(urma_jfc_t* jfc, const void* user_data);

}  // namespace ub::urma
