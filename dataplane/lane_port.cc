// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane_port.h"

#include <algorithm>
#include <utility>

#include "lib/ipc/barrier.h"

namespace ub {

using ipc::LaneLayout;

// ---- lanes -----------------------------------------------------------------------------------------------------

void LanePort::adopt_pending(const AddLink& add) {
  std::lock_guard lock(control_mutex_);
  pending_.store(false, std::memory_order_release);
  for (Slot& slot : slots_) {
    if (!slot.lane) continue;
    Lane& lane = *slot.lane;
    if (std::exchange(slot.fresh, false)) {
      lane.link = add({.mtu = LaneLayout::kLargeData});
      if (lane.link == 0) {  // the table is full: the program sees a hang-up
        refused_.fetch_add(1, std::memory_order_relaxed);
        slot.lane.reset();
        slot.socket.reset();
        ++slot.generation;
        continue;
      }
      if (by_link_.size() <= lane.link) by_link_.resize(lane.link + 1);
      by_link_[lane.link] = &lane;
      order_.push_back(&lane);
      ++counters_.opened;
    }
    if (std::exchange(slot.gone, false)) lane.dead = true;
  }
}

void LanePort::take_dead_lanes(std::vector<uint32_t>* links) {
  for (const Lane* lane : order_) {
    if (lane->dead) links->push_back(lane->link);
  }
}

void LanePort::drop_lane(uint32_t link) {
  Lane* lane = lane_at(link);
  if (lane == nullptr) return;
  by_link_[link] = nullptr;
  std::erase(order_, lane);
  std::erase(received_, lane);
  ++counters_.closed;
  std::lock_guard lock(control_mutex_);
  Slot& slot = slots_[lane->slot];
  ++slot.generation;
  slot.socket.reset();
  slot.gone = false;
  slot.lane.reset();
}

// The owner drops it at its next look for changes. Counts the cause.
void LanePort::give_up(Lane& lane, uint64_t& cause) {
  if (std::exchange(lane.dead, true)) return;
  ++cause;
  pending_.store(true, std::memory_order_release);
}

LanePortCounters LanePort::counters() const {
  LanePortCounters all = counters_;
  all.refused = refused_.load(std::memory_order_relaxed);
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
  size_t count = 0;
  const size_t lanes = order_.size();
  if (++turn_ >= lanes) turn_ = 0;
  for (size_t i = 0, at = turn_; i < lanes && count < room; ++i, at = at + 1 < lanes ? at + 1 : 0) {
    Lane& lane = *order_[at];
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

void LanePort::set_asleep(bool yes) {
  asleep_ = yes;
  for (const Lane* lane : order_) lane->control->nic_sleeps.store(yes ? 1 : 0, std::memory_order_relaxed);
}

bool LanePort::prepare_sleep() {
  if (order_.empty()) return has_pending();
  set_asleep(true);
  ipc::heavy_barrier();
  if (!anything_waits()) return false;
  set_asleep(false);
  return true;
}

bool LanePort::anything_waits() const {
  if (has_pending()) return true;
  return std::any_of(order_.begin(), order_.end(), [](const Lane* lane) {
    return !lane->dead && (lane->small.has_next() || lane->large.has_next());
  });
}

void LanePort::finish_sleep() {
  if (asleep_) set_asleep(false);
}

}  // namespace ub
