// SPDX-License-Identifier: Apache-2.0
//
// A NIC while somebody looks at the calls of its Core (watched_core.h). It stands apart from nic_drive.cc so that the
// compiler arranges the turn that nobody watches as if there were no other.
#include <vector>

#include "dataplane/nic.h"

namespace ub {

// Owned: somebody looks at the calls of each turn from now on, or no longer. Not within a turn.
void Nic::watch(CoreWatcher& watcher) {
  watchers_.push_back(&watcher);
  note_special();
}

void Nic::unwatch(CoreWatcher& watcher) {
  std::erase(watchers_, &watcher);
  note_special();
}

void Nic::note_special() { is_special_ = port_down_ || stop_fault_ || !watchers_.empty(); }

bool Nic::drive_watched(Acks acks) {
  if (is_capturing() && capture_->has_ended()) end_capture();  // its file is full, for example
  WatchedCore<NicCore> entry(worker_->core(), watchers_);
  return drive_by(entry, acks);
}

void Nic::send_posted_specially(uint32_t jetty, Acks acks) {
  if (step_faults()) return worker_->posted().set(jetty);
  WatchedCore<NicCore> entry(worker_->core(), watchers_);
  worker_->send_posted(entry, jetty, acks, [this](const Event& event) { report(event); });
}

void Nic::send_owed_specially() {
  if (is_stopped()) return;
  WatchedCore<NicCore> entry(worker_->core(), watchers_);
  worker_->send_owed(entry);
}

// Owned: what the Core has to say since then is told its users.
void Nic::report_events() {
  WatchedCore<NicCore> entry(worker_->core(), watchers_);
  worker_->report(entry, [this](const Event& event) { report(event); });
}

}  // namespace ub
