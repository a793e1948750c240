// SPDX-License-Identifier: Apache-2.0
//
// The gate before memory that a NIC of the same host accesses itself (docs/same-host-design.md): one page that the NIC
// of the memory's owner and that of the visitor have mapped.
//
// The visitor enters, accesses the memory and leaves. The owner closes the gate once and for all, and waits until the
// visitor is not inside. Each stores its word and then looks at the other's, all in one order that both agree about, so
// one of them sees the other.
//
// A visitor can lie, but it has the memory mapped anyhow. Thread: one of the visitor, one of the owner.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/ipc/life_sign.h"

namespace ub::ipc {

struct AccessGate {
  static constexpr size_t kBytes = 4096;

  // What the visitor has done since the gate was made.
  struct Counts {
    uint64_t writes, reads, atomics, bytes;
  };

  // The visitor's line.
  alignas(64) std::atomic<uint32_t> inside;
  std::atomic<uint64_t> writes, reads, atomics, bytes;
  // The owner's line.
  alignas(64) std::atomic<uint32_t> closed;

  // False: it is closed, and stays so.
  bool enter() {
    inside.exchange(1, std::memory_order_seq_cst);
    if (closed.load(std::memory_order_seq_cst) == 0) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() { inside.store(0, std::memory_order_release); }
  // By the visitor, which alone writes `counter`.
  static void add(std::atomic<uint64_t>& counter, uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  void close() { closed.exchange(1, std::memory_order_seq_cst); }
  bool is_inside() const { return inside.load(std::memory_order_seq_cst) != 0; }
  Counts counts() const {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    return {writes.load(kRelaxed), reads.load(kRelaxed), atomics.load(kRelaxed), bytes.load(kRelaxed)};
  }
};
static_assert(sizeof(AccessGate) <= AccessGate::kBytes && std::atomic<uint64_t>::is_always_lock_free);

// What the visitor has of a gate: nobody passes it after the owner's death either.
struct AccessWay {
  AccessGate* gate = nullptr;
  const LifePage* owner = nullptr;

  bool enter() const {
    if (!gate->enter()) [[unlikely]]
      return false;
    if (!owner->is_dead()) [[likely]]
      return true;
    gate->leave();
    return false;
  }
};

}  // namespace ub::ipc
