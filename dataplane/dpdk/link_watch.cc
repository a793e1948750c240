// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/link_watch.h"

#include <utility>

#include "dataplane/dpdk/link_rounds.h"

namespace ub::dpdk {
namespace {

constexpr rte_eth_event_type kRemovals[] = {RTE_ETH_EVENT_INTR_RMV, RTE_ETH_EVENT_DESTROY};

}  // namespace

LinkWatch::LinkWatch(Options options) : options_(std::move(options)), connection_(options_.server) {
  for (rte_eth_event_type event : kRemovals) rte_eth_dev_callback_register(options_.port, event, on_removal, this);
  LinkRounds::of_process().join(*this);
}

LinkWatch::~LinkWatch() {
  LinkRounds::of_process().leave(*this);
  forget_removal();
}

void LinkWatch::look() {
  keep_out();
  rte_eth_link link{};
  set_link(is_there() && rte_eth_link_get_nowait(options_.port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP);
  if (!has_link()) without_link(Clock::now());
}

void LinkWatch::let_in() {
  if (has_link() && std::exchange(gate_owned_, false)) gate_.release();
}

void LinkWatch::keep_out() {
  if (options_.guarded && !std::exchange(gate_owned_, true)) gate_.own();
}

void LinkWatch::last_look() {
  forget_removal();
  if (!options_.guarded || !is_there()) return;
  rte_eth_dev_stop(options_.port);
  rte_eth_dev_close(options_.port);
}

void LinkWatch::give_up() {
  tell("is given up: no memory to look after it");
  gone_.store(true);
  has_link_.store(false);
}

void LinkWatch::set_link(bool up) {
  if (up == has_link()) return;
  has_link_.store(up, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_relaxed);
  lost_ = Clock::now();
  reconnect_.tried(lost_);
  if (options_.changed) options_.changed();
  if (!is_there()) return;
  if (!up) tell("lost its link; frames are dropped until it is back");
  if (up && told_) tell("has a link");
  told_ = !up;
}

void LinkWatch::without_link(Clock::time_point now) {
  if (!is_there()) return;
  if (!told_ && now - lost_ >= kPatience) {
    tell("has no link yet; frames are dropped until it comes");
    told_ = true;
  }
  if (!options_.connects || !reconnect_.is_due(now, connection_.is_open())) return;
  reconnect_.tried(now);
  rte_eth_dev_stop(options_.port);
  connection_.begin();
  connection_.end(rte_eth_dev_start(options_.port) == 0);
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

void LinkWatch::tell(const char* what) const {
  if (options_.notice) options_.notice("DPDK device " + options_.name + " " + what);
}

}  // namespace ub::dpdk
