// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/held_back.h"

#include <cstdio>

#include "lib/transport/ta/request_state.h"

namespace ub::sim {

namespace {

// Up, with something to send, and on no list of those that may send it now: only the peer lets it go on. What is left
// of a request to be copied waits for memory.
bool channel_waits(const tp::Channel& ch) {
  const bool work = ch.mid_message || !ch.answers.empty() || !ch.queues.empty();
  return ch.is_up() && work && !ch.on_active_list && ch.held.empty();
}

bool request_left(const WrState& wr) {
  return !wr.done && (wr.refused != 0 || (wr.status == CrStatus::kSuccess && wr.cut != wr.segments));
}

// On no channel's list, in a state in which requests are sent.
bool queue_may_say_so(const SendQueue& q) {
  return q.in_use && !q.unreliable && ta::sends_admitted(q.state) && q.waits_for == 0;
}

// It could go on, and an answer is awaited, which a request that was refused and waits for its time does not do.
bool queue_waits(const SendQueue& q) {
  if (!queue_may_say_so(q)) return false;
  bool awaits = false, left = q.state == QueueState::kReady && q.next_slot != q.produced;
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) {
    const WrState& wr = q.work[n & q.work_mask];
    awaits |= !wr.done && ta::in_flight(wr);
    left |= request_left(wr);
  }
  return awaits && left;
}

std::string fault(const char* what, uint32_t which, const char* how) {
  char text[160];
  std::snprintf(text, sizeof text, "%s %u %s\n", what, which, how);
  return text;
}

}  // namespace

std::string held_back_fault(const CoreState& s) {
  std::string faults;
  uint32_t said = 0;
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    const tp::Channel& ch = s.channels[i];
    said += ch.held_back;
    if (channel_waits(ch) && !ch.held_back) faults += fault("channel", i, "waits for its peer and does not say so");
    if (ch.held_back && ch.state == tp::ChannelState::kDead)
      faults += fault("channel", i, "is dead and says that it waits");
  }
  for (uint32_t i = 1; i <= s.queues.high_water(); ++i) {
    const SendQueue& q = s.queues[i];
    said += q.held_back;
    if (queue_waits(q) && !q.held_back) faults += fault("send queue", i, "waits for answers and does not say so");
    if (q.held_back && !queue_may_say_so(q))
      faults += fault("send queue", i, "says that it waits for answers, and does not");
  }
  if (said != s.held_back) faults += fault("of all", s.held_back, "are held back by the count, not by what they say");
  return faults;
}

}  // namespace ub::sim
