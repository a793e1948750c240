// SPDX-License-Identifier: Apache-2.0
//
// READs that are being served. A READ job lives from the delivery of the request until its last response packet is
// acknowledged (CTP: has left).
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Starts a job for a READ and queues its response; 0: the channel has as many jobs as it may.
uint32_t start_read_job(CoreState& s, uint32_t channel, const ReadJob& job);
// The last response packet of this message was acknowledged, or has left by CTP: frees the job.
void finish_read_job(CoreState& s, const tp::TxMessage& message);
// The bytes of this message, a response, are gone: it becomes an answer that says so, and its job ends.
void refuse_read(CoreState& s, tp::TxMessage& message);
// The job of a message, or nullptr if its bytes are gone.
ReadJob* job_of(CoreState& s, const tp::TxMessage& message);

// The segment was unregistered: aborts the jobs that read it.
void abort_jobs_of_segment(CoreState& s, uint32_t segment);
void drop_jobs_of_channel(CoreState& s, uint32_t channel);
// Packets of the response that were not acknowledged become fake packets, and an error answer follows.
void abort_job(CoreState& s, uint32_t job);

}  // namespace ub::ta
