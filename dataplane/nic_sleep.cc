// SPDX-License-Identifier: Apache-2.0
//
// How the NIC's own thread sleeps and is woken, whether it is a helper (nic_helper.cc) or a worker (nic_worker.cc).
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "dataplane/nic.h"
#include "lib/ipc/ring.h"

namespace ub {

// ---- by others -------------------------------------------------------------------------------------------------

void Nic::wake_helper() { ipc::ring(wake_fd_.get()); }

// Owners only: the helper must not sleep past a deadline that came up meanwhile, nor on what only it knows of.
void Nic::tell_helper_deadline() {
  uint64_t wakes_at = helper_wakes_at_.load(std::memory_order_relaxed);
  if (wakes_at == 0) return;
  const Instant deadline = helper_deadline(acks_at_rest());
  if (deadline.ns >= wakes_at) return;
  helper_wakes_at_.store(deadline.ns, std::memory_order_relaxed);
  wake_helper();
}

// Owners only: a helper that is awake, or naps, looks soon enough for acknowledgements that are owed. A datagram costs
// a system call here, and a wake-up where somebody sleeps at the other end; until the helper looks, further messages
// come, and one acknowledgement tells of many. In a ring of shared memory it costs next to nothing.
Acks Nic::acks_at_rest() {
  if (!ports_.udp_was_hot()) return Acks::kNow;
  const bool looks = helper_looks_by(worker_->now() + ipc::Doorbell::kLongestDoze);
  return looks && ports_.udp_is_hot(worker_->turn()) ? Acks::kMayWait : Acks::kNow;
}

bool Nic::helper_looks_by(Instant time) const {
  return Instant{helper_wakes_at_.load(std::memory_order_relaxed)} <= time;  // 0: it is awake
}

// Owners only: when the helper has something to do even if nothing happens.
Instant Nic::helper_deadline(Acks acks) const {
  if (ports_.has_own_frames()) return Instant{};
  Instant deadline = earlier(worker_->core().next_deadline(acks), ports_.next_deadline());
  if (clients_ != nullptr) deadline = earlier(deadline, clients_->next_deadline());
  deadline = earlier(worker_->real_time_of(deadline), ports_.lanes.listens_again_at());
  if (is_special_) [[unlikely]]
    deadline = earlier(deadline, next_fault_change());
  return statistics_ && statistics_stale_ ? earlier(deadline, statistics_due_at()) : deadline;
}

// ---- by itself -------------------------------------------------------------------------------------------------

// Until the helper looks again at a port that cannot wake it.
Duration Nic::next_poll_pause(bool worked) {
  const Duration least = to_duration(config_.progress.helper_backoff_min);
  poll_pause_ = worked ? least : std::clamp(poll_pause_ * 2, least, to_duration(config_.progress.helper_backoff_max));
  return poll_pause_;
}

// Owned: when a sleeper has to wake by itself; whoever moves that deadline tells it from now on.
Instant Nic::sleep_limit(bool worked) {
  const Regime why = why_idle();
  rest_regime_ = why == Regime::kIdle ? Regime::kAsleep : why;
  Instant deadline = helper_deadline(Acks::kNow);
  if (ports_.must_be_polled()) deadline = earlier(deadline, worker_->now() + next_poll_pause(worked));
  if (worker_->core().has_packets()) {  // for want of room
    deadline = earlier(deadline, worker_->now() + to_duration(config_.progress.helper_backoff_min));
  }
  helper_wakes_at_.store(deadline.ns, std::memory_order_relaxed);
  return deadline;
}

// Nobody's, asked to be woken: sleeps until there is work, or the alarm rings, by `deadline` at the latest.
Woken Nic::sleep_until(Instant deadline) {
  const Instant now = worker_->now();
  const bool short_of_time = deadline <= now;
  if (!short_of_time) alarm_.set(now, deadline);
  const Woken woken = block(short_of_time ? deadline : Instant::never());
  const bool for_the_whole_time = !woken.by_any_but(Waker::kAlarm) && !woken.interrupted();
  if (for_the_whole_time) worker_->slept_until(short_of_time ? deadline : alarm_.rings_at());
  return woken;
}

// Nobody's: sleeps until something can be received, a ring, the alarm, or `until`.
Woken Nic::block(Instant until) {
  Duration limit = SleepSet::kNoLimit;
  if (!until.is_never()) limit = std::max(Duration{}, until - worker_->now());
  own_regimes_.spend(Regime::kBusy, worker_->now());
  const Woken woken = wakers_.sleep(limit);
  own_regimes_.spend(rest_regime_, worker_->now());
  helper_wakes_at_.store(0, std::memory_order_relaxed);
  if (woken.by(Waker::kRung)) drain_wake_fd();
  if (woken.by(Waker::kAlarm)) alarm_.silence();
  if (clients_ != nullptr) clients_->clear_rings();
  return woken;
}

void Nic::drain_wake_fd() {
  uint64_t drained;
  [[maybe_unused]] ssize_t n = read(wake_fd_.get(), &drained, sizeof drained);
}

void Nic::control_ports() {
  try {
    ports_.shm.poll_control();
    ports_.lanes.poll_control(worker_->now());
    if (std::string refusal = ports_.shm.take_refusal(); !refusal.empty() && notice_) notice_(refusal);
    serve_look_door();
  } catch (const std::bad_alloc&) {  // whoever wanted a link does without; the application lives on
  }
}

}  // namespace ub
