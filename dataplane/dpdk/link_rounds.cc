// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/link_rounds.h"

#include <rte_alarm.h>

#include <algorithm>
#include <chrono>

#include "dataplane/dpdk/link_watch.h"

namespace ub::dpdk {

LinkRounds& LinkRounds::of_process() {
  static LinkRounds* const rounds = new LinkRounds;  // DPDK's thread outlives the program's static objects
  return *rounds;
}

void LinkRounds::join(LinkWatch& watch) {
  std::lock_guard control(control_);
  {
    std::lock_guard lock(mutex_);
    members_.push_back(&watch);
  }
  begin_now();
}

void LinkRounds::leave(LinkWatch& watch) {
  std::lock_guard control(control_);
  {
    std::lock_guard lock(mutex_);
    leaving_.push_back(&watch);
  }
  begin_now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_member(watch); });
  std::erase(leaving_, &watch);
}

bool LinkRounds::is_member(const LinkWatch& watch) const {
  return std::find(members_.begin(), members_.end(), &watch) != members_.end();
}

// Ends the round that is going on, or the pause.
void LinkRounds::begin_now() {
  {
    std::lock_guard lock(mutex_);
    hurry_ = true;
    changed_.notify_all();
  }
  rte_eal_alarm_cancel(round, this);  // waits for one that is going on
  std::lock_guard lock(mutex_);
  hurry_ = false;
  schedule(nanoseconds(0));
}

void LinkRounds::round() {
  std::unique_lock lock(mutex_);  // whoever wants to join or leave waits for the round anyway
  bool guards = false, waits = false;
  for (LinkWatch* watch : members_) {
    watch->look();
    guards |= watch->is_guarded() && watch->has_link();
    waits |= !watch->has_link() && watch->is_there();
  }
  const Duration pause = waits ? kNoLinkPause : kLinkPause;
  lock.unlock();
  if (guards) stay_inside(pause);
  lock.lock();
  take_last_looks();
  if (!members_.empty()) schedule(guards ? kDriversPause : pause);
}

void LinkRounds::stay_inside(Duration pause) {
  std::unique_lock lock(mutex_);
  for (LinkWatch* watch : members_) watch->let_in();
  changed_.wait_for(lock, std::chrono::nanoseconds(pause.ns), [this] { return hurry_; });
  for (LinkWatch* watch : members_) watch->keep_out();
}

void LinkRounds::take_last_looks() {
  for (LinkWatch* watch : leaving_) {
    if (std::erase(members_, watch) != 0) watch->last_look();
  }
  changed_.notify_all();
}

// Under the mutex.
void LinkRounds::schedule(Duration pause) {
  const auto microseconds = static_cast<uint64_t>(std::max<int64_t>(pause.us(), 1));
  if (rte_eal_alarm_set(microseconds, round, this) == 0) return;
  for (LinkWatch* watch : members_) watch->give_up();
  members_.clear();
  changed_.notify_all();
}

}  // namespace ub::dpdk
