// SPDX-License-Identifier: Apache-2.0
//
// READs that are being served, and answers that wait on a channel. A READ job lives from the delivery of the request
// until its last response packet is acknowledged. Other answers need no job: the descriptor in the queue holds all of
// them.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

// Is there room for every answer that the execution of one message may need?
bool room_for_answer(const CoreState& s);

// Queues a TAACK, an error or an RNR for this request. Successes of consecutive TASSNs share one TAACK.
void answer(CoreState& s, uint32_t channel, const wire::Btah& request, wire::TaOpcode opcode, uint8_t rspst,
            uint8_t rspinfo);
void answer_atomic(CoreState& s, uint32_t channel, const wire::Btah& request, uint128 old, uint8_t bytes);
// Starts a job for a READ and queues its response; 0: the channel has its share of jobs.
uint32_t start_read_job(CoreState& s, uint32_t channel, const ReadJob& job);
// The last response packet of this message was acknowledged: frees the job.
void finish_read_job(CoreState& s, const tp::TxMessage& message);
// The job of a message, or nullptr if its bytes are gone.
ReadJob* job_of(CoreState& s, const tp::TxMessage& message);

// The segment was unregistered: aborts the jobs that read it.
void abort_jobs_of_segment(CoreState& s, uint32_t segment);
void drop_jobs_of_channel(CoreState& s, uint32_t channel);
// Packets of the response that were not acknowledged become fake packets, and an error answer follows.
void abort_job(CoreState& s, uint32_t job);

// The opcode of the answer to a request.
wire::TaOpcode answer_opcode(wire::TaOpcode request);

}  // namespace ub::ta
