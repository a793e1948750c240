// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/state.h"

#include <algorithm>
#include <bit>

#include "lib/transport/roce/completion.h"

namespace ub::roce {

void ReadSlotPool::init(Arena& arena, uint32_t max_qps) {
  // There is a block of each size for each queue pair, because blocks of one size are never used for another.
  slots_ = arena.take<ReadSlot>(size_t{max_qps} * ((2u << (kSizes - 1)) - 1) + 1);
}

uint32_t ReadSlotPool::take(uint32_t slots) {
  UB_DCHECK(slots >= 1 && slots <= kMaxReadSlots);
  const auto size = static_cast<uint32_t>(std::bit_width(slots - 1));
  uint32_t block = free_[size];
  if (block != 0) {
    free_[size] = slots_[block].rkey;
  } else {
    block = used_;
    used_ += 1u << size;
  }
  for (uint32_t i = 0; i < 1u << size; ++i) slots_[block + i] = {};
  return block;
}

void ReadSlotPool::give_back(uint32_t block, uint32_t slots) {
  const auto size = static_cast<uint32_t>(std::bit_width(slots - 1));
  slots_[block].rkey = free_[size];
  free_[size] = block;
}

uint32_t ReadSlotPool::lent() const {
  uint32_t free = 0;
  for (uint32_t size = 0; size < kSizes; ++size)
    for (uint32_t block = free_[size]; block != 0; block = slots_[block].rkey) free += 1u << size;
  return used_ - 1 - free;
}

void lay_out(CoreState& s, State& r, Arena& arena) {
  const RoceConfig& c = s.config.roce;
  if (c.max_qps == 0) return;
  r.qps.init(arena, c.max_qps);
  r.send_times.init(arena, s.config.listen_to_network ? c.max_qps : 0, std::bit_ceil<uint32_t>(c.window_packets));
  r.address_handles.init(arena, c.max_address_handles);
  r.listeners.init(arena, c.max_listeners);
  r.connections.init(arena, c.max_connections);
  r.read_slots.init(arena, c.max_qps);
  r.kept.init(arena, s.config.kept_packets);
  r.kept_bytes = arena.take<std::byte>(size_t{s.config.kept_packets + 1} * s.config.max_frame_bytes);
  r.arriving.init(arena, c.max_qps);
  r.mads = arena.take<OutgoingMad>(kMadRing);
  r.event_room = std::bit_ceil(3 * std::max(c.max_connections, 64u));  // a power of two, because head and tail wrap
  r.connection_events = arena.take<ConnectionEvent>(r.event_room);
  r.requesters = arena.take<uint32_t>(kRequesterBuckets);
  s.receives_at_once += c.max_qps;
  r.qp_timers = s.timer_numbers.take(c.max_qps + 1);
  r.connection_timers = s.timer_numbers.take(c.max_connections + 1);
  r.held_homes = s.held.numbers.take(c.max_qps + 1);
  r.copy_prefix = s.copy_prefixes.take(1).first;
  r.waiters = add_waiters<&Qp::waiter>(s, r.qps, c.max_qps + 1, &r, [](CoreState& core, void* engine, uint32_t qp) {
    retire_requests(core, *static_cast<State*>(engine), qp);
  });
}

uint32_t find_qp(const CoreState& s, uint32_t qpn) {
  return qpn < kIdSpace && s.ids[qpn].kind == ObjectKind::kQp ? s.ids[qpn].record : 0;
}

void activate(State& r, uint32_t index) {
  if (r.qps[index].on_active_list) return;
  r.active.push_back<&Qp::on_active_list>(r.qps, index);
}

}  // namespace ub::roce
