// SPDX-License-Identifier: Apache-2.0
//
// The page that the daemon shares with one application: doorbells, events, the agent's operations. The daemon makes
// it (sealed, zero); the application may scribble on all of it, so the daemon keeps private copies of its own indices
// and believes no word here without a check. docs/daemon.md tells how it is used.
//
// Thread: one producer and one consumer per ring; doorbells any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/posted_bitmap.h"
#include "lib/base/uint128.h"

namespace ub::ipc {

// Doorbell numbers of an application: the daemon gives each queue and each completion queue one when it is created.
inline constexpr uint32_t kAppBells = 65536;
using AppBells = PostedBitmap<kAppBells>;

// What happened to an object: an EventKind of the Core, and the object's cookie or user data. Or to a port: one of the
// kinds below, and its number.
inline constexpr uint32_t kAppEventPortDown = 256, kAppEventPortUp = 257;
struct AppEvent {
  uint64_t object;
  uint32_t kind;
  uint32_t reserved;
};
inline constexpr uint32_t kAppEvents = 4096;

// A copy or atomic that the application does for the daemon, in memory that only the application can see. The payload
// of operation n lies in agent_data + (n % kAgentOps) * kAgentBytes.
enum class AgentOpKind : uint8_t { kGather = 1, kPlace = 2, kAtomic = 3 };
struct alignas(64) AgentOp {
  uint128 operand, compare;  // kAtomic
  uint128 old;               // kAtomic: written by the application
  uint64_t address;
  uint32_t bytes;  // at most kAgentBytes
  AgentOpKind kind;
  uint8_t atomic_op;  // WrOp
  bool final;         // kPlace: the last word becomes visible last
  uint8_t done_ok;    // written by the application, before it consumes
};
static_assert(sizeof(AgentOp) == 64);
inline constexpr uint32_t kAgentOps = 512;
inline constexpr uint32_t kAgentBytes = 8192;

struct AppPage {
  alignas(64) std::atomic<uint32_t> worker_sleeps;  // daemon: ring my eventfd after setting a bit
  alignas(64) std::atomic<uint32_t> app_sleeps;     // application: ring my eventfd after an event or operation

  AppBells posted;     // queues with new elements
  AppBells attention;  // completion queues that were armed, or read after they had been full

  alignas(64) std::atomic<uint32_t> events_produced;  // daemon
  alignas(64) std::atomic<uint32_t> events_consumed;  // application
  std::atomic<uint32_t> events_lost;                  // daemon: some did not fit, look at everything
  AppEvent events[kAppEvents];

  alignas(64) std::atomic<uint32_t> ops_produced;  // daemon
  alignas(64) std::atomic<uint32_t> ops_consumed;  // application: done, in order
  AgentOp ops[kAgentOps];

  alignas(4096) std::byte agent_data[size_t{kAgentOps} * kAgentBytes];
};

// Sets the flag that makes a producer ring. The caller looks at what it waits for once more, then blocks.
inline void begin_sleep(std::atomic<uint32_t>& flag) { flag.exchange(1, std::memory_order_seq_cst); }
inline void end_sleep(std::atomic<uint32_t>& flag) {
  if (flag.load(std::memory_order_relaxed) != 0) flag.store(0, std::memory_order_relaxed);
}
// After a publication that was followed by a full fence: must the sleeper be rung? True for one producer per sleep.
inline bool must_ring(std::atomic<uint32_t>& flag) {
  return flag.load(std::memory_order_seq_cst) != 0 && flag.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace ub::ipc
