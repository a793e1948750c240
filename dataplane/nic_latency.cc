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
  choose_memory();
  worker_->core().look(yes);
}

// What stands before the memory of a daemon's applications, which is outside.
void Nic::choose_memory() {
  if (clients_ == nullptr) return;
  ForeignMemory* memory = &clients_->memory();
  if (listeners_.any()) memory = &noting_memory_.over(*memory);
  if (is_recording()) memory = &recording_->memory.over(*memory);
  ports_.foreign = memory;
}

// ---- latencies, owned ------------------------------------------------------------------------------------------

// False: there is no memory for that.
bool Nic::measure_latency(bool yes) try {
  if (yes == is_measuring_) return true;
  if (yes) {
    const NicCore& core = worker_->core();
    latency_ = std::make_unique<LatencyWatch>(core.state(), core.roce_state());
    latency_since_ns_ = TscClock::wall_ns();
    watch(latency_watcher_.emplace(*latency_, *worker_));
  } else {
    unwatch(*latency_watcher_);
    latency_watcher_.reset();
  }
  listen(*latency_, yes);
  is_measuring_ = yes;
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

}  // namespace ub
