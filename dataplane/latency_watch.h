// SPDX-License-Identifier: Apache-2.0
//
// Measures how long stages take inside a NIC: it hears the notes of a Core (docs/looking.md), is told of frames and
// turns by whoever drives, and looks up in the state of the Core what the notes name. Beginnings wait for their ends in
// tables of a fixed size; what could not be measured is counted (LatencyMisses).
//
// Times are of one clock, in nanoseconds, and never go back. Thread: the owner of the Core.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "dataplane/latencies.h"
#include "dataplane/note_listeners.h"
#include "dataplane/start_times.h"
#include "dataplane/taken_completions.h"
#include "dataplane/work_figures.h"
#include "lib/transport/core_state.h"
#include "lib/transport/roce/state.h"

namespace ub {

class LatencyWatch final : public NoteListener {
 public:
  // A completion that was taken while nobody drove for so long is not measured: nobody saw when.
  static constexpr uint64_t kLongestPauseNs = 100'000;

  // `roce`: null if the Core has none. Both outlive this. May throw std::bad_alloc.
  LatencyWatch(const CoreState& core, const roce::State* roce);

  // ---- from who drives ----
  void begin_turn(uint64_t ns);
  void received(uint64_t ns) { received_ns_ = ns; }  // a burst was taken from the ports
  // The Core has dealt with a frame of it.
  void handled(uint64_t ns, std::span<const std::byte> eth_frame);
  void end_turn(uint64_t ns);

  bool hear(uint64_t ns, const Note& note) override;

  Latencies& latencies() { return latencies_; }
  const Latencies& latencies() const { return latencies_; }
  // Requests that ended, by OperationKind.
  void copy_kinds_to(uint64_t (&out)[kOperationKinds]) const { std::copy(kinds_.begin(), kinds_.end(), out); }
  void clear();

 private:
  // A queue with requests of CTP that may begin: such a request says nothing when it leaves.
  struct Waiting {
    uint32_t queue = 0;  // 0: none
    uint32_t next = 0;   // the first of its requests that is not known to have begun
  };
  struct Copies {
    uint64_t received_ns;
    uint32_t pending;
  };

  void posted(uint64_t ns, uint32_t id);
  void posted_to(uint64_t ns, uint32_t owner, const SendRing& ring);
  void began(uint64_t ns, uint32_t queue, uint32_t number);
  void await_compact(uint32_t queue);
  void see_compact(uint64_t ns, Waiting& waiting);
  void ended(uint64_t ns, uint32_t queue, uint32_t number);
  void qp_sent(uint64_t ns, uint32_t qpn, Psn psn, uint32_t number);
  void qp_answered(uint64_t ns, uint32_t qpn, uint32_t count, uint32_t end);
  void acknowledged(uint64_t ns, uint32_t channel, uint32_t from, uint32_t to);
  void count_kind(const SendRing& ring, uint32_t slot);
  void copy_asked(uint64_t tag);
  void copy_done(uint64_t ns, uint64_t tag);
  void completes(uint64_t ns, uint32_t jfc);
  void completed(uint32_t jfc, uint32_t index);
  TrafficClass class_of_request(uint32_t queue, const WrState& request) const;
  TrafficClass class_of_completion(const Cqe& cqe) const;
  uint64_t accepted() const;

  void begin(StartTimes& table, LatencyStage stage, StartKey key, const Start& start) {
    if (!table.put(key, start)) ++latencies_.misses(stage).forgotten;
  }
  void end(LatencyStage stage, TrafficClass traffic, const std::optional<Start>& start, uint64_t ns) {
    if (!start) {
      ++latencies_.misses(stage).no_start;
    } else {
      latencies_.record(stage, traffic, ns - start->ns);
    }
  }

  const CoreState& s_;
  const roce::State* roce_;
  Latencies latencies_;
  std::array<uint64_t, kOperationKinds> kinds_{};

  StartTimes posted_{16384};     // slots of send queues and queue pairs
  StartTimes sent_{32768};       // packets of channels, requests of CTP and of queue pairs
  StartTimes completed_{16384};  // completions of JFCs
  std::array<Waiting, 64> waiting_;
  bool any_waits_ = false;
  TakenCompletions taken_;
  uint64_t completed_ns_ = 0, looked_ns_ = 0;

  // ---- the frame that is dealt with ----
  uint64_t received_ns_ = 0;
  uint64_t accepted_ = 0;
  bool kept_ = false, asked_ = false, completed_receive_ = false;
  static constexpr size_t kMostCopies = 4096;
  std::unordered_map<uint64_t, Copies> copies_;  // by tag
};

}  // namespace ub
