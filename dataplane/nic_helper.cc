// SPDX-License-Identifier: Apache-2.0
//
// The helper: what drives the NIC of a process whenever no application thread does.
//
//   asleep, to be rung    nobody drives, or an application thread does now and then: it posts and polls without waking
//                         the NIC up, and peers ring. After traffic the helper naps: it looks again within 2 ms by
//                         itself, so that it need not be rung for acknowledgements, nor told of new deadlines. If
//                         somebody drives at that moment, it naps on.
//   awake                 rung: it owns the Core, drives it until nothing is left, and sleeps again.
//   away                  the application polls (HelperPolicy says so): peers do not ring, and the helper only looks
//                         now and then whether that goes on.
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "dataplane/nic.h"
#include "lib/ipc/pause.h"

namespace ub {

namespace {

constexpr Duration kTakeOverLook = ipc::kShortestPause;  // who does not drive for so long does not poll
constexpr Duration kStandInPatience = microseconds(50);  // for a thread that works on what it was woken for
constexpr Duration kFirstPause = ipc::kShortestPause,
                   kLongestPause = microseconds(80);  // while somebody else owns the Core
constexpr uint32_t kPausesForOwner = 10;
constexpr Duration kNoSlack = nanoseconds(1);
constexpr int64_t kAwaySlack = 3;  // times what it wants to sleep: so much later the kernel may wake it

void set_timer_slack(Duration slack) { prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack.ns), 0UL, 0UL, 0UL); }

}  // namespace

void Nic::helper_main() {
  helper_number_.store(this_thread_number(), std::memory_order_relaxed);
  set_timer_slack(kNoSlack);  // naps are short
  pthread_getaffinity_np(pthread_self(), sizeof helper_cpus_, &helper_cpus_);
  Duration away = to_duration(config_.progress.helper_backoff_min);
  drives_at_rest_ = drives_.load(std::memory_order_relaxed);
  own_regimes_.begin(worker_->now());
  while (!stop_.load(std::memory_order_relaxed)) {
    if (is_stopped()) [[unlikely]] {
      wait_while_stopped();
    } else if (!application_polls_.load()) {
      if (policy_.application_polls()) {
        policy_.application_stopped();
        ports_.shm.set_polled(false);
        drives_at_rest_ = drives_.load(std::memory_order_relaxed);  // what it did while it polled is no news
        rested_at_ = worker_->now();
      }
      away = to_duration(config_.progress.helper_backoff_min);
      helper_take_over();
    } else if (waiters_.load() == 0 && stay_away(away)) {
      away = std::min(away * 2, to_duration(config_.progress.helper_backoff_max));
    } else {
      application_polls_.store(false);
    }
  }
}

// Leaves the NIC to the application for a while. False: it did not drive, or left to us what it posted while the Core
// was ours.
bool Nic::stay_away(Duration d) {
  uint64_t seen = drives_.load(std::memory_order_relaxed);
  const auto drives = [&] { return drives_.load(std::memory_order_relaxed) != seen; };
  // A peer rings because its frame lies there: what was driven before says nothing of that.
  if (helper_sleep(d)) seen = drives_.load(std::memory_order_relaxed);
  control_ports();
  if (statistics_due() && ownership_.own_next(kPausesForOwner)) {
    if (worker_->posted().any()) drive_owned(Acks::kMayWait);  // by who could not get the Core meanwhile
    publish_statistics();
    release();
  }
  if (!drives() && !ownership_.is_owned()) ipc::pause_for(kTakeOverLook);  // it may need this CPU for that
  return (drives() || ownership_.is_owned()) && !worker_->posted().any();
}

// Sleeps, unless an application thread begins to wait or a peer rings because it waits for long: then true. With
// slack, it wakes when the kernel's tick interrupts the CPU anyway: an interrupt of our own would cost who polls there
// 20 us more.
bool Nic::helper_sleep(Duration d) {
  own_regimes_.spend(Regime::kBusy, worker_->now());
  set_timer_slack(d * kAwaySlack);
  const Woken woken = away_wakers_.sleep(d);
  set_timer_slack(kNoSlack);
  own_regimes_.spend(Regime::kAsleep, worker_->now());
  if (woken.by(Waker::kRung)) drain_wake_fd();
  helper_wakes_at_.store(0, std::memory_order_relaxed);
  ports_.shm.clear_doorbell();
  return woken.by(Waker::kFrames);
}

