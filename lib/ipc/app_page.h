// SPDX-License-Identifier: Apache-2.0
//
// The page that the daemon shares with one application: doorbells, events, operations of the agent. The daemon makes it
// (sealed, zero). The application may scribble on all of it, so the daemon keeps private copies of its own indices, and
// checks every word before it believes it. docs/daemon.md tells how the page is used.
//
// Thread: each ring has one producer and one consumer; any thread uses doorbells.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/posted_bitmap.h"
#include "lib/base/uint128.h"

namespace ub::ipc {

// Doorbell numbers of one application: each queue and each completion queue gets one from the daemon when it is
// created.
inline constexpr uint32_t kAppBells = 65536;
using AppBells = PostedBitmap<kAppBells>;

// Something happened to an object: an EventKind of the Core, and the object's cookie or user data. Or something
// happened to a port: one of the kinds below, and the number of the port.
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
  uint8_t atomic_op;  // AtomicOp
  bool final;         // kPlace: the last word becomes visible last
  uint8_t done_ok;    // written by the application, before it consumes
};
static_assert(sizeof(AgentOp) == 64);
inline constexpr uint32_t kAgentOps = 512;
inline constexpr uint32_t kAgentBytes = 8192;

struct AppPage {
  // The daemon sets it: an application that sets a doorbell bit must ring the daemon's eventfd.
  alignas(64) std::atomic<uint32_t> worker_sleeps;
  // The application sets it: a daemon that adds an event or an operation must ring the application's eventfd.
  alignas(64) std::atomic<uint32_t> app_sleeps;

  AppBells posted;     // queues with new elements
  AppBells attention;  // completion queues that were armed, or read after they had been full

  alignas(64) std::atomic<uint32_t> events_produced;  // written by the daemon
  alignas(64) std::atomic<uint32_t> events_consumed;  // written by the application
  // Written by the daemon: some events did not fit, so the application has to look at everything.
  std::atomic<uint32_t> events_lost;
  AppEvent events[kAppEvents];

  alignas(64) std::atomic<uint32_t> ops_produced;  // written by the daemon
  alignas(64) std::atomic<uint32_t> ops_consumed;  // written by the application: so many are done, in order
  AgentOp ops[kAgentOps];

  alignas(4096) std::byte agent_data[size_t{kAgentOps} * kAgentBytes];
};

// Sets the flag that makes a producer ring. Then the caller looks once more at what it waits for, and blocks.
inline void begin_sleep(std::atomic<uint32_t>& flag) { flag.exchange(1, std::memory_order_seq_cst); }
inline void end_sleep(std::atomic<uint32_t>& flag) {
  if (flag.load(std::memory_order_relaxed) != 0) flag.store(0, std::memory_order_relaxed);
}
// Call it after something was published and a full fence was executed. Must the sleeper be rung? True for only one
// producer each time that somebody sleeps.
inline bool must_ring(std::atomic<uint32_t>& flag) {
  return flag.load(std::memory_order_seq_cst) != 0 && flag.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace ub::ipc
