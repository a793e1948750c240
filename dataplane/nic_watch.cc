// SPDX-License-Identifier: Apache-2.0
//
// A NIC while somebody looks at the calls of its Core (watched_core.h). It stands apart from nic_drive.cc so that the
// compiler arranges the turn that nobody watches as if there were no other.
#include <vector>

#include "dataplane/nic.h"
#include "lib/record/recorded_core.h"

namespace ub {

using Look = record::Recorder::Look;

// Owned: somebody looks at the calls of each turn from now on, or no longer. Not within a turn.
void Nic::watch(CoreWatcher& watcher) {
  watchers_.push_back(&watcher);
  note_special();
}

void Nic::unwatch(CoreWatcher& watcher) {
  std::erase(watchers_, &watcher);
  note_special();
}

// Owned: is there anything for drive_specially()?
void Nic::note_special() {
  is_special_ = has_faults() || !watchers_.empty() || is_recording() || samples_left_ != 0;
}

// Calls fn() with what takes the calls of a turn. In one that a doorbell began, nobody else's rings are looked at.
template <bool kByDoorbell, class Fn>
auto Nic::in_watched_turn(Fn fn) {
  NicCore& core = worker_->core();
  if (!is_recording()) {
    WatchedCore<NicCore> entry(core, watchers_);
    return fn(entry);
  }
  record::RecordedCore<NicCore> recorded(core, recording_->recorder);
  const record::RecordedTurn turn(recorded, worker_->turn(), kByDoorbell ? Look::kRung : Look::kAll);
  WatchedCore<record::RecordedCore<NicCore>> entry(recorded, watchers_);
  return fn(entry);
}

// While there are faults, somebody watches, or turns of application threads are sampled.
bool Nic::drive_specially(Acks acks) {
  if (has_faults() && step_faults()) return false;
  if (is_capturing() && capture_->has_ended()) end_capture();  // its file is full, for example
  if (is_recording()) look_after_recording();
  const Instant from = worker_->now();
  if (is_measuring_) latency_watcher_->begin_turn();
  const bool worked = in_watched_turn<false>([=, this](auto& entry) { return drive_by(entry, acks); });
  if (is_measuring_) latency_watcher_->end_turn();
  if (is_recording() && recording_->recorder.shadows().take_look_again()) wake_helper();
  if (samples_left_ != 0) sample_turn(from, worked);
  return worked;
}

void Nic::send_posted_specially(uint32_t jetty, Acks acks) {
  if (has_faults() && step_faults()) return worker_->posted().set(jetty);
  const Instant from = worker_->now();
  in_watched_turn<true>([=, this](auto& entry) {
    worker_->send_posted(entry, jetty, acks, [this](const Event& event) { report(event); });
  });
  if (is_measuring_) latency_watcher_->end_turn();
  if (samples_left_ != 0) sample_turn(from, true);
}

void Nic::send_owed_specially() {
  if (is_stopped()) return;
  in_watched_turn<false>([this](auto& entry) { worker_->send_owed(entry); });
}

// Owned: what the Core has to say since then is told its users.
void Nic::report_events() {
  in_watched_turn<false>([this](auto& entry) {
    worker_->report(entry, [this](const Event& event) { report(event); });
  });
}

}  // namespace ub
