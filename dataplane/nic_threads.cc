// SPDX-License-Identifier: Apache-2.0
//
// The worker of a daemon, and how the NIC's own thread sleeps, whether worker or helper (nic_helper.cc).
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "dataplane/nic.h"

namespace ub {

namespace {

// Somebody always has work for a busy worker; applications that share its core must run, too.
constexpr Duration kBusySlice = microseconds(5);
constexpr Duration kErrandSpin = microseconds(50);
constexpr Duration kControlPause = milliseconds(1);  // a busy worker looks for new links so often

}  // namespace

void Nic::wake_helper() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(wake_fd_.get(), &one, sizeof one);
}

// Owners only: the helper must not sleep past a deadline that came up meanwhile, nor on what only it knows of.
void Nic::tell_helper_deadline() {
  uint64_t wakes_at = helper_wakes_at_.load(std::memory_order_relaxed);
  if (wakes_at == 0) return;
  const Instant deadline = helper_deadline(acks_at_rest());
  if (deadline.ns >= wakes_at) return;
  helper_wakes_at_.store(deadline.ns, std::memory_order_relaxed);
  wake_helper();
}

// Owners only: a helper that is awake, or naps, looks soon enough for acknowledgements that are owed. A datagram costs a
// system call here, and a wake-up where somebody sleeps at the other end; until the helper looks, further messages come,
// and one acknowledgement tells of many. In a ring of shared memory it costs next to nothing.
Acks Nic::acks_at_rest() const {
  const Instant now = worker_->now();
  return ports_.udp_is_hot(now) && helper_looks_by(now + ipc::Doorbell::kLongestDoze) ? Acks::kMayWait : Acks::kNow;
}

bool Nic::helper_looks_by(Instant time) const {
  return Instant{helper_wakes_at_.load(std::memory_order_relaxed)} <= time;  // 0: it is awake
}

// Owners only: when the helper has something to do even if nothing happens.
Instant Nic::helper_deadline(Acks acks) const {
  if (ports_.has_own_frames()) return Instant{};
  Instant deadline = earlier(worker_->core().next_deadline(acks), ports_.next_deadline());
  if (clients_ != nullptr) deadline = earlier(deadline, clients_->next_deadline());
  deadline = worker_->real_time_of(deadline);
  return statistics_ && statistics_stale_ ? earlier(deadline, statistics_at_ + kStatisticsPause) : deadline;
}

void Nic::control_ports() {
  try {
    ports_.shm.poll_control();
    if (std::string refusal = ports_.shm.take_refusal(); !refusal.empty() && notice_) notice_(refusal);
  } catch (const std::bad_alloc&) {  // whoever wanted a link does without; the application lives on
  }
}

// Until the helper looks again at a port that cannot wake it.
Duration Nic::next_poll_pause(bool worked) {
  const Duration least = to_duration(config_.progress.helper_backoff_min);
  poll_pause_ = worked ? least : std::clamp(poll_pause_ * 2, least, to_duration(config_.progress.helper_backoff_max));
  return poll_pause_;
}

// ---- worker of a daemon ----------------------------------------------------------------------------------------

bool Nic::set_worker(const WorkerSettings& settings, std::string* why) {
  worker_may_sleep_.store(settings.may_sleep, std::memory_order_relaxed);
  worker_idle_ns_.store(settings.idle_after.ns, std::memory_order_relaxed);
  wake_helper();
  if (!worker_cpus_) {
    worker_cpus_.emplace();
    pthread_getaffinity_np(helper_.native_handle(), sizeof *worker_cpus_, &*worker_cpus_);
  }
  cpu_set_t set = *worker_cpus_;  // where it might run when it began
  if (!settings.cores.empty()) CPU_ZERO(&set);
  for (int core : settings.cores) {
    if (core < CPU_SETSIZE) CPU_SET(static_cast<size_t>(core), &set);
  }
  int failed = pthread_setaffinity_np(helper_.native_handle(), sizeof set, &set);
  if (failed != 0)
    *why = std::string("the worker stays where it was: ") + strerror(failed) + "; see nproc for the cores";
  return failed == 0;
}

void Nic::worker_main() {
  while (!stop_.load(std::memory_order_relaxed)) {
    control_ports();
    ownership_.own();
    wake_up();
    ports_.udp_readable();
    bool worked = false;
    if (work_until_idle(&worked)) {
      worker_rest(worked);
    } else {
      if (statistics_due()) publish_statistics();
      ownership_.release();
    }
  }
}

// Owned: lets go, and blocks until there is work.
void Nic::worker_rest(bool worked) {
  if (statistics_due()) publish_statistics();
  worker_->send_owed();
  bool busy = worker_->posted().any() || ports_.shm.has_pending() || ports_.prepare_sleep();
  if (clients_ != nullptr) busy |= clients_->prepare_sleep(worker_->turn());
  asleep_ = true;
  const Instant deadline = busy ? Instant{} : sleep_limit(worked);
  ownership_.release();
  if (!busy) {
    sleep_until(deadline);
  } else if (clients_ != nullptr) {
    clients_->clear_rings();  // or the next sleep ends at once, for what is done by then
  }
}

// True: nothing came for so long that the worker may sleep. False: it is time to look for new links.
bool Nic::work_until_idle(bool* worked) {
  Instant idle_since = worker_->now(), yielded_at = idle_since;
  const Instant until = idle_since + kControlPause;
  auto give_way = [&] {
    ownership_.release();
    idle_yield_.idle([this] { return worker_->now().ns; }, sched_yield);
    ownership_.own();
    yielded_at = worker_->now();
  };
  for (;;) {
    const bool driven = drive_owned(Acks::kMayWait);
    if (run_errand() || driven) {
      *worked = true;
      idle_since = worker_->now();
      if (idle_since - yielded_at >= kBusySlice) give_way();
    } else {
      bool may_sleep = worker_may_sleep_.load(std::memory_order_relaxed);
      if (may_sleep && worker_->now() - idle_since >= Duration{worker_idle_ns_.load(std::memory_order_relaxed)}) {
        return true;
      }
      give_way();
    }
    if (worker_->now() > until || stop_.load(std::memory_order_relaxed)) return false;
  }
}

void Nic::run_on_worker(const Errand& errand) {
  std::lock_guard guard(errands_);
  const uint32_t before = errands_done_.load(std::memory_order_relaxed);
  errand_.store(&errand, std::memory_order_release);
  wake_helper();
  // To wake us costs the worker more than most errands do.
  for (const Instant until = worker_->now() + kErrandSpin; worker_->now() < until; sched_yield()) {
    if (errands_done_.load(std::memory_order_acquire) != before) return;
  }
  errands_done_.wait(before, std::memory_order_acquire);
}

// Owned. One errand: whoever has many shares the worker with those who have packets.
bool Nic::run_errand() {
  if (errand_.load(std::memory_order_relaxed) == nullptr) return false;
  const Errand& errand = *errand_.exchange(nullptr, std::memory_order_acquire);
  errand.run(errand.what);
  worker_->report([this](const Event& event) { report(event); });
  statistics_stale_ = true;
  errands_done_.fetch_add(1, std::memory_order_release);
  errands_done_.notify_one();
  return true;
}

// ---- sleep -----------------------------------------------------------------------------------------------------

// Owned: when a sleeper has to wake by itself; whoever moves that deadline tells it from now on.
Instant Nic::sleep_limit(bool worked) {
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
  const Woken woken = wakers_.sleep(limit);
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

}  // namespace ub
