// SPDX-License-Identifier: Apache-2.0
//
// How long the stages of operations take inside a NIC, as histograms by stage and class of traffic, in nanoseconds
// (docs/telemetry.md says what each stage means). Memory is fixed: 1.5 MB.
//
// Thread: the owner of the Core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/base/histogram.h"

namespace ub {

enum class LatencyStage : uint8_t {
  kPostedToSent,
  kSentToAcknowledged,
  kReceivedToPlaced,
  kCompletedToPolled,
  kPostedToCompleted,
};
inline constexpr const char* kLatencyStageNames[] = {"posted_to_sent", "sent_to_acknowledged", "received_to_placed",
                                                     "completed_to_polled", "posted_to_completed"};
inline constexpr size_t kLatencyStages = sizeof kLatencyStageNames / sizeof kLatencyStageNames[0];

// What carries the traffic: channels of small messages, of bulk messages, of CTP; nothing (UM); queue pairs.
enum class TrafficClass : uint8_t { kSmall, kBulk, kCompact, kDatagrams, kRoce };
inline constexpr const char* kTrafficClassNames[] = {"small", "bulk", "compact", "datagrams", "roce"};
inline constexpr size_t kTrafficClasses = sizeof kTrafficClassNames / sizeof kTrafficClassNames[0];

// Times that could not be measured.
struct LatencyMisses {
  uint64_t no_start = 0;   // something ended whose beginning was not seen, or was forgotten
  uint64_t forgotten = 0;  // beginnings that gave way to others, for want of room
  uint64_t unseen = 0;     // it ended while nobody looked
  bool operator==(const LatencyMisses&) const = default;
};

// One histogram in figures, all in nanoseconds. Part of the statistics page.
struct LatencyFigures {
  uint64_t count = 0, min = 0, mean = 0, p50 = 0, p99 = 0, p999 = 0, max = 0;
  bool operator==(const LatencyFigures&) const = default;
};

struct LatencyOfStage {
  LatencyMisses misses;
  LatencyFigures classes[kTrafficClasses];
  bool operator==(const LatencyOfStage&) const = default;
};

class Latencies {
 public:
  // May throw std::bad_alloc.
  Latencies() : cells_(std::make_unique<Cells>()) {}

  void record(LatencyStage stage, TrafficClass traffic, uint64_t ns) {
    (*cells_)[static_cast<size_t>(stage)][static_cast<size_t>(traffic)].record(ns);
  }
  LatencyMisses& misses(LatencyStage stage) { return misses_[static_cast<size_t>(stage)]; }
  void clear();

  const Histogram& histogram(LatencyStage stage, TrafficClass traffic) const {
    return (*cells_)[static_cast<size_t>(stage)][static_cast<size_t>(traffic)];
  }
  // Some 10 us for each histogram that is not empty.
  LatencyOfStage figures(LatencyStage stage) const;

 private:
  using Cells = std::array<std::array<Histogram, kTrafficClasses>, kLatencyStages>;
  std::unique_ptr<Cells> cells_;
  std::array<LatencyMisses, kLatencyStages> misses_{};
};

}  // namespace ub
