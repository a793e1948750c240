// SPDX-License-Identifier: Apache-2.0
//
// READs being served, and the answers that wait on a channel. A job lives from the request's delivery until its
// last response packet is acknowledged. An answer is small enough to be its own descriptor in the queue.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

// Does every answer that may follow from executing one message have a place?
bool room_for_answer(const CoreState& s);

// Queues TAACK, error or RNR for this request. Successes of consecutive TASSNs share one TAACK.
void answer(CoreState& s, uint32_t channel, const wire::Btah& request, wire::TaOpcode opcode, uint8_t rspst,
            uint8_t rspinfo);
void answer_atomic(CoreState& s, uint32_t channel, const wire::Btah& request, uint128 old, uint8_t bytes);
// Queues the response of a READ of `memory`; 0: no job is free.
uint32_t start_read_job(CoreState& s, uint32_t channel, const ReadJob& job);
// The last response packet of this message was acknowledged.
void finish_read_job(CoreState& s, const tp::TxMessage& message);
// The job behind a message, or nullptr when its bytes are gone.
ReadJob* job_of(CoreState& s, const tp::TxMessage& message);

// The segment is gone: what was not sent of its READs becomes an error answer.
void abort_jobs_of_segment(CoreState& s, uint32_t segment);
void drop_jobs_of_channel(CoreState& s, uint32_t channel);
void abort_job(CoreState& s, uint32_t job);

// The opcode that answers a request.
wire::TaOpcode answer_opcode(wire::TaOpcode request);

}  // namespace ub::ta
