// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/woken.h"

#include <cstdio>

#include "lib/transport/ta/queue_front.h"

namespace ub::sim {

namespace {

// Has it passed as many elements as it may while the clock stands still? Its timer lets it go on.
bool has_passed_enough(const SendQueue& q, Instant now) {
  return q.passed_at == now && q.passed_slots >= ta::kPassedSlots;
}

// Has it no turn to come, and has seen all that its application posted? Then only what happens may let it go on. A
// hostile application changes what it has posted.
bool is_idle(const SimCore& core, const SendQueue& q, Instant now) {
  if (!q.in_use || q.unreliable || q.owner >= kFirstHostileOwner || has_passed_enough(q, now)) return false;
  return q.waits_for == 0 && core.slots_posted(core.state().jettys[q.jetty].id) == q.posted;
}

}  // namespace

std::string unwoken_queue(SimCore& core, Instant now) {
  const CoreState& s = core.state();
  for (uint32_t i = 1; i <= s.queues.high_water(); ++i) {
    const SendQueue& q = s.queues[i];
    if (!is_idle(core, q, now)) continue;
    const uint32_t started = q.started_tail, head = q.started_head, id = s.jettys[q.jetty].id;
    core.on_posted(now, id);
    if (q.waits_for == 0 && q.started_tail == started && q.started_head == head) continue;
    char text[96];
    std::snprintf(text, sizeof text, "send queue %u of jetty %u could go on, and nobody woke it\n", i, id);
    return text;
  }
  return {};
}

}  // namespace ub::sim
