// SPDX-License-Identifier: Apache-2.0
//
// An application thread that waits for an event stands in for the helper. A frame that comes would otherwise wake the
// helper, and then the helper the thread: two times what a wake-up costs. So the thread sleeps on what rings for
// frames, beside its own event, and drives the NIC when it wakes. The helper sleeps meanwhile, too. It keeps the alarm
// and all that is not a frame, and is woken for frames whenever nobody stands in.
//
// One thread at a time stands in. Others sleep on their event alone.
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "dataplane/nic.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/ipc/pause.h"
#include "lib/ipc/ring.h"

namespace ub {

namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr Duration kOwnerPause = microseconds(50);
constexpr Duration kLongestLeave = seconds(2);  // a machine may be so busy that a thread has no CPU for long

}  // namespace

// Devices cannot be driven while they sleep, and a daemon has a worker. A thread that runs only when the machine is
// idle would leave frames to lie that the helper takes at once.
bool Nic::may_stand_in() {
  if (clients_ != nullptr || !ports_.plugins.empty() || stop_.load() || is_stopped()) return false;
  if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_IDLE) return false;
  std::thread::id nobody;
  return stands_in_.compare_exchange_strong(nobody, std::this_thread::get_id());
}

int Nic::stand_in(int fd, int ms) {
  struct Place {  // given up also by a thread that is cancelled, which may have been woken for a frame before
    Nic& nic;
    int fd;
    bool done = false;
    ~Place() {
      nic.stand_in_wakers_.forget(fd);
      nic.stands_in_.store({});
      if (!done) nic.wake_helper();
    }
  } place{*this, fd};
  if (!stand_in_wakers_.watch(fd, Waker::kAwaited)) return -1;
  const int ready = stand_in_until(ms < 0 ? Instant::never() : worker_->now() + Duration{ms * kNsPerMs});
  place.done = true;
  errno = EINTR;
  return ready;
}

int Nic::stand_in_until(Instant until) {
  bool busy = false;
  while (!stop_.load() && !is_stopped()) {
    Duration limit = SleepSet::kNoLimit;
    if (busy) {
      limit = Duration{};
    } else if (!until.is_never()) {
      limit = std::max(Duration{}, until - worker_->now());
    }
    const Woken woken = stand_in_wakers_.sleep(limit);
    const bool udp = woken.by(Waker::kUdp);
    if (busy || udp || woken.by(Waker::kFrames)) {
      busy = stand_in_drive(udp);
      if (!woken.by(Waker::kAwaited) && worker_->now() < until) continue;
    }
    if (busy) wake_helper();  // nobody was asked to ring
    if (woken.by(Waker::kAwaited)) return 1;
    return worker_->now() >= until ? 0 : -1;
  }
  return -1;
}

// Nobody's, woken by a frame: what the helper would do. True: there is more.
bool Nic::stand_in_drive(bool udp) {
  const ipc::NotCancelled guard;
  if (!own_soon(kWokenPatience)) {  // it may have looked before the frame came
    ports_.shm.clear_doorbell();
    wake_helper();
    // A datagram that is still there would wake us again at once, and the owner may need this CPU.
    if (udp) ipc::pause_for(kOwnerPause);
    return false;
  }
  if (stop_.load()) {  // this thread was away for so long that the program may have taken its memory back
    release();
    return false;
  }
  if (asleep_) ports_.stop_asking();
  asleep_ = false;
  if (udp) ports_.udp_readable();
  const uint64_t before = drives_.load(std::memory_order_relaxed);
  for (uint64_t drives = 1; drive_owned(Acks::kMayWait); ++drives) {
    if (nothing_left() || ports_.shm.has_bells() || drives == kDrivesInARow) break;
  }
  stood_in_drives_.fetch_add(drives_.load(std::memory_order_relaxed) - before, std::memory_order_relaxed);
  return stand_in_rest();
}

// Owned: lets go, asked to be woken. True: there is work again, and nobody was asked to ring.
bool Nic::stand_in_rest() {
  if (acks_at_rest() == Acks::kNow) send_owed();
  ports_.shm.clear_doorbell();  // before peers are asked to ring
  const bool busy = ports_.prepare_nap(true) || worker_->posted().any();
  asleep_ = true;
  // Whoever naps has to look again soon: that is left to the helper, whose alarm is set once for many naps.
  const bool more = worker_->core().has_packets(Acks::kMayWait);
  if (!helper_looks_by(more ? Instant{} : worker_->now() + ipc::Doorbell::kLongestDoze)) wake_helper();
  tell_helper_deadline();
  release();
  return busy;
}

// It may be this thread: its signal handler ends the program, so that the wait never goes on.
bool Nic::end_stand_in() {
  stop_.store(true);
  ipc::ring(leave_bell_.get());
  const auto is_inside = [this] {
    const std::thread::id who = stands_in_.load();
    return who != std::thread::id() && who != std::this_thread::get_id();
  };
  const Instant limit = worker_->now() + kLongestLeave;
  while (is_inside() && worker_->now() < limit) ipc::pause_for(kOwnerPause);
  return !is_inside();
}

}  // namespace ub