// An owner is gone in a moment, unless it has no CPU.
bool Nic::own_soon(Duration patience) {
  if (ownership_.try_own()) return true;
  const Instant until = worker_->now() + patience;
  while (worker_->now() < until) {
    if (ownership_.try_own()) return true;
  }
  return false;
}

// An owner without a CPU may need this one, so this sleeps: whoever yields to a thread that spins waits for its whole
// time slice. What woke us would do so again at once, so it is no sleep that a frame ends.
bool Nic::own_after_others() {
  for (Duration pause = kFirstPause; !ownership_.own_next(kPausesForOwner);) {
    if (stop_.load(std::memory_order_relaxed)) return false;
    ipc::pause_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  return true;
}

// Drives until there is nothing left, then blocks.
void Nic::helper_take_over() {
  const bool met_owner = ownership_.is_owned();
  if (!own_after_others()) return;
  const uint64_t begin = drives_.load(std::memory_order_relaxed);
  const uint64_t others_drove = begin - drives_at_rest_;
  const uint64_t stood_in = stood_in_drives_.exchange(0, std::memory_order_relaxed);
  const uint64_t polled = others_drove - std::min(others_drove, stood_in);
  const uint64_t received = ports_.received();
  const Instant woke_at = worker_->now();
  if (asleep_) {
    ports_.stop_asking();
    asleep_ = false;
  }
  if (std::exchange(look_at_udp_, false)) ports_.udp_readable();
  const Duration usual_spin = to_duration(config_.progress.helper_spin);
  Duration spin{};
  bool worked = false, met_poller = false;
  for (Instant idle_since = worker_->now(); !stop_.load(std::memory_order_relaxed);) {
    if (drive_owned(Acks::kMayWait)) {
      worked = true;
      met_poller |= ports_.take_met_poller();
      idle_since = worker_->now();
      // Whoever does not poll does not answer at once; perhaps it would even need this CPU to do so.
      spin = met_poller || (stood_in == 0 && ports_.udp_is_hot(worker_->turn())) ? usual_spin : Duration{};
      if (spin.ns == 0 && nothing_left()) break;
      if (ports_.shm.has_bells() || drives_.load(std::memory_order_relaxed) - begin > kDrivesInARow) break;
    } else if (worker_->now() - idle_since >= spin) {
      break;
    }
  }
  const bool found = ports_.received() != received;
  const bool by_udp = ports_.udp_is_hot(worker_->turn());
  policy_.woke(found, polled, woke_at - rested_at_, by_udp ? HelperPolicy::kTurnOfUdp : HelperPolicy::kTurnOfMemory,
               met_owner);
  if (found) choose_cpu(met_poller);
  if (policy_.application_polls()) return leave_to_application();
  helper_rest(worked, found || others_drove != 0);
}

// Owned: lets go, for as long as the application polls.
void Nic::leave_to_application() {
  ports_.finish_sleep();
  asleep_ = false;
  helper_wakes_at_.store(0, std::memory_order_relaxed);
  ports_.mute_udp();
  drives_at_rest_ = drives_.load(std::memory_order_relaxed);
  ports_.shm.set_polled(true);
  application_polls_.store(true);
  release();
  move_to({});
}

// Owned: would another turn find nothing? Of UDP only the turn itself knows.
bool Nic::nothing_left() const {
  return !worker_->core().has_packets(Acks::kMayWait) && !worker_->posted().any() && !ports_.anything_waits() &&
         ports_.plugins.empty();
}

// Owned: lets go, and blocks until there is work. `nap`: there was traffic just now.
void Nic::helper_rest(bool worked, bool nap) {
  if (statistics_due()) publish_statistics();
  send_owed();
  ports_.shm.clear_doorbell();  // before peers are asked to ring
  nap &= ports_.plugins.empty();
  bool busy = worker_->posted().any() || ports_.shm.has_pending();
  const bool all_hurry = events_used_.load(std::memory_order_relaxed) || worker_->core().is_held_back();
  busy |= nap ? ports_.prepare_nap(all_hurry) : ports_.prepare_sleep();
  asleep_ = true;
  Instant deadline{};
  if (!busy) {
    deadline = sleep_limit(worked);
    if (nap) {
      deadline = earlier(deadline, worker_->now() + ipc::Doorbell::kLongestDoze);
      helper_wakes_at_.store(deadline.ns, std::memory_order_relaxed);
    }
  }
  drives_at_rest_ = drives_.load(std::memory_order_relaxed);
  rested_at_ = worker_->now();
  release();
  Woken woken;
  if (!busy) {
    do woken = sleep_until(deadline);
    while (nap && (left_to_who_stands_in(woken, deadline) || left_to_who_drives(woken, &deadline)));
  }
  const bool frames = woken.by(Waker::kFrames) || woken.by(Waker::kUdp);
  const bool others = woken.by(Waker::kRung) || woken.by(Waker::kOthers);
  // A ring may come from a thread that a datagram woke instead of the helper, and that did not get the Core.
  look_at_udp_ = woken.by(Waker::kUdp) || woken.by(Waker::kRung) || (!frames && !others);
  if (others || !frames) control_ports();
}

// A datagram came while the thread that stands in for us works on the one before: it will be back in a moment, and must
// not find the Core owned. Datagrams stay readable, so that nobody forgets them. False: nobody drove meanwhile.
bool Nic::left_to_who_stands_in(const Woken& woken, Instant deadline) {
  if (!woken.by(Waker::kUdp) || woken.by_any_but(Waker::kUdp)) return false;
  if (stood_in_drives_.load(std::memory_order_relaxed) == 0) return false;
  helper_wakes_at_.store(deadline.ns, std::memory_order_relaxed);
  const uint64_t before = drives_.load(std::memory_order_relaxed);
  ipc::pause_for(kStandInPatience);
  return drives_.load(std::memory_order_relaxed) != before && worker_->now() < deadline;
}

// The nap is over, and a thread of the application drives at this moment: it does all that we would do. To take the
// Core from it would cost each of us microseconds, more if it needs this CPU. True: the next nap begins, until
// `*deadline`. False: something woke us or is due, nobody drives, or the application polls from now on.
bool Nic::left_to_who_drives(const Woken& woken, Instant* deadline) {
  if (woken.by_any_but(Waker::kAlarm) || waiters_.load() != 0 || statistics_due()) return false;
  const uint64_t drives = drives_.load(std::memory_order_relaxed);
  if (drives == drives_at_rest_) return false;
  if (!ownership_.is_owned()) {
    ipc::pause_for(kTakeOverLook);
    if (drives_.load(std::memory_order_relaxed) == drives) return false;
  }
  const Instant now = worker_->now();
  const uint64_t others_drove = drives - drives_at_rest_;
  const uint64_t stood_in = stood_in_drives_.exchange(0, std::memory_order_relaxed);
  policy_.woke(false, others_drove - std::min(others_drove, stood_in), now - rested_at_);
  drives_at_rest_ = drives;
  rested_at_ = now;
  if (policy_.application_polls()) {
    if (own_after_others()) leave_to_application();
    return false;
  }
  *deadline = now + ipc::Doorbell::kLongestDoze;
  helper_wakes_at_.store(deadline->ns, std::memory_order_relaxed);
  return true;
}

// ---- its CPU -------------------------------------------------------------------------------------------------------

void Nic::choose_cpu(bool met_poller) {
  if (ports_.shm.is_open()) move_to(policy_.answered(ports_.shm.rung_from(), !met_poller));
}

// A peer may say any number: only CPUs that we had at first count. Refused: it stays where it is.
void Nic::move_to(HelperPolicy::Place place) {
  if (place == helper_place_) return;
  helper_place_ = place;
  cpu_set_t set = helper_cpus_;
  if (place.cpu >= 0 && place.cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(place.cpu), &helper_cpus_)) {
    const auto cpu = static_cast<size_t>(place.cpu);
    if (!place.avoid) CPU_ZERO(&set);
    place.avoid ? CPU_CLR(cpu, &set) : CPU_SET(cpu, &set);
  }
  if (CPU_COUNT(&set) != 0) pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace ub
