// SPDX-License-Identifier: Apache-2.0
//
// Finds the instance of a host that has an id (docs/identity.md): FIND goes to the UDP port of the id (wire/id_port.h),
// and FOUND answers it. FIND is repeated when the caller of find() calls again, so no timer is needed here.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.h"
#include "lib/transport/core_types.h"
#include "lib/transport/wire/control_record.h"

namespace ub {
struct CoreState;
}

namespace ub::setup {

struct Arrival;

// A question that was asked, or its answer until the caller of find() has it.
struct Finding {
  FindConfig what;  // id 0: the record is free
  Status state;     // kBusy: no answer yet
  uint32_t uasid;   // of the instance that answered
  uint32_t attempt;
  uint32_t tries;
  Instant next_at;    // when FIND may be sent again
  Instant looked_at;  // the last call of find() for it
  bool is(const FindConfig& other) const {
    return what.id == other.id && what.eid == other.eid && what.local_eid == other.local_eid &&
           what.token_id == other.token_id && what.path.link == other.path.link;
  }
};
// A question that find() was not called for during this time is forgotten, because its answer may be out of date.
constexpr Duration kAbandonedAfter = seconds(1);
// When all places are taken, a new question replaces the one that find() was called for longest ago. Questions without
// an answer are replaced before those with one.
using Findings = std::array<Finding, 256>;

bool has_id(const CoreState& s, uint32_t id, bool token_id);
// See Core::find.
Status find(CoreState& s, const FindConfig& what, uint32_t* uasid);

void on_find(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_found(CoreState& s, const Arrival& from, const wire::ControlRecord& record);

}  // namespace ub::setup
