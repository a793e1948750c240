// SPDX-License-Identifier: Apache-2.0
//
// How much a NIC does, and how those who drive it spend their time, for its statistics page (work_figures.h).
//
// The NIC's own thread says so itself where it idles, yields or sleeps. Turns of application threads are too short and
// too many for that: the first ones after each picture of the page are sampled.
#include <utility>

#include "dataplane/nic.h"
#include "dataplane/nic_report.h"
#include "dataplane/thread_number.h"

namespace ub {
namespace {

constexpr uint32_t kSampledTurns = 1024;

}  // namespace

// Owned, after a turn that found nothing to do.
Regime Nic::why_idle() const {
  const NicCore& core = worker_->core();
  if (core.has_packets(Acks::kMayWait)) return Regime::kNoRoom;
  return core.is_held_back() ? Regime::kHeld : Regime::kIdle;
}

// ---- application threads, owned --------------------------------------------------------------------------------

void Nic::begin_samples() {
  if (clients_ != nullptr) return;
  samples_left_ = kSampledTurns;
  samples_began_ = false;
  note_special();
}

// A turn that began then is over.
void Nic::sample_turn(Instant from, bool worked) {
  --samples_left_;
  note_special();
  if (this_thread_number() == helper_number_.load(std::memory_order_relaxed)) return;
  if (!std::exchange(samples_began_, true)) application_regimes_.begin(from);
  application_regimes_.spend(Regime::kAsleep, from);
  application_regimes_.spend(worked ? Regime::kBusy : why_idle(), worker_->now());
}

// ---- the figures, owned ----------------------------------------------------------------------------------------

WorkFigures Nic::work_figures() {
  WorkFigures figures{};
  const NicCore& core = worker_->core();
  operations_.see(count_operations(core.state(), core.roce_state()));
  operations_.copy_to(figures.operations);
  own_regimes_.copy_to(figures.own_regimes_ns);
  application_regimes_.copy_to(figures.application_regimes_ns);
  if (latency_ == nullptr) return figures;
  figures.latency_on = is_measuring_ ? 1 : 0;
  figures.latency_since_ns = latency_since_ns_;
  latency_->copy_kinds_to(figures.kinds);
  for (size_t i = 0; i < kLatencyStages; ++i)
    figures.latencies[i] = latency_->latencies().figures(static_cast<LatencyStage>(i));
  return figures;
}

}  // namespace ub
