// SPDX-License-Identifier: Apache-2.0
//
// Latencies of a running NIC (latency_watch.h), and who else hears of its notes.
#include <new>

#include "dataplane/nic.h"

namespace ub {

// ---- notes, owned ----------------------------------------------------------------------------------------------

void Nic::listen(NoteListener& listener, bool yes) {
  yes ? listeners_.add(listener) : listeners_.remove(listener);
  look(listeners_.any());
}

void Nic::hear_notes() {
  ports_.on_note = [this](const Note& note) {
    if (!listeners_.tell(worker_->monotonic_ns(), note)) look(false);
  };
}

void Nic::look(bool yes) {
  yes ? noting_memory_.begin(ports_) : noting_memory_.end();
  worker_->core().look(yes);
}

// ---- latencies, owned ------------------------------------------------------------------------------------------

// False: there is no memory for that.
bool Nic::measure_latency(bool yes) try {
  if (yes == is_measuring_) return true;
  if (yes) {
    const NicCore& core = worker_->core();
    latency_ = std::make_unique<LatencyWatch>(core.state(), core.roce_state());
    latency_since_ns_ = TscClock::wall_ns();
  }
  listen(*latency_, yes);
  is_measuring_ = yes;
  choose_drive();
  statistics_stale_ = true;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Nic::clear_latency() {
  if (!is_measuring_) return latency_.reset();
  latency_->clear();
  latency_since_ns_ = TscClock::wall_ns();
}

// ---- turns, owned ----------------------------------------------------------------------------------------------

// While there are faults, latencies are measured, or turns of application threads are sampled.
bool Nic::drive_specially(Acks acks) {
  if (has_faults_ && step_faults()) return false;
  const Instant from = worker_->now();
  const bool worked = is_measuring_ ? drive_measured(acks) : drive_now(acks, Worker<PortSet>::Nobody{});
  if (samples_left_ != 0) sample_turn(from, worked);
  return worked;
}

bool Nic::drive_measured(Acks acks) {
  struct Watch {
    LatencyWatch& latency;
    const Worker<PortSet>& clock;
    void received() const { latency.received(clock.monotonic_ns()); }
    void handled(const RxFrame& f) const { latency.handled(clock.monotonic_ns(), {f.data, f.bytes}); }
  };
  latency_->begin_turn(worker_->monotonic_ns());
  const bool worked = drive_now(acks, Watch{*latency_, *worker_});
  latency_->end_turn(worker_->monotonic_ns());
  return worked;
}

void Nic::post_specially(uint32_t jetty, Acks acks) {
  if (has_faults_ && step_faults()) return worker_->posted().set(jetty);
  const Instant from = worker_->now();
  worker_->send_posted(jetty, acks, [this](const Event& event) { report(event); });
  if (is_measuring_) latency_->end_turn(worker_->monotonic_ns());
  if (samples_left_ != 0) sample_turn(from, true);
}

}  // namespace ub
