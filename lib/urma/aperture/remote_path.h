// SPDX-License-Identifier: Apache-2.0
//
// How an aperture reaches remote memory, whichever way its packets take: loads, stores, atomics, a fence. Places are
// counted in bytes from the first byte of the imported segment; the remote NIC checks token, bounds and permission of
// each access. Naturally aligned words of 1, 2, 4 and 8 bytes of the remote memory are read and written whole.
//
// Thread: one at a time for each path. Blocks until answers come, never on a lock that another thread may hold for
// long; the functions may be called in a signal handler if is_signal_safe() holds.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/atomic_operation.h"
#include "lib/urma/include/ub/umdk/urma/urma_opcode.h"

namespace ub::aperture {

inline constexpr uint32_t kLineBytes = 64;
inline constexpr uint32_t kMaxBlockBytes = 8192;

// A piece of remote memory and where its bytes go to, or come from.
struct LoadBlock {
  uint64_t at;
  void* to;
  uint32_t bytes;  // 1 to kMaxBlockBytes
};
// A load whose bytes are wanted later: at most a line, within one line of the remote address space.
struct EarlyLoad {
  LoadBlock block;
  urma_cr_status_t status = URMA_CR_SUCCESS;
  bool is_done = false;  // then `status` holds, and the bytes are there
};
struct StoreBlock {
  uint64_t at;
  const void* from;
  uint32_t bytes;           // 1 to kMaxBlockBytes
  const uint64_t* enables;  // bit i % 64 of word i / 64: byte i is stored; null: all are
};
inline bool is_enabled(const StoreBlock& block, uint32_t byte) {
  return block.enables == nullptr || (block.enables[byte / 64] >> byte % 64 & 1) != 0;
}

struct RemoteAtomic {
  AtomicOp op;
  uint32_t bytes;  // 4 or 8
  uint64_t at;     // a multiple of `bytes` in the remote address space
  uint64_t operand, compare;
};

// The segment that a path leads to.
struct RemoteSegment {
  uint64_t base = 0;  // how its NIC names the first byte
  uint64_t bytes = 0;
  uint32_t token_id = 0;
  bool token_required = false;
  uint32_t token = 0;

  bool contains(uint64_t at, uint32_t count) const { return at < bytes && count <= bytes - at; }
};

class RemotePath {
 public:
  virtual ~RemotePath() = default;

  // Loads all blocks, several at a time, and waits. The first error; then the bytes at `to` are undefined.
  virtual urma_cr_status_t load(std::span<const LoadBlock>) = 0;
  // Sends a store, whose bytes have been read when this returns. A store that fails later is told by fence(); here only
  // what made it impossible to send.
  virtual urma_cr_status_t store(const StoreBlock&) = 0;
  // Waits until all stores have been answered: others see their bytes. The first error of a store since the last call.
  virtual urma_cr_status_t fence() = 0;
  // Waits as fence() does; what went wrong is told by the next fence().
  virtual urma_cr_status_t settle() { return URMA_CR_SUCCESS; }
  // False: atomics go another way, after settle() (queued_atomics.h).
  virtual bool carries_atomics() const { return true; }
  // After a fence: executes it exactly once and waits for the former value. URMA_CR_ACK_TIMEOUT_ERR: it may have run.
  virtual urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old) = 0;

  // Sends a load ahead of its use, and does not wait. It is done when finish() returns, or earlier, and stays where it
  // is until then. False: it was not sent, as there is no room now, or this path does not know how.
  virtual bool ask(EarlyLoad*) { return false; }
  virtual void finish(EarlyLoad*) {}

  virtual bool is_signal_safe() const = 0;
  // The other end is gone or did not answer in time: everything fails at once from now on.
  virtual bool is_broken() const = 0;
};

}  // namespace ub::aperture
