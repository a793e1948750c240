// SPDX-License-Identifier: Apache-2.0
//
// The worker of a daemon: what drives a NIC whose applications are in processes of their own. The control thread's
// errands are run by it, too.
#include <pthread.h>
#include <sched.h>

#include <cstring>

#include "dataplane/nic.h"

namespace ub {

namespace {

// Somebody always has work for a busy worker; applications that share its core must run, too.
constexpr Duration kBusySlice = microseconds(5);
constexpr Duration kErrandSpin = microseconds(50);
constexpr Duration kControlPause = milliseconds(1);  // a busy worker looks for new links so often,
constexpr Duration kRingPause = microseconds(50);    // and for rings of lanes that are left alone

}  // namespace

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
  own_regimes_.begin(worker_->now());
  while (!stop_.load(std::memory_order_relaxed)) {
    if (is_stopped()) [[unlikely]] {
      wait_while_stopped();
      continue;
    }
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
  send_owed();
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

// True: nothing came for so long that the worker may sleep. False: it is time to look for new links and rings.
bool Nic::work_until_idle(bool* worked) {
  Instant idle_since = worker_->now(), yielded_at = idle_since;
  const Instant until = idle_since + (ports_.lanes.leaves_some_alone() ? kRingPause : kControlPause);
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
      if (idle_since - yielded_at >= kBusySlice) {
        own_regimes_.spend(Regime::kBusy, idle_since);
        give_way();
        own_regimes_.spend(Regime::kYielded, yielded_at);
      }
    } else {
      bool may_sleep = worker_may_sleep_.load(std::memory_order_relaxed);
      if (may_sleep && worker_->now() - idle_since >= Duration{worker_idle_ns_.load(std::memory_order_relaxed)}) {
        return true;
      }
      const Regime why = why_idle();
      own_regimes_.spend(Regime::kBusy, idle_since);
      give_way();
      own_regimes_.spend(why, yielded_at);
    }
    if (worker_->now() > until || stop_.load(std::memory_order_relaxed)) return false;
  }
}

// ---- errands ---------------------------------------------------------------------------------------------------

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
  report_events();
  statistics_stale_ = true;
  errands_done_.fetch_add(1, std::memory_order_release);
  errands_done_.notify_one();
  return true;
}

}  // namespace ub
