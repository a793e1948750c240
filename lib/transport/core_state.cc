// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/core_state.h"

#include <limits>

#include "lib/transport/resource/receives.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/scheduler.h"

namespace ub {

void lay_out_ub(CoreState& s, Arena& arena) {
  const CoreConfig& c = s.config;
  s.jettys.init(arena, c.max_queues);
  s.groups.init(arena, c.max_groups);
  s.queues.init(arena, c.max_queues);
  s.targets.init(arena, c.max_targets);
  s.peers.init(arena, c.max_peers);
  s.mapped.init(arena, c.max_mapped);
  tp::lay_out_channels(s, arena);
  s.jobs.init(arena, c.read_jobs);
  s.parked.init(arena, c.slow_memory ? kParkedMessages : kParkedMessagesAtOnce);
  s.contexts.init(arena, kSequenceContexts);
  s.initiator_contexts.init(arena, kSequenceContexts);
  s.repeats.init(arena, c.compact_repeats);
  s.held_datagrams.lay_out(s.held.numbers, arena, c.slow_memory ? kHeldDatagrams : 0);
  s.arriving.init(arena, kArrivingDatagrams);
  s.held_datagrams_of = arena.take<uint16_t>(size_t{std::numeric_limits<Owner>::max()} + 1);
  s.arriving_of = arena.take<uint16_t>(size_t{std::numeric_limits<Owner>::max()} + 1);
  s.receives_at_once += c.max_channels + c.max_queues + kArrivingDatagrams;
  s.queue_timers = s.timer_numbers.take(c.max_queues + 1);
  s.queue_waiters = add_waiters<&SendQueue::waiter>(
      s, s.queues, c.max_queues + 1, nullptr,
      [](CoreState& state, void*, uint32_t queue) {
        if (state.queues[queue].completes_early) ta::report_all_ended(state, queue);
        ta::retire_requests(state, queue);
        ta::schedule_queue(state, queue);  // what waits for numbers goes on where the oldest request has retired
      });
}

void lay_out_shared(CoreState& s, Arena& arena) {
  const CoreConfig& c = s.config;
  for (uint32_t block = wire::kFirstIdBlock; c.every_id && block < wire::kIdBlocks; ++block) s.id_blocks.add(block);
  s.links.init(arena, c.max_links);
  s.jfcs.init(arena, c.max_jfc);
  s.moderations = arena.take<JfcModeration>(c.max_jfc + 1);
  s.jfrs.init(arena, c.max_queues);
  s.segments.init(arena, c.max_segments);
  s.receives.init(arena, s.receives_at_once);
  s.jfr_waiters = add_waiters<&Jfr::waiter>(s, s.jfrs, c.max_queues + 1, nullptr,
                                            [](CoreState& state, void*, uint32_t jfr) { flush_receives(state, jfr); });
  s.wake_up = s.timer_numbers.take(1).first;
  s.jfc_timers = s.timer_numbers.take(c.max_jfc + 1);
  s.lay_out_ranges(arena);
  s.ids = arena.take<IdSlot>(kIdSpace);
  s.token_ids = arena.take<TokenId>(kIdSpace);
  s.peer_buckets = arena.take<uint32_t>(kPeerBuckets);
}

void push_event(CoreState& s, const Event& event) {
  if (s.event_tail - s.event_head == kEventRing) {
    s.count(Counter::kEventsLost);
    return;
  }
  s.events[s.event_tail++ % kEventRing] = event;
}

void push_jfc_event(CoreState& s, uint32_t jfc, bool completion) {
  Jfc& j = s.jfcs[jfc];
  if (completion) {
    j.completion_event = true;
  } else {
    j.error_event = true;
  }
  if (j.on_event_list) return;
  s.event_jfcs.push_front<&Jfc::on_event_list>(s.jfcs, jfc);
}

size_t drain_events(CoreState& s, Event* out, size_t room) {
  size_t n = 0;
  while (!s.event_jfcs.empty() && n + 2 <= room) {
    const uint32_t jfc = s.event_jfcs.pop_front<&Jfc::on_event_list>(s.jfcs);
    Jfc& j = s.jfcs[jfc];
    if (!j.in_use) {  // destroyed meanwhile
      s.jfcs.free(jfc);
      continue;
    }
    if (j.completion_event) out[n++] = {EventKind::kCompletion, j.cookie, j.owner};
    if (j.error_event) out[n++] = {EventKind::kJfcError, j.cookie, j.owner};
    j.completion_event = j.error_event = false;
  }
  while (s.event_head != s.event_tail && n < room) out[n++] = s.events[s.event_head++ % kEventRing];
  return n;
}

}  // namespace ub
