// SPDX-License-Identifier: Apache-2.0
//
// Faults of the NIC that somebody asked for (docs/fault-injection.md): its port is down, so that no frame passes in
// either direction; or nobody drives it, so that nothing is sent, received or timed. They begin and end by the real
// clock.
#include <utility>

#include "dataplane/nic.h"
#include "lib/ipc/pause.h"

namespace ub {

namespace {

constexpr Duration kStoppedLook = milliseconds(1);  // how exactly a stop ends

}  // namespace

Status Nic::inject(const fault::NicPlan& plan, std::string* why) {
  const Status status = control([&](NicCore& core, Instant) {
    const Status set = core.inject_rnr(Owner{0}, plan.rnr);
    if (set != Status::kOk) return set;
    const Instant now = worker_->now();
    fault_counts_ = {};
    port_down_.reset();
    stop_fault_.reset();
    if (plan.port_down) port_down_.emplace(*plan.port_down, now);
    if (plan.stop) stop_fault_.emplace(*plan.stop, now);
    has_faults_ = port_down_ || stop_fault_;
    choose_drive();
    step_faults();
    return set;
  });
  if (status != Status::kOk) *why = "too many have an rnr fault";
  return status;
}

fault::NicCounts Nic::injected() {
  return control([&](NicCore& core, Instant) {
    fault::NicCounts counts = fault_counts_;
    counts.rnr = core.injected_rnr(Owner{0});
    return counts;
  });
}

// Owned.
bool Nic::step_faults() {
  const Instant now = worker_->now();
  set_port_down(port_down_ && port_down_->lasts(now));
  const bool stop = stop_fault_ && stop_fault_->lasts(now);
  if (stop && !is_stopped()) {
    ++fault_counts_.stops;
    worker_->core().count(Counter::kInjectedStop);
  }
  stopped_.store(stop, std::memory_order_relaxed);
  return stop;
}

void Nic::set_port_down(bool down) {
  worker_->core().count(Counter::kInjectedFrames, ports_.take_lost());
  if (down == ports_.is_down()) return;
  ports_.set_down(down);
  if (down) {
    ++fault_counts_.ports_down;
    worker_->core().count(Counter::kInjectedPortDown);
  }
  report(PortEvent{0, !down});
}

// Owned: when a fault begins or ends next.
Instant Nic::next_fault_change() const {
  const Instant now = worker_->now();
  const auto next = [now](const std::optional<fault::Timetable>& when) {
    return when ? when->next_change(now) : Instant::never();
  };
  return earlier(next(port_down_), next(stop_fault_));
}

// The NIC's own thread, while nobody may drive: what would wake it lies where it is, so it only looks at the clock.
void Nic::wait_while_stopped() {
  ipc::pause_for(kStoppedLook);
  if (!ownership_.try_own()) return;
  step_faults();
  if (clients_ != nullptr) run_errand();
  if (statistics_due()) publish_statistics();
  release();
}

}  // namespace ub
