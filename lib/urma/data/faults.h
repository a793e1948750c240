// SPDX-License-Identifier: Apache-2.0
//
// The program's part of the faults that somebody asked for (docs/fault-injection.md): posts that are refused, and
// completions that say something else than what happened. What the NIC does of them is Backend::inject().
//
// While there are none, posting and polling pay a load of a line that they read anyway, and a branch.
#pragma once

#include "lib/base/fault/plan.h"
#include "lib/base/work_queue.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"
#include "lib/urma/objects/live.h"

namespace ub::urma {

// The faults that are in force from now on; they count from the beginning. Throws std::bad_alloc, then nothing changes.
void set_faults(const fault::ProgramPlan& plan);
fault::ProgramCounts fault_counts();

inline bool has_faults() { return live_state.faults.load(std::memory_order_relaxed); }

// ---- cold, for who found has_faults() -------------------------------------------------------------------------

// Why a request that could be posted is refused; URMA_SUCCESS: it is not.
urma_status_t refuse_request(WrOp op, uint32_t queue);
urma_status_t refuse_receive(uint32_t jfr);

// So many records are taken by one poll, for each of which `changed` below has a bit.
constexpr uint32_t kRecordsAtOnce = 32;
// Changes the record of a completion. False: it stays as it is.
bool change_record(const Cqe& cqe, uint32_t jfc, urma_cr_t& cr);
// Brings the queues of changed records into the state in which the NIC leaves them for such a status. No lock is held.
void stop_queues(const urma_cr_t* records, uint32_t changed);

}  // namespace ub::urma
