// SPDX-License-Identifier: Apache-2.0
//
// What stays of a recording that is made smaller (Replayer::rerecord).
#pragma once

#include <cstdint>
#include <vector>

namespace ub::record {

struct Selection {
  uint64_t from = 1;         // all calls before that one stay as they are
  std::vector<bool> calls;   // by number: it is made
  std::vector<bool> queues;  // by id of a send queue: what was posted there is posted

  bool takes_call(uint64_t number) const { return number < from || (number < calls.size() && calls[number]); }
  bool takes_queue(uint32_t id) const { return id < queues.size() && queues[id]; }
};

}  // namespace ub::record
