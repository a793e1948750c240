// SPDX-License-Identifier: Apache-2.0
//
// One round of work of a NIC: frames in, doorbells, timers, frames out, events. Read it from drive() on; there is
// nothing else that moves the Core.
//
// Entry: what takes the calls of a round. It is the Core itself, or something with the same members that passes them on
// to the Core and looks at them.
//
// Doorbells: a thread that posts and does not get to own the Core leaves a bit per jetty in a bitmap with a
// summary; the owner collects them. No idle queue is ever looked at.
//
// Two clocks: now() is the real one, for whoever waits or sleeps. The Core, its ports and the clients of a daemon live
// by turn(), which does not count time in which nobody drove (lib/base/driver_clock.h); real_time_of() leads back.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "dataplane/port_concept.h"
#include "dataplane/tsc_clock.h"
#include "lib/base/driver_clock.h"
#include "lib/base/posted_bitmap.h"
#include "lib/transport/core.h"

namespace ub {

template <class Ports>
class Worker {
 public:
  Worker(const CoreConfig& config, std::byte* arena, Ports& ports) : ports_(ports), core_(config, arena, ports) {}

  Core<Ports>& core() { return core_; }
  Instant now() const { return clock_.now(); }
  const TscClock& clock() const { return clock_; }

  // Owner: the Core's time, for what is done with it now.
  Instant turn() {
    const Instant real = clock_.now();
    if (!core_clock_.is_steady(real)) [[unlikely]]
      count_gap(real);
    return core_clock_.turn(real);
  }
  // Owner: when a deadline of the Core's clock comes if somebody drives.
  Instant real_time_of(Instant deadline) const { return core_clock_.real_time_of(deadline); }
  // Any thread, of the real clock: nobody drove until then because nothing was there, or a sleeper would have been
  // woken.
  void slept_until(Instant real) { slept_until_.store(real.ns, std::memory_order_relaxed); }

  // Owner: the Core keeps its last notes there from now on.
  void keep_last_notes(LastNotes* notes) {
    last_notes_ = notes;
    core_.keep_last_notes(notes);
    tell_notes_the_gap();
  }

  // now() by CLOCK_MONOTONIC.
  uint64_t monotonic_ns() const { return clock_.now().ns + clock_began_ns_; }

  // One bounded round; tells whether there was anything to do. `on_event` is called for each event. kMayWait: the
  // caller drives again at once, or calls send_owed().
  template <class Entry, class OnEvent>
  bool drive(Entry& entry, Acks acks, OnEvent&& on_event) {
    Instant now = turn();
    RxFrame frames[kBurst];
    size_t received = ports_.rx_burst(now, frames, kBurst);
    for (size_t i = 0; i < received; ++i) {
      if (i + 1 < received) __builtin_prefetch(frames[i + 1].data);
      entry.on_packet(now, frames[i].link, {frames[i].data, frames[i].bytes});
    }
    ports_.rx_release();
    if (ports_.has_lanes()) received += serve_lanes(entry, now);
    if (posted_.any()) posted_.take([&](uint32_t id) { entry.on_posted(now, id); });
    if (entry.next_deadline() <= now) {
      entry.on_timer(now);
      timer_ran_ = true;
    }
    size_t sent = entry.poll_packets(now, kTxBudget, acks);
    ports_.tx_flush(now);
    report(entry, on_event);
    return received + sent != 0;
  }

  // Owner: has a timer run since the last call? Then something may have changed though no frame came or left.
  bool take_timer_ran() { return std::exchange(timer_ran_, false); }

  // A doorbell of a thread that owns the Core: what it posted leaves at once. Returns how many packets left.
  template <class Entry, class OnEvent>
  size_t send_posted(Entry& entry, uint32_t jetty, Acks acks, OnEvent&& on_event) {
    Instant now = turn();
    const size_t sent = entry.send_posted(now, jetty, kTxBudget, acks);
    ports_.tx_flush(now);
    report(entry, on_event);
    return sent;
  }

  // For whoever goes to sleep: acknowledgements that were held back leave, so that nobody has to wake for them.
  template <class Entry>
  void send_owed(Entry& entry) {
    if (!entry.has_packets()) return;
    Instant now = turn();
    entry.poll_packets(now, kTxBudget, Acks::kNow);
    ports_.tx_flush(now);
  }

  PostedBitmap<kIdSpace>& posted() { return posted_; }

  template <class Entry, class OnEvent>
  void report(Entry& entry, OnEvent&& on_event) {
    while (size_t n = entry.poll_events(events_)) {
      for (size_t i = 0; i < n; ++i) on_event(events_[i]);
    }
  }

 private:
  static constexpr size_t kTxBudget = 2 * kBurst;

  template <class Entry>
  [[gnu::noinline]] size_t serve_lanes(Entry& entry, Instant now) {
    RxFrame frames[kBurst];
    const size_t requests = ports_.rx_lanes(frames, kBurst);
    for (size_t i = 0; i < requests; ++i) {
      entry.on_lane_frame(now, frames[i].link, {frames[i].data, frames[i].bytes});
    }
    ports_.release_lanes();
    return requests;
  }

  [[gnu::noinline]] void count_gap(Instant real) {
    const Instant slept{slept_until_.load(std::memory_order_relaxed)};
    core_.count_away(core_clock_.turn_after_gap(real, core_.next_deadline(Acks::kMayWait), slept));
    tell_notes_the_gap();
  }

  // Their times are of CLOCK_MONOTONIC.
  void tell_notes_the_gap() {
    if (last_notes_ != nullptr) last_notes_->behind_ns = clock_began_ns_ + core_clock_.real_time_of(Instant{}).ns;
  }

  Ports& ports_;
  TscClock clock_;
  const uint64_t clock_began_ns_ = TscClock::monotonic_ns() - clock_.now().ns;
  DriverClock core_clock_;
  std::atomic<uint64_t> slept_until_{0};
  Core<Ports> core_;
  bool timer_ran_ = false;
  LastNotes* last_notes_ = nullptr;
  Event events_[16];  // of report(); as a local variable they would be constructed in every turn
  PostedBitmap<kIdSpace> posted_;
};

}  // namespace ub
