// SPDX-License-Identifier: Apache-2.0
//
// How much work a NIC has done, how those who drive it spend their time, and how long stages take: figures of its
// statistics page, in a layout of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dataplane/latencies.h"

namespace ub {

// Operations that have ended, well or not, since the instance began. They come from indices of queues, which cost
// nothing beside. By kind they are known only while latencies are measured.
inline constexpr const char* kOperationNames[] = {"requests", "datagrams", "roce_requests", "completions"};
inline constexpr size_t kOperationCounts = sizeof kOperationNames / sizeof kOperationNames[0];
enum class OperationKind : uint8_t { kWrite, kRead, kSend, kAtomic, kOther };
inline constexpr const char* kOperationKindNames[] = {"write", "read", "send", "atomic", "other"};
inline constexpr size_t kOperationKinds = sizeof kOperationKindNames / sizeof kOperationKindNames[0];

// What a thread that drives does.
enum class Regime : uint8_t {
  kBusy,     // it takes and sends frames, runs timers, or serves tools
  kIdle,     // it looks, and nothing is there
  kHeld,     // something is to be sent, and waits for acknowledgements, answers or a rate
  kNoRoom,   // something is to be sent, and the port has no room
  kYielded,  // there is work, and others have the CPU for a moment
  kAsleep,   // it waits to be woken; of application threads: they are not in the NIC
};
inline constexpr const char* kRegimeNames[] = {"busy", "idle", "held", "no_room", "yielded", "asleep"};
inline constexpr size_t kRegimes = sizeof kRegimeNames / sizeof kRegimeNames[0];

struct WorkFigures {
  uint64_t operations[kOperationCounts];      // in the order of kOperationNames
  uint64_t own_regimes_ns[kRegimes];          // of the worker or helper, since it began
  uint64_t application_regimes_ns[kRegimes];  // of application threads: of the turns that were sampled
  uint64_t latency_on;                        // 1: latencies are measured
  uint64_t latency_since_ns;                  // when that began, by the wall clock, since 1970; 0: there are none
  uint64_t kinds[kOperationKinds];            // requests that ended since then
  LatencyOfStage latencies[kLatencyStages];
};
static_assert(std::is_trivially_copyable_v<WorkFigures> && sizeof(WorkFigures) % 8 == 0);

}  // namespace ub
