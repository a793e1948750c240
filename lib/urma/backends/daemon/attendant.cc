// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/daemon/attendant.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/base/idle_yield.h"
#include "lib/ipc/barrier.h"
#include "lib/ipc/ring.h"
#include "lib/ipc/silent_thread.h"
#include "lib/urma/clock.h"
#include "lib/urma/log.h"

namespace ub::urma {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kNoLimit{-1};
constexpr nanoseconds kOrphanPause{10'000'000};  // receives may be posted without a word

// Our eventfd, or whatever the daemon rings with: neither blocks.
void clear(const ipc::Fd& bell) {
  char bytes[64];
  while (read(bell.get(), bytes, sizeof bytes) > 0) {
  }
}

}  // namespace

Attendant::Attendant(const DaemonOptions& options, Client& client, SharedHeap& heap, Client::Welcome welcome)
    : options_(options),
      client_(client),
      heap_(heap),
      welcome_(std::move(welcome)),
      orphans_([this](const NicEvent& event) { report(event); }) {}

void Attendant::stop() {
  stop_.store(true);
  if (!helper_.joinable()) return;
  wake_helper();
  helper_.join();
}

bool Attendant::start_helper(std::string* error) {
  wake_ = ipc::Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_) {
    *error = "cannot create an eventfd: out of descriptors";
    return false;
  }
  helper_ = ipc::silent_thread("softub-app", [this] { helper_main(); });
  if (!helper_.joinable()) *error = "cannot start a thread; raise the limit of processes (ulimit -u)";
  return helper_.joinable();
}

void Attendant::set_event_sink(NicEventSink sink) {
  std::lock_guard guard(sink_lock_);
  sink_ = std::move(sink);
  for (const NicEvent& event : early_) sink_(event);
  early_.clear();
}

void Attendant::report(const NicEvent& event) {
  std::lock_guard guard(sink_lock_);
  if (sink_) return sink_(event);
  early_.push_back(event);
}

// ---- ringing ---------------------------------------------------------------------------------------------------

// Doorbells end with a full fence. So a worker that falls asleep sees the bit or is rung, and orphans that are being
// adopted are seen by adopt() or by the caller: no post is forgotten.
void Attendant::ring_daemon() {
  if (ipc::must_ring(page().worker_sleeps)) ipc::ring(welcome_.daemon_bell.get());
}

void Attendant::posted(uint32_t id, uint32_t bell) {
  page().posted.set(bell);
  ring_daemon();
  if (gone()) [[unlikely]]
    orphans_.posted(id);
}

void Attendant::attend(uint32_t jfc, uint32_t bell) {
  page().attention.set(bell);
  ring_daemon();
  if (gone()) [[unlikely]]
    orphans_.attend(jfc);
}

// ---- serving ---------------------------------------------------------------------------------------------------

bool Attendant::has_work() const {
  const ipc::AppPage& p = page();
  return agent_.has_work(p) ||
         p.events_produced.load(std::memory_order_relaxed) != events_taken_.load(std::memory_order_relaxed) ||
         p.events_lost.load(std::memory_order_relaxed) != losses_seen_.load(std::memory_order_relaxed);
}

void Attendant::drive() {
  // Read before it is written: with several threads polling, the line stays shared.
  if (!driven_.load(std::memory_order_relaxed)) driven_.store(true, std::memory_order_relaxed);
  if (gone()) [[unlikely]] {
    orphans_.serve();
  } else if (has_work() && serve()) {
    return;
  }
  static thread_local IdleYield yield;
  yield.idle(now_ns, sched_yield);
}

// False: there was nothing, or another thread is at it.
bool Attendant::serve() {
  std::unique_lock guard(serving_, std::try_to_lock);
  if (!guard || gone()) return false;
  const bool copied = agent_.serve(page());
  if (copied) {
    ipc::full_fence();
    ring_daemon();
  }
  return take_events() || copied;
}

