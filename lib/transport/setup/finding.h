// SPDX-License-Identifier: Apache-2.0
//
// Which instance of a host has an id? Asked by FIND at the UDP port of the id (wire/id_port.h) and answered by FOUND.
// Questions are repeated when their askers come again, so nothing here needs a timer. docs/identity.md.
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

// A question under way, or its answer until somebody collects it.
struct Finding {
  FindConfig what;  // id 0: the record is free
  Status state;     // kBusy: no answer yet
  uint32_t uasid;   // of whoever answered
  uint32_t attempt;
  uint32_t tries;
  Instant next_at;    // the next try's
  Instant looked_at;  // by an asker, the last time
  bool is(const FindConfig& other) const {
    return what.id == other.id && what.eid == other.eid && what.local_eid == other.local_eid &&
           what.token_id == other.token_id && what.path.link == other.path.link;
  }
};
// What no asker came for since is nobody's any more: its answer may be old.
constexpr Duration kAbandonedAfter = seconds(1);
// Beyond so many the one that was looked at longest ago gives way, answers last; its askers begin anew.
using Findings = std::array<Finding, 256>;

bool has_id(const CoreState& s, uint32_t id, bool token_id);
// See Core::find.
Status find(CoreState& s, const FindConfig& what, uint32_t* uasid);

void on_find(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_found(CoreState& s, const Arrival& from, const wire::ControlRecord& record);

}  // namespace ub::setup
