// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane_port.h"

#include <algorithm>
#include <utility>

#include "lib/ipc/barrier.h"

namespace ub {

using ipc::LaneLayout;

// ---- lanes -----------------------------------------------------------------------------------------------------

void LanePort::adopt_pending(Instant now, const AddLink& add) {
  std::lock_guard lock(control_mutex_);
  pending_.store(false, std::memory_order_release);
  for (const uint32_t index : changed_) {
    Slot& slot = slots_[index];
    slot.changed = false;
    if (!slot.lane || (std::exchange(slot.fresh, false) && !adopt(slot, add))) continue;
    if (slot.rings != 0) hear(index, now);
    if (std::exchange(slot.gone, false)) end(*slot.lane);
  }
  changed_.clear();
  // Who was rung while we sleep goes on sleeping after one look, and must be rung again.
  if (was_rung_ && asleep_) ipc::heavy_barrier();
}

// False: the table of links is full, and the program sees a hang-up.
bool LanePort::adopt(Slot& slot, const AddLink& add) {
  Lane& lane = *slot.lane;
  lane.link = add({.mtu = LaneLayout::kLargeData});
  if (lane.link == 0) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    vacate(slot);
    return false;
  }
  if (by_link_.size() <= lane.link) by_link_.resize(lane.link + 1);
  by_link_[lane.link] = &lane;
  dead_.reserve(++count_);
  watch(lane);
  ++counters_.opened;
  return true;
}

// The program has taken the flag off and rung.
void LanePort::hear(uint32_t index, Instant now) {
  Slot& slot = slots_[index];
  Lane& lane = *slot.lane;
  const bool is_useful = lane.has_next() || lane.taken() != lane.taken_by_ring;
  lane.taken_by_ring = lane.taken();
  const uint32_t idle = std::exchange(slot.rings, 0) - (is_useful ? 1 : 0);
  if (idle != 0) {
    counters_.idle_doorbells += idle;
    ringing_.charge(now, kIdleRing * idle);
    if (!ringing_.has_any(now) && !slot.unheard && listen(index, false)) {
      slot.unheard = true;
      ++counters_.unheard;
      listens_again_at_.store(ringing_.ready_at().ns, std::memory_order_relaxed);
    }
  }
  if (!lane.watched) watch(lane);
  lane.tell(asleep_);
  was_rung_ = true;
}

void LanePort::watch(Lane& lane) {
  watched_.push_back(&lane);
  lane.watched = true;
  lane.taken_by_then = lane.taken() - 1;  // it is not idle yet
}

void LanePort::take_dead_lanes(std::vector<uint32_t>* links) {
  links->insert(links->end(), dead_.begin(), dead_.end());
  dead_.clear();
}

void LanePort::drop_lane(uint32_t link) {
  Lane* lane = lane_at(link);
  if (lane == nullptr) return;
  by_link_[link] = nullptr;
  std::erase(watched_, lane);
  std::erase(received_, lane);
  --count_;
  ++counters_.closed;
  std::lock_guard lock(control_mutex_);
  vacate(slots_[lane->slot]);
}

// Nothing of a lane is left for the next one in its slot.
void LanePort::vacate(Slot& slot) {
  ++slot.generation;
  slot.socket.reset();
  slot.gone = slot.unheard = false;
  slot.rings = 0;
  slot.lane.reset();
}

// The owner drops it at its next look for changes.
void LanePort::end(Lane& lane) {
  if (!std::exchange(lane.dead, true)) dead_.push_back(lane.link);
}

// The same, and counts the cause.
void LanePort::give_up(Lane& lane, uint64_t& cause) {
  if (lane.dead) return;
  end(lane);
  ++cause;
  pending_.store(true, std::memory_order_release);
}

LanePortCounters LanePort::counters() const {
  LanePortCounters all = counters_;
  all.refused = refused_.load(std::memory_order_relaxed);
  all.refused_program = refused_program_.load(std::memory_order_relaxed);
  all.doorbells = doorbells_.load(std::memory_order_relaxed);
  return all;
}

// ---- receive ---------------------------------------------------------------------------------------------------