bool Attendant::take_events() {
  ipc::AppPage& p = page();
  uint32_t taken = events_taken_.load(std::memory_order_relaxed);
  const uint32_t produced = p.events_produced.load(std::memory_order_acquire);
  const uint32_t lost = p.events_lost.load(std::memory_order_acquire);
  if (produced == taken && lost == losses_seen_.load(std::memory_order_relaxed)) return false;
  if (produced - taken > ipc::kAppEvents) taken = produced - ipc::kAppEvents;  // cannot be; the oldest are lost
  for (; taken != produced; ++taken) {
    const ipc::AppEvent event = p.events[taken % ipc::kAppEvents];
    p.events_consumed.store(taken + 1, std::memory_order_release);
    events_taken_.store(taken + 1, std::memory_order_relaxed);
    if (event.kind == ipc::kAppEventPortDown || event.kind == ipc::kAppEventPortUp) {
      report(PortEvent{event.object, event.kind == ipc::kAppEventPortUp});
    } else if (event.kind <= static_cast<uint32_t>(EventKind::kJfrLimit)) {
      report(Event{static_cast<EventKind>(event.kind), event.object});
    }
  }
  if (lost != losses_seen_.load(std::memory_order_relaxed)) {
    losses_seen_.store(lost, std::memory_order_relaxed);
    orphans_.report_unread();
  }
  return true;
}

// ---- the end ---------------------------------------------------------------------------------------------------

void Attendant::lose(const char* why) {
  client_.hang_up(why);
  std::lock_guard guard(serving_);
  if (gone() || stop_.load()) return;
  take_events();
  gone_.store(true, std::memory_order_seq_cst);
  ipc::full_fence();
  // A daemon that was only slow, or that says goodbye before it cleans up, may still write into the rings.
  heap_.detach();
  orphans_.adopt();
  URMA_LOG_ERROR("the daemon at %s is gone: %s. Requests end with WR_FLUSH_ERR; urma_uninit, urma_init attach again",
                 options_.socket.c_str(), client_.why_gone().c_str());
  report(NicGone{});
  wake_helper();
}

// ---- helper thread ---------------------------------------------------------------------------------------------

void Attendant::begin_wait() {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  // If it sleeps, the daemon rings it; else it may be staying away because we polled.
  if (page().app_sleeps.load(std::memory_order_seq_cst) == 0) wake_helper();
}

void Attendant::wake_helper() { ipc::ring(wake_.get()); }

void Attendant::helper_main() {
  nanoseconds away = options_.away_least;
  while (!stop_.load()) {
    if (gone()) {
      orphans_.serve();
      block(kOrphanPause);
      continue;
    }
    const bool theirs = driven_.exchange(false, std::memory_order_relaxed);
    if (theirs && waiters_.load(std::memory_order_seq_cst) == 0) {
      block(away);
      away = std::min(away * 2, options_.away_most);
    } else {
      away = options_.away_least;
      take_over();
    }
  }
}

// Serves until nothing happens for a moment, then sleeps until somebody rings.
void Attendant::take_over() {
  for (int64_t idle_since = now_ns(); now_ns() - idle_since <= options_.helper_spin.count();) {
    if (serve()) idle_since = now_ns();
  }
  ipc::begin_sleep(page().app_sleeps);
  if (!has_work() && !stop_.load()) block(kNoLimit);
  ipc::end_sleep(page().app_sleeps);
}

// Until somebody rings, the socket hangs up, or the time is over.
void Attendant::block(nanoseconds limit) {
  const timespec time{limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  pollfd entries[] = {{wake_.get(), POLLIN, 0},
                      {welcome_.app_bell.get(), POLLIN, 0},
                      {gone() ? -1 : client_.socket(), 0, 0}};  // answers are for those who called
  if (ppoll(entries, std::size(entries), limit == kNoLimit ? nullptr : &time, nullptr) <= 0) return;
  if (entries[0].revents != 0) clear(wake_);
  if (entries[1].revents != 0) clear(welcome_.app_bell);
  if (entries[2].revents != 0) lose("it hung up without a word");
}

}  // namespace ub::urma
