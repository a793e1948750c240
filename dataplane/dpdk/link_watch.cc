// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/link_watch.h"

#include <rte_alarm.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ub::dpdk {
namespace {

constexpr rte_eth_event_type kRemovals[] = {RTE_ETH_EVENT_INTR_RMV, RTE_ETH_EVENT_DESTROY};

}  // namespace

LinkWatch::LinkWatch(Options options) : options_(std::move(options)) {
  for (rte_eth_event_type event : kRemovals) rte_eth_dev_callback_register(options_.port, event, on_removal, this);
  next_look(nanoseconds(0));
}

LinkWatch::~LinkWatch() {
  if (options_.guarded) {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return ended_; });
  }
  rte_eal_alarm_cancel(look, this);  // waits for one that is going on
  forget_removal();
}

void LinkWatch::look(void* watch) { static_cast<LinkWatch*>(watch)->look(); }

void LinkWatch::look() {
  if (options_.guarded && !std::exchange(gate_owned_, true)) gate_.own();
  rte_eth_link link{};
  set_link(is_there() && rte_eth_link_get_nowait(options_.port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP);
  if (!has_link()) {
    without_link();
  } else if (options_.guarded) {
    stay_inside();
  }
  std::unique_lock lock(mutex_);
  if (!ending_) {
    lock.unlock();
    next_look(!has_link() ? kNoLinkPause : options_.guarded ? kGuardPause : kLinkPause);
    return;
  }
  close_device();
  ended_ = true;
  changed_.notify_all();
}

void LinkWatch::set_link(bool up) {
  if (up == has_link()) return;
  has_link_.store(up, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_relaxed);
  without_link_ = since_try_ = Duration{};
  if (!is_there()) return;
  if (!up) tell("lost its link; frames are dropped until it is back");
  if (up && told_) tell("has a link");
  told_ = !up;
}

void LinkWatch::without_link() {
  without_link_ = without_link_ + kNoLinkPause;
  since_try_ = since_try_ + kNoLinkPause;
  if (!told_ && is_there() && without_link_ >= kPatience) {
    tell("has no link yet; frames are dropped until it comes");
    told_ = true;
  }
  if (options_.reconnect && since_try_ >= kConnectPause) reconnect();
}

void LinkWatch::stay_inside() {
  gate_.release();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(kLinkPause.ns), [this] { return ending_; });
  }
  gate_.own();
}

void LinkWatch::reconnect() {
  since_try_ = Duration{};
  rte_eth_dev_stop(options_.port);
  rte_eth_dev_start(options_.port);
}

void LinkWatch::close_device() {
  forget_removal();
  if (!is_there()) return;
  rte_eth_dev_stop(options_.port);
  rte_eth_dev_close(options_.port);
}

// DPDK keeps the calls of a port that is gone, for the next one of the same number; only "all ports" reaches them.
void LinkWatch::forget_removal() {
  for (rte_eth_event_type event : kRemovals) rte_eth_dev_callback_unregister(RTE_ETH_ALL, event, on_removal, this);
}

int LinkWatch::on_removal(uint16_t, rte_eth_event_type, void* watch, void*) {
  auto* self = static_cast<LinkWatch*>(watch);
  if (self->gone_.exchange(true)) return 0;
  self->tell("was removed; frames are dropped until the program starts again");
  return 0;
}

void LinkWatch::next_look(Duration pause) {
  auto microseconds = static_cast<uint64_t>(std::max<int64_t>(pause.ns / 1000, 1));
  if (rte_eal_alarm_set(microseconds, look, this) == 0) return;
  tell("is given up: no memory to look after it");
  gone_.store(true);
  has_link_.store(false);
  std::lock_guard lock(mutex_);
  ended_ = true;
}

void LinkWatch::tell(const char* what) const {
  if (options_.notice) options_.notice("DPDK device " + options_.name + " " + what);
}

}  // namespace ub::dpdk