// True: a frame was taken.
inline bool LanePort::take(Lane& lane, Ring& ring, RxFrame* out) {
  const uint64_t word = ring.word();
  if (!Ring::is_next(word, ring.taken)) [[likely]]
    return false;
  const auto frame = static_cast<uint32_t>(word >> 16 & 0xffff);
  const auto headers = static_cast<uint32_t>(word >> 32 & 0xffff);
  if (headers > LaneLayout::kMaxHeaders || frame < headers || frame - headers > ring.data || word >> 48 != 0)
      [[unlikely]] {
    give_up(lane, counters_.broken_word);
    return false;
  }
  // The answer's lines are the program's still: they come here while others of the burst are served.
  std::byte* reply = ring.reply(ring.taken);
  __builtin_prefetch(reply, 1);
  __builtin_prefetch(reply + LaneLayout::kLine, 1);
  *out = {ring.request(ring.taken) + LaneLayout::kLine - headers, frame, lane.link};
  ++ring.taken;
  return true;
}

size_t LanePort::rx_burst(RxFrame* out, size_t room) {
  if (++rounds_ % kIdleRounds == 0 && count_ > kFewLanes) [[unlikely]]
    leave_idle_lanes();
  was_rung_ = false;
  size_t count = 0;
  const size_t lanes = watched_.size();
  if (++turn_ >= lanes) turn_ = 0;
  for (size_t i = 0, at = turn_; i < lanes && count < room; ++i, at = at + 1 < lanes ? at + 1 : 0) {
    Lane& lane = *watched_[at];
    if (lane.dead) [[unlikely]]
      continue;
    // A program has requests in one of the rings only. More than a round is left for the next one.
    Ring& ring = lane.small.has_next() ? lane.small : lane.large;
    const size_t before = count;
    const size_t limit = std::min<size_t>(room, count + ring.slots);
    while (count < limit && take(lane, ring, out + count)) ++count;
    if (count == before) continue;
    lane.busy = &ring;
    received_.push_back(&lane);
  }
  counters_.requests += count;
  served_ |= count != 0;
  return count;
}

void LanePort::rx_release() {
  for (Lane* lane : received_) {
    if (lane->busy->answered != lane->busy->taken) [[unlikely]]
      give_up(*lane, counters_.broken_request);
    lane->busy = nullptr;
  }
  received_.clear();
}

// Lanes from which nothing came since the last call. One barrier is for all of them.
void LanePort::leave_idle_lanes() {
  const auto is_idle = [](const Lane* lane) { return lane->taken() == lane->taken_by_then; };
  bool any = false;
  for (Lane* lane : watched_) {
    if (!is_idle(lane)) continue;
    lane->tell(true);
    any = true;
  }
  if (any) {
    ipc::heavy_barrier();
    std::erase_if(watched_, [&](Lane* lane) {
      if (!is_idle(lane)) return false;
      lane->watched = lane->has_next();
      if (lane->watched) lane->tell(asleep_);
      return !lane->watched;
    });
  }
  for (Lane* lane : watched_) lane->taken_by_then = lane->taken();
}

// ---- send ------------------------------------------------------------------------------------------------------

std::byte* LanePort::tx_begin(uint32_t link, size_t bytes) {
  const Lane* lane = lane_at(link);
  if (lane == nullptr || lane->busy == nullptr) [[unlikely]]
    return nullptr;
  const Ring& ring = *lane->busy;
  if (ring.answered == ring.taken || bytes > LaneLayout::kAnswerHeaders + ring.data) [[unlikely]]
    return nullptr;
  return ring.reply(ring.answered) + LaneLayout::kLine - LaneLayout::kAnswerHeaders;
}

void LanePort::tx_commit(uint32_t link, std::byte*, size_t bytes) {
  Lane* lane = lane_at(link);
  if (lane == nullptr || lane->busy == nullptr) [[unlikely]]
    return;
  Ring& ring = *lane->busy;
  const uint64_t word = LaneLayout::word(static_cast<uint16_t>(ring.answered), bytes, LaneLayout::kAnswerHeaders);
  reinterpret_cast<std::atomic<uint64_t>*>(ring.reply(ring.answered))->store(word, std::memory_order_release);
  ++ring.answered;
  ++counters_.answers;
}

// ---- sleep -----------------------------------------------------------------------------------------------------

// Those that are left alone have been told already.
void LanePort::set_asleep(bool yes) {
  asleep_ = yes;
  for (Lane* lane : watched_) lane->tell(yes);
}

bool LanePort::prepare_sleep() {
  set_asleep(true);
  if (!watched_.empty()) ipc::heavy_barrier();
  if (!anything_waits()) return false;
  set_asleep(false);
  return true;
}

bool LanePort::anything_waits() const {
  if (has_pending()) return true;
  return std::any_of(watched_.begin(), watched_.end(),
                     [](const Lane* lane) { return !lane->dead && lane->has_next(); });
}

void LanePort::finish_sleep() {
  if (asleep_) set_asleep(false);
}

}  // namespace ub
