// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/daemon/orphans.h"

#include <algorithm>

namespace ub::urma {
namespace {

// Makes the page that holds them ours, see SharedHeap::detach(): first and last line.
void take_along(QueueIndices& indices) {
  indices.produced.fetch_or(0, std::memory_order_seq_cst);
  indices.armed.fetch_or(0, std::memory_order_seq_cst);
}

// Slots that an element at `at` may take: what was posted, up to the ring's end. 0: an index that cannot be.
uint32_t room_at(uint32_t at, uint32_t produced, uint32_t mask) {
  if (produced - at > mask + 1) return 0;
  return std::min(produced - at, mask + 1 - (at & mask));
}

Cqe flushed(uint32_t id, uint64_t user_data, uint8_t flags) {
  Cqe cqe{};
  cqe.status = CrStatus::kWrFlush;
  cqe.opcode = CrOpcode::kNone;
  cqe.flags = flags;
  cqe.local_id = id;
  cqe.user_data = user_data;
  return cqe;
}

}  // namespace

// ---- remembering -----------------------------------------------------------------------------------------------

void Orphans::add_jfc(uint32_t jfc, const JfcConfig& config) {
  std::lock_guard guard(mutex_);
  jfcs_[jfc] = {config.slots, config.indices, config.slot_count - 1, config.depth, 0, config.cookie};
}

void Orphans::add_jfr(uint32_t id, const JfrConfig& config) {
  std::lock_guard guard(mutex_);
  jfrs_[id] = {config.slots, config.indices, config.slot_count - 1, config.jfc, config.user_data};
}

void Orphans::add_queue(uint32_t id, const JettyConfig& config) {
  const uint8_t flags = config.kind == ObjectKind::kJetty ? kCqeJetty : 0;
  {
    std::lock_guard guard(mutex_);
    queues_[id] = {
        config.sq.slots, config.sq.indices, config.sq.slot_count - 1, config.sq.jfc, config.user_data, flags, true, 0};
  }
  left_error(id);
}

void Orphans::remove_jfc(uint32_t jfc) {
  std::lock_guard guard(mutex_);
  jfcs_.erase(jfc);
}

void Orphans::remove_jfr(uint32_t id) {
  std::lock_guard guard(mutex_);
  jfrs_.erase(id);
}

void Orphans::remove_queue(uint32_t id) {
  std::lock_guard guard(mutex_);
  queues_.erase(id);
}

void Orphans::left_error(uint32_t id) {
  std::lock_guard guard(mutex_);
  auto queue = queues_.find(id);
  if (queue == queues_.end()) return;
  auto jfc = jfcs_.find(queue->second.jfc);
  if (jfc != jfcs_.end()) queue->second.fresh_from = jfc->second.indices->produced.load(std::memory_order_acquire);
}

void Orphans::report_unread() {
  std::lock_guard guard(mutex_);
  for (auto& [handle, jfc] : jfcs_) {
    const QueueIndices& indices = *jfc.indices;
    if (indices.produced.load(std::memory_order_acquire) == indices.consumed.load(std::memory_order_relaxed)) continue;
    // While it is armed, nothing has been told.
    if (indices.armed.load(std::memory_order_relaxed) == 0) report_(Event{EventKind::kCompletion, jfc.cookie});
  }
}

// ---- adopting --------------------------------------------------------------------------------------------------

void Orphans::adopt() {
  std::lock_guard guard(mutex_);
  if (adopted_) return;
  adopted_ = true;
  for (auto& [handle, jfc] : jfcs_) {
    take_along(*jfc.indices);
    jfc.produced = jfc.indices->produced.load(std::memory_order_acquire);
    find_flush_dones(jfc);
    // Not armed: the Core may have taken the arming and died before it told. Once too often does no harm.
    if (jfc.indices->armed.load(std::memory_order_relaxed) == static_cast<uint32_t>(Armed::kNo)) {
      report_(Event{EventKind::kCompletion, jfc.cookie});
    }
  }
  for (auto& [id, jfr] : jfrs_) take_along(*jfr.indices);
  for (auto& [id, queue] : queues_) {
    take_along(*queue.indices);
    skip_delivered(id, queue);
  }
  serve_all();
  // Those who wait for what can never come now are woken, too.
  for (auto& [handle, jfc] : jfcs_) tell(jfc);
}

// The ring shows what was completed last, read or not.
void Orphans::find_flush_dones(const Jfc& jfc) {
  for (uint32_t at = jfc.produced - std::min(jfc.produced, jfc.mask + 1); at != jfc.produced; ++at) {
    const Cqe& cqe = jfc.slots[at & jfc.mask];
    if (cqe.status != CrStatus::kWrFlushDone) continue;
    auto it = queues_.find(cqe.local_id);
    if (it == queues_.end() || it->second.user_data != cqe.user_data) continue;
    if (static_cast<int32_t>(at - it->second.fresh_from) >= 0) it->second.flush_done_due = false;
  }
}

// The daemon completes a request, and then gives its element back and counts it, or marks it if it is not the oldest.
// If its last act in this JFC was to complete a request of this queue, what may be missing is done here.
void Orphans::skip_delivered(uint32_t id, Queue& queue) {
  auto it = jfcs_.find(queue.jfc);
  if (it == jfcs_.end()) return;
  const Cqe& last = it->second.slots[(it->second.produced - 1) & it->second.mask];
  QueueIndices& indices = *queue.indices;
  const uint32_t retired = indices.retired.load(std::memory_order_relaxed);
  // The stamp of an older completion lies behind `retired`, which makes this number a very large one.
  const uint32_t older = last.stamp - retired - 1;
  if (last.local_id != id || last.user_data != queue.user_data || (last.flags & kCqeReceive) != 0 ||
      last.status == CrStatus::kWrFlushDone || last.status == CrStatus::kWrSuspendDone) {
    return;
  }
  const uint32_t produced = indices.produced.load(std::memory_order_acquire);
  uint32_t requests = 0;
  for (uint32_t at = indices.consumed.load(std::memory_order_relaxed); at != produced;) {
    Wqe& wqe = queue.slots[at & queue.mask];
    if (wqe.slots == 0 || wqe.slots > room_at(at, produced, queue.mask)) return;
    at += wqe.slots;
    if (wqe.op == WrOp::kSkip || requests++ != older) continue;
    // Another one, if the daemon had given the element back and had not yet counted it.
    if (wqe.user_ctx != last.user_ctx || wqe.length != last.length) return;
    if (older == 0) {
      retire(indices, at, 1);
    } else {
      wqe.flags |= kWrReported;
    }
    return;
  }
}

// ---- completing ------------------------------------------------------------------------------------------------

void Orphans::posted(uint32_t id) {
  std::lock_guard guard(mutex_);
  auto queue = queues_.find(id);
  if (adopted_ && queue != queues_.end()) flush(id, queue->second);
}

void Orphans::serve() {
  std::unique_lock guard(mutex_, std::try_to_lock);
  if (guard && adopted_) serve_all();
}

void Orphans::attend(uint32_t jfc) {
  std::lock_guard guard(mutex_);
  if (!adopted_) return;
  serve_all();
  auto it = jfcs_.find(jfc);
  if (it != jfcs_.end() && it->second.produced != it->second.indices->consumed.load(std::memory_order_acquire)) {
    tell(it->second);
  }
}

void Orphans::serve_all() {
  for (auto& [id, queue] : queues_) flush(id, queue);
  for (auto& [id, jfr] : jfrs_) flush(id, jfr);
}

void Orphans::flush(uint32_t id, Queue& queue) {
  QueueIndices& indices = *queue.indices;
  const uint32_t produced = indices.produced.load(std::memory_order_acquire);
  for (uint32_t at = indices.consumed.load(std::memory_order_relaxed); at != produced;) {
    const Wqe& wqe = queue.slots[at & queue.mask];
    if (wqe.slots == 0 || wqe.slots > room_at(at, produced, queue.mask)) {  // nothing behind it can be read either
      indices.consumed.store(produced, std::memory_order_release);
      break;
    }
    at += wqe.slots;
    if (wqe.op == WrOp::kSkip) continue;
    Cqe cqe = flushed(id, queue.user_data, queue.cqe_flags);
    cqe.user_ctx = wqe.user_ctx;
    cqe.length = wqe.length;
    if ((wqe.flags & kWrReported) == 0 && !push(queue.jfc, cqe)) return;
    retire(indices, at, 1);
  }
  if (!queue.flush_done_due) return;
  Cqe cqe = flushed(id, queue.user_data, queue.cqe_flags);
  cqe.status = CrStatus::kWrFlushDone;
  queue.flush_done_due = !push(queue.jfc, cqe);
}

void Orphans::flush(uint32_t id, Jfr& jfr) {
  QueueIndices& indices = *jfr.indices;
  const uint32_t produced = indices.produced.load(std::memory_order_acquire);
  for (uint32_t at = indices.consumed.load(std::memory_order_relaxed); at != produced;) {
    const Rqe& rqe = jfr.slots[at & jfr.mask];
    if (rqe.slots == 0 || rqe.slots > room_at(at, produced, jfr.mask)) {
      indices.consumed.store(produced, std::memory_order_release);
      return;
    }
    at += rqe.slots;
    if (rqe.skip != 0) continue;
    Cqe cqe = flushed(id, jfr.user_data, kCqeReceive);
    cqe.user_ctx = rqe.user_ctx;
    if (!push(jfr.jfc, cqe)) return;
    retire(indices, at, 1);
  }
}

// False: no room.
bool Orphans::push(uint32_t handle, const Cqe& cqe) {
  auto it = jfcs_.find(handle);
  if (it == jfcs_.end()) return false;
  Jfc& jfc = it->second;
  if (jfc.produced - jfc.indices->consumed.load(std::memory_order_acquire) >= jfc.depth) return false;
  jfc.slots[jfc.produced & jfc.mask] = cqe;
  ++jfc.produced;
  jfc.indices->produced.store(jfc.produced, std::memory_order_seq_cst);  // before `armed` is read, see attend()
  tell(jfc);
  return true;
}

// An error counts as solicited, so every kind of arming is served.
void Orphans::tell(Jfc& jfc) {
  if (jfc.indices->armed.load(std::memory_order_seq_cst) == static_cast<uint32_t>(Armed::kNo)) return;
  jfc.indices->armed.store(static_cast<uint32_t>(Armed::kNo), std::memory_order_relaxed);
  report_(Event{EventKind::kCompletion, jfc.cookie});
}

}  // namespace ub::urma
